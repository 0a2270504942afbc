#include "supervisor/admission.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "method_table.h"

#define STATE(name)                                                                                \
    OPENSHELL__V1__CONFIGURATION_ADMISSION_STATE__CONFIGURATION_ADMISSION_STATE_##name

enum { ERROR_TEXT_LIMIT = 512 }; /* behaviour reference 3.2 */

struct admission {
    struct reactor *reactor;
    struct gateway_link *link;
    const struct launch_supervisor *launch;
    const char *instance_id;
    int64_t give_up;
    struct admission_events events;

    struct arena *arena; /* of the configuration */
    sandbox_config *config;
    bool registered;
    unsigned fetches;
    int64_t waits_since; /* 0: does not wait for a repair */
    uint64_t rejected_revision;
    bool rejected;
    struct reactor_timer *timer;

    /* The report under way. */
    Openshell__V1__ReportSandboxConfigurationRequest report;
    Openshell__V1__SandboxConfigurationAdmission admission;
    char error_text[ERROR_TEXT_LIMIT];
    void (*refusal_done)(void *user);
    void *refusal_user;
};

static void fail(struct admission *admission, const struct error *error)
{
    admission->events.on_failed(error, admission->events.user);
}

/* ---- reports ---- */

/* Fills in the one report with the generation of the configuration at hand. */
static void prepare_report(struct admission *admission, int state, const char *text)
{
    const sandbox_config *config = admission->config;
    openshell__v1__sandbox_configuration_admission__init(&admission->admission);
    admission->admission.instance_id = (char *)admission->instance_id;
    admission->admission.state = state;
    admission->admission.policy_version = config->version;
    admission->admission.policy_hash = config->policy_hash;
    admission->admission.config_revision = config->config_revision;
    admission->admission.provider_env_revision = config->provider_env_revision;
    snprintf(admission->error_text, sizeof(admission->error_text), "%s", text);
    admission->admission.error = admission->error_text;
    openshell__v1__report_sandbox_configuration_request__init(&admission->report);
    admission->report.sandbox_id = admission->launch->sandbox_id;
    admission->report.admission = &admission->admission;
}

static void send_report(struct admission *admission, int64_t give_up,
                        void (*done)(const ProtobufCMessage *, const struct error *, void *))
{
    gateway_link_call(admission->link, &rpc_openshell_v1_OpenShell_ReportSandboxConfiguration,
                      &admission->report.base, give_up, done, admission);
}

/* ---- the configuration ---- */

static void on_registered(const ProtobufCMessage *response, const struct error *error, void *user)
{
    (void)response;
    struct admission *admission = user;
    if (error != NULL) {
        fail(admission, error);
        return;
    }
    log_debug("registered as pending");
    admission->registered = true;
    admission->events.on_registered(admission->events.user);
}

static void keep_config(struct admission *admission, const ProtobufCMessage *response)
{
    arena_free(admission->arena);
    admission->arena = arena_new(0);
    size_t size = protobuf_c_message_get_packed_size(response);
    uint8_t *packed = arena_alloc(admission->arena, size + 1);
    protobuf_c_message_pack(response, packed);
    admission->config = openshell__sandbox__v1__get_sandbox_config_response__unpack(
        arena_protobuf_allocator(admission->arena), size, packed);
    if (admission->config == NULL)
        memory_exhausted();
}

static void on_config(const ProtobufCMessage *response, const struct error *error, void *user)
{
    struct admission *admission = user;
    if (error != NULL) {
        fail(admission, error);
        return;
    }
    keep_config(admission, response);
    if (admission->registered) {
        admission_decide(admission);
        return;
    }
    /* The instance that the gateway has stored is the fence: whoever registers names it. */
    prepare_report(admission, STATE(PENDING), "");
    admission->report.expected_instance_id = admission->config->configuration_instance_id;
    send_report(admission, admission->give_up, on_registered);
}

static void fetch(struct admission *admission)
{
    static Openshell__Sandbox__V1__GetSandboxConfigRequest request =
        OPENSHELL__SANDBOX__V1__GET_SANDBOX_CONFIG_REQUEST__INIT;
    request.name = admission->launch->sandbox_name;
    gateway_link_call(admission->link, &rpc_openshell_v1_OpenShell_GetSandboxConfig, &request.base,
                      admission->give_up, on_config, admission);
}

/* ---- the decision ---- */

/* What this supervisor can check by itself. */
static bool config_valid(const sandbox_config *config, const char **ret_why)
{
    if (!config->configuration_admitted) {
        *ret_why = config->configuration_error[0] != '\0' ? config->configuration_error
                                                          : "policy is not admitted";
        return false;
    }
    if (config->policy == NULL) {
        *ret_why = "policy is missing";
        return false;
    }
    return true;
}

static void on_pause_over(void *argument)
{
    struct admission *admission = argument;
    reactor_timer_cancel(admission->timer);
    admission->timer = NULL;
    fetch(admission);
}

static void wait_for_repair(struct admission *admission)
{
    int64_t now = clock_monotonic_milliseconds();
    if (admission->waits_since == 0)
        admission->waits_since = now;
    if (now - admission->waits_since > ADMISSION_REPAIR_MILLISECONDS) {
        struct error error = {0};
        error_set(&error, ERROR_DEADLINE_EXCEEDED, "the configuration was not repaired in time");
        fail(admission, &error);
        return;
    }
    admission->give_up = now + ADMISSION_REPAIR_MILLISECONDS;
    admission->timer = reactor_timer_start(admission->reactor, ADMISSION_REPAIR_PAUSE_MILLISECONDS,
                                           0, on_pause_over, admission);
}

static void on_rejected(const ProtobufCMessage *response, const struct error *error, void *user)
{
    (void)response;
    struct admission *admission = user;
    if (error != NULL && error->code != ERROR_ABORTED)
        fail(admission, error);
    else
        wait_for_repair(admission);
}

static void on_accepted(const ProtobufCMessage *response, const struct error *error, void *user)
{
    (void)response;
    struct admission *admission = user;
    if (error == NULL) {
        admission->waits_since = 0;
        char version[16];
        snprintf(version, sizeof(version), "%u", admission->config->version);
        const struct log_field fields[] = {{"policy_version", version},
                                           {"policy_hash", admission->config->policy_hash},
                                           {NULL, NULL}};
        log_write_fields(LOG_LEVEL_INFO, "startup", fields, "the configuration is accepted");
        admission->events.on_accepted(admission->config, admission->events.user);
    } else if (error->code == ERROR_ABORTED && ++admission->fetches < ADMISSION_FETCHES_LIMIT) {
        fetch(admission); /* it changed meanwhile */
    } else {
        fail(admission, error);
    }
}

void admission_decide(struct admission *admission)
{
    const char *why = "";
    if (config_valid(admission->config, &why)) {
        prepare_report(admission, STATE(ACCEPTED), "");
        send_report(admission, admission->give_up, on_accepted);
        return;
    }
    uint64_t revision = admission->config->config_revision;
    if (admission->rejected && admission->rejected_revision == revision) {
        wait_for_repair(admission); /* said already */
        return;
    }
    log_warn("configuration rejected: %s", why);
    admission->rejected = true;
    admission->rejected_revision = revision;
    prepare_report(admission, STATE(REJECTED), why);
    send_report(admission, admission->give_up, on_rejected);
}

bool admission_waits(const struct admission *admission)
{
    return admission->waits_since != 0;
}

/* ---- refused before start ---- */

static void on_refusal_reported(const ProtobufCMessage *response, const struct error *error,
                                void *user)
{
    (void)response;
    struct admission *admission = user;
    if (error != NULL)
        log_warn("the refusal could not be reported: %s", error->message);
    admission->refusal_done(admission->refusal_user);
}

void admission_report_refusal(struct admission *admission, const struct error *why,
                              void (*done)(void *user), void *user)
{
    admission->refusal_done = done;
    admission->refusal_user = user;
    prepare_report(admission, STATE(REJECTED), why->message);
    admission->report.refused_before_start = 1;
    send_report(admission, clock_monotonic_milliseconds(), on_refusal_reported);
}

struct admission *admission_begin(struct reactor *reactor, struct gateway_link *link,
                                  const struct launch_supervisor *launch, const char *instance_id,
                                  int64_t give_up, const struct admission_events *events)
{
    struct admission *admission = memory_new_of(struct admission);
    admission->reactor = reactor;
    admission->link = link;
    admission->launch = launch;
    admission->instance_id = instance_id;
    admission->give_up = give_up;
    admission->events = *events;
    fetch(admission);
    return admission;
}
