/* Configuration admission: may this configuration activate? The supervisor reports, this decides
 * (behaviour reference 3.1 to 3.4, decisions A1, A2). No I/O. */
#ifndef GATEWAY_ADMISSION_H
#define GATEWAY_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "gateway/lifecycle.h"
#include "openshell.pb-c.h"

enum { ADMISSION_ERROR_MAX = 512 /* characters of a public diagnostic (3.2) */ };

/* What the gateway would hand out now: the numbers a report must repeat. */
struct admission_generation {
    bool admitted; /* the gateway's own checks of the configuration passed */
    uint32_t policy_version;
    const char *policy_hash;
    uint64_t config_revision;
    uint64_t provider_env_revision;
};

struct admission_result {
    bool changed; /* the record must be saved */
    /* A refusal that noticed a passed deadline: the error is the answer to the report, but this
     * change of the record must be saved all the same (return true from the store's work). */
    bool expired;
    struct lifecycle_result lifecycle; /* what the event behind it did; actions included */
};

/* Checks a report and applies it to the record, in the order of 3.2:
 *
 *   1 the caller's sandbox is the report's                          PERMISSION_DENIED
 *   2 admission there, instance a UUID, a known state               INVALID_ARGUMENT
 *   3 the sandbox exists (`sandbox` is not NULL)                    NOT_FOUND
 *   4 the attempt has not timed out                                 FAILED_PRECONDITION
 *   5 PENDING from a new instance: the stored one is the expected   FAILED_PRECONDITION
 *   6 ACCEPTED, REJECTED: the instance is the stored one            FAILED_PRECONDITION
 *   7 ACCEPTED: admitted, and exactly the current generation        ABORTED
 *   8 REJECTED: exactly the current generation                      ABORTED
 *   9 the deadline has not passed                                   FAILED_PRECONDITION, expired
 *  10 refused_before_start only with REJECTED                       INVALID_ARGUMENT
 *
 * (11, the row has not changed, is store_update's ABORTED.) A refusal before start that was stored
 * is final until the next start: other reports answer FAILED_PRECONDITION at step 4, the same
 * report again is success without a change.
 *
 * `caller_sandbox_id` is the sandbox of the authenticated principal. facts.now and
 * facts.session_connected are used. What is added to the record lives in the arena. */
bool admission_apply(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                     const char *caller_sandbox_id,
                     const Openshell__V1__ReportSandboxConfigurationRequest *report,
                     const struct admission_generation *current,
                     const struct lifecycle_facts *facts, struct admission_result *ret_result,
                     struct error *error);

/* The public words for a rejection: gateway-authored, chosen by the family that the supervisor's
 * text begins with ("middleware", "provider", "credential", "policy"); anything else is the general
 * one. The text itself is never shown. A constant. */
const char *admission_diagnostic(const char *reported);

/* Static policy sections may change only while the marker is explicitly false (A1). */
bool admission_static_sections_open(const Openshell__V1__Sandbox *sandbox);

#endif
