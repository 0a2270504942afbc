/* A whole gateway in the test's process, with a driver that starts nothing, and a supervisor that
 * the test plays: both on the gateway's own loop, over its own socket. */
#ifndef TESTS_UNIT_GATEWAY_HARNESS_H
#define TESTS_UNIT_GATEWAY_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "gateway/live.h"
#include "gateway/server.h"
#include "openshell.pb-c.h"
#include "proto/method_table.h"
#include "rpc/rpc.h"

#define METHOD(name) (&rpc_openshell_v1_OpenShell_##name)

enum { HARNESS_PATIENCE = 30 * 1000 };

/* What the supervisor does with a channel that it is asked to open. */
enum behaviour {
    SERVE,       /* started, "out", "err", exit 3 */
    SERVE_INPUT, /* started; each input comes back as output; exit 0 at its end */
    IGNORE,      /* nothing */
    REFUSE,      /* relay_open_result "no" */
    CUT,         /* claims, starts, then ends its call */
    EXIT_UNKNOWN,
    EXIT_SIGNAL, /* 9 */
    EXIT_TIMED_OUT,
};

struct harness;

/* One RelayStream of the supervisor. */
struct leg {
    struct harness *harness;
    struct rpc_call *call;
};

struct harness {
    char directory[64];
    struct gateway *gateway;
    struct driver driver; /* the fake */
    char sandbox_id[64];
    char *token;
    bool running;      /* what the fake driver says of the supervisor */
    bool refuse_start; /* the fake driver cannot start anything */
    bool hold_stop;    /* it takes its time to stop and delete, until harness_release_stop */
    driver_done held_done;
    void *held_user;
    size_t starts, stops, removals;

    enum behaviour behaviour;
    struct rpc_channel *supervisor;
    struct rpc_call *session;
    bool accepted;
    uint64_t epoch;
    size_t asked;   /* RelayOpen messages that arrived */
    size_t aborted; /* legs that got an abort */
    size_t ended;   /* legs that got the end of input */
    size_t legs;    /* open ones */
    char last_channel[64];
    struct reactor_timer *patience;
};

#define INSTANCE "7b1ab1a6-96a1-4a7a-9a0e-3f1f7a3d6e11"

/* ---- the driver ---- */

static struct harness *harness_current;

static inline void fake_start(struct driver *driver, const struct driver_launch *launch,
                              driver_done done, void *user)
{
    (void)driver;
    struct harness *harness = harness_current;
    harness->starts++;
    if (harness->refuse_start) {
        struct error error = {0};
        error_set(&error, ERROR_UNAVAILABLE, "no machine");
        done(&error, user);
        error_clear(&error);
        return;
    }
    snprintf(harness->sandbox_id, sizeof(harness->sandbox_id), "%s", launch->sandbox_id);
    free(harness->token);
    harness->token = memory_strdup(launch->gateway_token);
    harness->running = true;
    done(NULL, user);
}

static inline void harness_end(struct harness *harness, driver_done done, void *user)
{
    harness->running = false;
    if (!harness->hold_stop) {
        done(NULL, user);
        return;
    }
    harness->held_done = done;
    harness->held_user = user;
}

static inline void harness_release_stop(struct harness *harness)
{
    driver_done done = harness->held_done;
    harness->held_done = NULL;
    harness->hold_stop = false;
    done(NULL, harness->held_user);
}

static inline void fake_stop(struct driver *driver, const char *id, driver_done done, void *user)
{
    (void)driver;
    (void)id;
    harness_current->stops++;
    harness_end(harness_current, done, user);
}

static inline void fake_remove(struct driver *driver, const char *id, driver_done done, void *user)
{
    (void)driver;
    (void)id;
    harness_current->removals++;
    harness_end(harness_current, done, user);
}

static inline bool fake_adopt(struct driver *driver, const char *id, struct driver_end *ret_end)
{
    (void)driver;
    (void)id;
    ret_end->cause = DRIVER_END_ABSENT;
    return false;
}

static inline bool fake_running(struct driver *driver, const char *id)
{
    (void)driver;
    (void)id;
    return harness_current->running;
}

static inline bool fake_owns(struct driver *driver, pid_t process)
{
    (void)driver;
    (void)process;
    return false;
}

static const struct driver_class fake_class = {
    .name = "fake",
    .version = "0",
    .start = fake_start,
    .stop = fake_stop,
    .remove = fake_remove,
    .adopt = fake_adopt,
    .running = fake_running,
    .owns = fake_owns,
};

/* ---- waiting ---- */

static inline void harness_impatient(void *argument)
{
    (void)argument;
    fprintf(stderr, "what was waited for did not happen\n");
    abort();
}

#define HARNESS_WAIT(harness, condition)                                                           \
    do {                                                                                           \
        while (!(condition))                                                                       \
            reactor_run_once((harness)->gateway->reactor);                                         \
    } while (0)

static inline struct rpc_channel *harness_connect(struct harness *harness)
{
    struct error error = {0};
    int descriptor = file_unix_connect(harness->gateway->socket_path, &error);
    assert_true(descriptor >= 0);
    struct rpc_channel *channel = rpc_channel_new(harness->gateway->rpc, descriptor, &error);
    assert_non_null(channel);
    return channel;
}

/* ---- the supervisor's legs ---- */

static inline void leg_send(struct leg *leg, Openshell__Ext__V1__SessionFrame *frame)
{
    Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
    message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION;
    message.session = frame;
    rpc_call_send(leg->call, &message.base);
}

static inline void leg_output(struct leg *leg, bool to_stderr, const void *data, size_t length)
{
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    ProtobufCBinaryData bytes = {.len = length, .data = (uint8_t *)data};
    frame.frame_case = to_stderr ? OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDERR
                                 : OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDOUT;
    if (to_stderr)
        frame.stderr = bytes;
    else
        frame.stdout = bytes;
    leg_send(leg, &frame);
}

static inline void leg_exit(struct leg *leg, int kind, int value, bool timed_out)
{
    Openshell__Ext__V1__SessionExit exit = OPENSHELL__EXT__V1__SESSION_EXIT__INIT;
    exit.status_case = kind;
    if (kind == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_UNKNOWN)
        exit.unknown = (char *)"the reaper is gone";
    else if (kind == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED)
        exit.signaled = value;
    else
        exit.exited = value;
    exit.timed_out = timed_out;
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_EXIT;
    frame.exit = &exit;
    leg_send(leg, &frame);
    rpc_call_half_close(leg->call);
}

static inline void leg_message(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    struct leg *leg = user;
    const Openshell__V1__RelayFrame *message = (const Openshell__V1__RelayFrame *)base;
    const Openshell__Ext__V1__SessionFrame *frame = message->session;
    if (frame->frame_case == OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ABORT)
        leg->harness->aborted++;
    else if (frame->frame_case == OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN)
        leg_output(leg, false, frame->stdin.data, frame->stdin.len);
    else if (frame->frame_case == OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN_EOF) {
        leg->harness->ended++;
        leg_exit(leg, OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_EXITED, 0, false);
    }
    rpc_call_read(call);
}

static inline void leg_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct leg *leg = user;
    leg->harness->legs--;
    free(leg);
}

static inline void leg_behave(struct leg *leg)
{
    Openshell__Ext__V1__SessionStarted started = OPENSHELL__EXT__V1__SESSION_STARTED__INIT;
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STARTED;
    frame.started = &started;
    leg_send(leg, &frame);
    switch (leg->harness->behaviour) {
    case SERVE:
        leg_output(leg, false, "out", 3);
        leg_output(leg, true, "err", 3);
        leg_exit(leg, OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_EXITED, 3, false);
        break;
    case EXIT_UNKNOWN:
        leg_exit(leg, OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_UNKNOWN, 0, false);
        break;
    case EXIT_SIGNAL:
        leg_exit(leg, OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED, 9, false);
        break;
    case EXIT_TIMED_OUT:
        leg_exit(leg, OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED, 15, true);
        break;
    case CUT:
        rpc_call_half_close(leg->call);
        break;
    default:
        break;
    }
}

/* Claims a channel. */
static inline struct leg *leg_open(struct harness *harness, const char *channel_id)
{
    static const struct rpc_call_events events = {.on_message = leg_message, .on_done = leg_done};
    struct leg *leg = memory_new_of(struct leg);
    leg->harness = harness;
    harness->legs++;
    struct rpc_call_options options = {.bearer = harness->token};
    leg->call = rpc_call_start(harness->supervisor, METHOD(RelayStream), &options, &events, leg);
    Openshell__V1__RelayInit init = OPENSHELL__V1__RELAY_INIT__INIT;
    init.channel_id = (char *)channel_id;
    Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
    message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_INIT;
    message.init = &init;
    rpc_call_send(leg->call, &message.base);
    rpc_call_read(leg->call);
    return leg;
}

/* ---- the supervisor's session ---- */

static inline void session_refuse_channel(struct harness *harness, const char *channel_id)
{
    Openshell__V1__RelayOpenResult result = OPENSHELL__V1__RELAY_OPEN_RESULT__INIT;
    result.channel_id = (char *)channel_id;
    result.error = (char *)"no";
    Openshell__V1__SupervisorMessage message = OPENSHELL__V1__SUPERVISOR_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_RELAY_OPEN_RESULT;
    message.relay_open_result = &result;
    rpc_call_send(harness->session, &message.base);
}

static inline void session_message(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    struct harness *harness = user;
    const Openshell__V1__GatewayMessage *message = (const Openshell__V1__GatewayMessage *)base;
    if (message->payload_case == OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_SESSION_ACCEPTED) {
        harness->accepted = true;
    } else if (message->payload_case == OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_RELAY_OPEN) {
        harness->asked++;
        snprintf(harness->last_channel, sizeof(harness->last_channel), "%s",
                 message->relay_open->channel_id);
        if (harness->behaviour == REFUSE)
            session_refuse_channel(harness, message->relay_open->channel_id);
        else if (harness->behaviour != IGNORE)
            leg_behave(leg_open(harness, message->relay_open->channel_id));
    }
    rpc_call_read(call);
}

static inline void session_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct harness *harness = user;
    harness->session = NULL;
    harness->accepted = false;
}

static inline void harness_open_session(struct harness *harness)
{
    static const struct rpc_call_events events = {.on_message = session_message,
                                                  .on_done = session_done};
    struct rpc_call_options options = {.bearer = harness->token};
    harness->supervisor = harness_connect(harness);
    harness->session =
        rpc_call_start(harness->supervisor, METHOD(ConnectSupervisor), &options, &events, harness);
    Openshell__V1__SupervisorHello hello = OPENSHELL__V1__SUPERVISOR_HELLO__INIT;
    hello.sandbox_id = harness->sandbox_id;
    hello.instance_id = (char *)INSTANCE;
    hello.connection_epoch = ++harness->epoch;
    Openshell__V1__SupervisorMessage message = OPENSHELL__V1__SUPERVISOR_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_HELLO;
    message.hello = &hello;
    rpc_call_send(harness->session, &message.base);
    rpc_call_read(harness->session);
    HARNESS_WAIT(harness, harness->accepted || harness->session == NULL);
    assert_true(harness->accepted);
}

static inline void harness_cut_session(struct harness *harness)
{
    rpc_channel_free(harness->supervisor);
    harness->supervisor = NULL;
    HARNESS_WAIT(harness, harness->session == NULL && harness->legs == 0);
    struct live_sandbox *live = live_find(harness->gateway, harness->sandbox_id);
    HARNESS_WAIT(harness, live->session == NULL);
}

/* ---- setting up ---- */

static inline const ProtobufCMessage *harness_unary(struct harness *harness, const char *bearer,
                                                    const struct rpc_method *method,
                                                    const ProtobufCMessage *request,
                                                    struct arena *arena)
{
    struct rpc_channel *channel = harness_connect(harness);
    struct rpc_call_options options = {.bearer = bearer};
    struct error error = {0};
    const ProtobufCMessage *response =
        rpc_unary_wait(channel, method, &options, request, arena, &error);
    if (response == NULL)
        print_error("%s: %s\n", method->name, error.message);
    assert_non_null(response);
    rpc_channel_free(channel);
    return response;
}

static inline void harness_report(struct harness *harness, struct arena *arena,
                                  Openshell__V1__ConfigurationAdmissionState state)
{
    Openshell__Sandbox__V1__GetSandboxConfigRequest ask =
        OPENSHELL__SANDBOX__V1__GET_SANDBOX_CONFIG_REQUEST__INIT;
    const Openshell__Sandbox__V1__GetSandboxConfigResponse *config =
        (const Openshell__Sandbox__V1__GetSandboxConfigResponse *)harness_unary(
            harness, harness->token, METHOD(GetSandboxConfig), &ask.base, arena);
    Openshell__V1__SandboxConfigurationAdmission admission =
        OPENSHELL__V1__SANDBOX_CONFIGURATION_ADMISSION__INIT;
    admission.instance_id = (char *)INSTANCE;
    admission.state = state;
    admission.policy_version = config->version;
    admission.policy_hash = config->policy_hash;
    admission.config_revision = config->config_revision;
    admission.provider_env_revision = config->provider_env_revision;
    Openshell__V1__ReportSandboxConfigurationRequest report =
        OPENSHELL__V1__REPORT_SANDBOX_CONFIGURATION_REQUEST__INIT;
    report.sandbox_id = harness->sandbox_id;
    report.admission = &admission;
    report.expected_instance_id = config->configuration_instance_id;
    harness_unary(harness, harness->token, METHOD(ReportSandboxConfiguration), &report.base, arena);
}

static inline Openshell__Datamodel__V1__WorkspaceSelector *harness_scope(void)
{
    static Openshell__Datamodel__V1__WorkspaceSelector scope;
    openshell__datamodel__v1__workspace_selector__init(&scope);
    scope.selection_case = OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_WORKSPACE;
    scope.workspace = (char *)"default";
    return &scope;
}

static inline void harness_create(struct harness *harness)
{
    struct arena *arena = arena_new(0);
    Openshell__V1__SandboxSpec spec = OPENSHELL__V1__SANDBOX_SPEC__INIT;
    Openshell__V1__CreateSandboxRequest create = OPENSHELL__V1__CREATE_SANDBOX_REQUEST__INIT;
    create.workspace_scope = harness_scope();
    create.name = (char *)"job";
    create.spec = &spec;
    harness_unary(harness, NULL, METHOD(CreateSandbox), &create.base, arena);
    harness_report(
        harness, arena,
        OPENSHELL__V1__CONFIGURATION_ADMISSION_STATE__CONFIGURATION_ADMISSION_STATE_PENDING);
    harness_report(
        harness, arena,
        OPENSHELL__V1__CONFIGURATION_ADMISSION_STATE__CONFIGURATION_ADMISSION_STATE_ACCEPTED);
    harness_open_session(harness);
    arena_free(arena);
}

static inline void harness_set_directory(const struct harness *harness, const char *variable,
                                         const char *name)
{
    CLEANUP_FREE char *path = memory_printf("%s/%s", harness->directory, name);
    setenv(variable, path, 1);
}

static inline int harness_setup(void **state)
{
    struct harness *harness = memory_new_of(struct harness);
    harness_current = harness;
    strcpy(harness->directory, "/tmp/openshell-test-XXXXXX");
    assert_non_null(mkdtemp(harness->directory));
    harness_set_directory(harness, "OPENSHELL_RUN_DIR", "run");
    harness_set_directory(harness, "XDG_STATE_HOME", "state");
    harness_set_directory(harness, "XDG_CONFIG_HOME", "config");
    struct error error = {0};
    harness->gateway = server_open(NULL, &error);
    if (harness->gateway == NULL)
        print_error("%s\n", error.message);
    assert_non_null(harness->gateway);
    harness->driver.class = &fake_class;
    harness->gateway->driver = &harness->driver;
    harness->patience = reactor_timer_start(harness->gateway->reactor, HARNESS_PATIENCE, 0,
                                            harness_impatient, NULL);
    harness_create(harness);
    *state = harness;
    return 0;
}

/* The gateway's own end leaves to the end of the process what belongs to calls. */
static inline int harness_teardown(void **state)
{
    struct harness *harness = *state;
    reactor_timer_cancel(harness->patience);
    server_close(harness->gateway);
    file_remove_tree(harness->directory, NULL);
    return 0;
}

#endif
