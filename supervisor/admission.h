/* The supervisor's part in configuration admission (behaviour reference 3): it registers with
 * PENDING, checks the configuration that it would run, and reports ACCEPTED for exactly that one
 * before anything starts. The gateway decides. */
#ifndef SUPERVISOR_ADMISSION_H
#define SUPERVISOR_ADMISSION_H

#include <stdbool.h>

#include "openshell.pb-c.h"
#include "sandbox.pb-c.h"
#include "supervisor/gateway_link.h"

enum {
    /* Reports that the gateway answered with "fetch again". */
    ADMISSION_FETCHES_LIMIT = 10,
    /* While the gateway's configuration waits for a repair. */
    ADMISSION_REPAIR_PAUSE_MILLISECONDS = 1000,
    ADMISSION_REPAIR_MILLISECONDS = 15 * 60 * 1000,
};

struct admission;

typedef Openshell__Sandbox__V1__GetSandboxConfigResponse sandbox_config;

struct admission_events {
    /* This instance is registered; admission_decide may follow. */
    void (*on_registered)(void *user);
    /* ACCEPTED was acknowledged for this configuration, which lives as long as the admission. */
    void (*on_accepted)(const sandbox_config *config, void *user);
    /* Nothing more follows. */
    void (*on_failed)(const struct error *error, void *user);
    void *user;
};

/* Fetches the configuration and registers. Everything given outlives it. `give_up` in monotonic
 * milliseconds. */
struct admission *admission_begin(struct reactor *reactor, struct gateway_link *link,
                                  const struct launch_supervisor *launch, const char *instance_id,
                                  int64_t give_up, const struct admission_events *events);

/* Checks the configuration and reports. One that the gateway itself does not admit is reported as
 * REJECTED, once for each content, and waited for. */
void admission_decide(struct admission *admission);
/* Whether it waits for a repair, which takes a person's time. */
bool admission_waits(const struct admission *admission);

/* Reports, once and with one attempt, that the backend refused what was accepted (decision A2). */
void admission_report_refusal(struct admission *admission, const struct error *why,
                              void (*done)(void *user), void *user);

#endif
