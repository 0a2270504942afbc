#include "boundary_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "method_table.h"

extern char **environ;

#define STATE(name)                                                                                \
    OPENSHELL__V1__CONFIGURATION_ADMISSION_STATE__CONFIGURATION_ADMISSION_STATE_##name

static struct reactor_timer *patience;

static void on_impatient(void *argument)
{
    ((struct fixture *)argument)->timed_out = true;
}

void fixture_patience_begin(struct fixture *fixture)
{
    fixture->timed_out = false;
    patience = reactor_timer_start(fixture->reactor, FIXTURE_PATIENCE_MILLISECONDS, 0, on_impatient,
                                   fixture);
}

void fixture_patience_end(struct fixture *fixture)
{
    (void)fixture;
    reactor_timer_cancel(patience);
    patience = NULL;
}

/* ---- the stand-in gateway ---- */

static bool authorize(struct rpc_call *call, void *user, struct error *error)
{
    struct fixture *fixture = user;
    const char *bearer = rpc_call_metadata(call, "authorization", NULL);
    struct session_token_claims claims;
    if (bearer == NULL || strncmp(bearer, "Bearer ", 7) != 0)
        return error_set(error, ERROR_UNAUTHENTICATED, "no bearer");
    return session_token_verify(fixture->key, SESSION_TOKEN_GATEWAY, fixture->supervisor.gateway_id,
                                bearer + 7, &claims, error);
}

static void get_config(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    const Openshell__Sandbox__V1__GetSandboxConfigRequest *request =
        (const void *)rpc_call_request(call);
    assert_string_equal(request->name, fixture->supervisor.sandbox_name);
    fixture->configs_fetched++;
    Openshell__Sandbox__V1__GetSandboxConfigResponse response =
        OPENSHELL__SANDBOX__V1__GET_SANDBOX_CONFIG_RESPONSE__INIT;
    response.policy = &fixture->policy;
    response.version = 7;
    response.policy_hash = (char *)"hash";
    response.config_revision = 11;
    response.provider_env_revision = 13;
    response.configuration_admitted = !fixture->not_admitted;
    response.configuration_instance_id = (char *)"the-fence";
    rpc_call_respond(call, &response.base);
}

static void report_configuration(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    const Openshell__V1__ReportSandboxConfigurationRequest *request =
        (const void *)rpc_call_request(call);
    const Openshell__V1__SandboxConfigurationAdmission *admission = request->admission;
    assert_string_equal(request->sandbox_id, fixture->supervisor.sandbox_id);
    assert_true(fixture->report_count < FIXTURE_REPORTS_LIMIT);
    struct fixture_report *report = &fixture->reports[fixture->report_count++];
    report->state = admission->state;
    report->refused_before_start = request->refused_before_start;
    report->policy_version = admission->policy_version;
    snprintf(report->expected_instance_id, sizeof(report->expected_instance_id), "%s",
             request->expected_instance_id);
    snprintf(report->instance_id, sizeof(report->instance_id), "%s", admission->instance_id);
    if (admission->state == STATE(ACCEPTED)) {
        assert_string_equal(admission->policy_hash, "hash");
        assert_int_equal(admission->config_revision, 11);
        assert_int_equal(admission->provider_env_revision, 13);
    }
    if (admission->state == STATE(ACCEPTED) && fixture->abort_accepted > 0) {
        fixture->abort_accepted--;
        struct error error = {0};
        error_set(&error, ERROR_ABORTED, "fetch again");
        rpc_call_fail(call, &error);
        return;
    }
    Openshell__V1__ReportSandboxConfigurationResponse response =
        OPENSHELL__V1__REPORT_SANDBOX_CONFIGURATION_RESPONSE__INIT;
    rpc_call_respond(call, &response.base);
}

static void on_session_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct fixture *fixture = user;
    const Openshell__V1__SupervisorMessage *from = (const void *)message;
    rpc_call_read(call);
    if (from->payload_case == OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_RELAY_OPEN_RESULT) {
        for (struct fixture_exec *exec = fixture->execs; exec != NULL; exec = exec->next)
            if (strcmp(exec->channel_id, from->relay_open_result->channel_id) == 0) {
                exec->done = true;
                exec->error_code = ERROR_UNAVAILABLE;
                snprintf(exec->error_message, sizeof(exec->error_message), "%s",
                         from->relay_open_result->error);
            }
        return;
    }
    if (from->payload_case != OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_HELLO)
        return;
    fixture->epoch = from->hello->connection_epoch;
    snprintf(fixture->session_instance, sizeof(fixture->session_instance), "%s",
             from->hello->instance_id);
    Openshell__V1__SessionAccepted accepted = OPENSHELL__V1__SESSION_ACCEPTED__INIT;
    accepted.session_id = (char *)"session";
    Openshell__V1__GatewayMessage answer = OPENSHELL__V1__GATEWAY_MESSAGE__INIT;
    answer.payload_case = OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_SESSION_ACCEPTED;
    answer.session_accepted = &accepted;
    rpc_call_send(call, &answer.base);
    fixture->session = call;
    fixture->sessions++;
}

static void on_session_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)status;
    struct fixture *fixture = user;
    if (fixture->session == call)
        fixture->session = NULL;
}

static void connect_supervisor(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {.on_message = on_session_message,
                                                  .on_done = on_session_done};
    rpc_call_accept(call, &EVENTS, user);
    rpc_call_read(call);
}

static void report_exit(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    const Openshell__V1__ReportMainProcessExitRequest *request =
        (const void *)rpc_call_request(call);
    fixture->main_exited = true;
    fixture->main_code = request->exit_code;
    Openshell__V1__ReportMainProcessExitResponse response =
        OPENSHELL__V1__REPORT_MAIN_PROCESS_EXIT_RESPONSE__INIT;
    rpc_call_respond(call, &response.base);
}

static void finalize_exit(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    fixture->main_finalized = true;
    Openshell__V1__FinalizeMainProcessExitResponse response =
        OPENSHELL__V1__FINALIZE_MAIN_PROCESS_EXIT_RESPONSE__INIT;
    rpc_call_respond(call, &response.base);
}

/* ---- relays ---- */

static void take_exit(struct fixture_exec *exec, const Openshell__Ext__V1__SessionExit *exit_frame)
{
    exec->done = true;
    exec->exit_case = exit_frame->status_case;
    exec->timed_out = exit_frame->timed_out;
    exec->output_held = exit_frame->output_held;
    if (exit_frame->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_EXITED)
        exec->code = exit_frame->exited;
    else if (exit_frame->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED)
        exec->code = exit_frame->signaled;
}

static void take_session_frame(struct fixture_exec *exec,
                               const Openshell__Ext__V1__SessionFrame *frame)
{
    switch (frame->frame_case) {
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STARTED:
        exec->started = true;
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDOUT:
        assert_true(exec->started);
        buffer_append(&exec->output, frame->stdout.data, frame->stdout.len);
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDERR:
        assert_true(exec->started);
        buffer_append(&exec->error_output, frame->stderr.data, frame->stderr.len);
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_EXIT:
        take_exit(exec, frame->exit);
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ERROR:
        exec->done = true;
        exec->error_code = frame->error->code;
        snprintf(exec->error_message, sizeof(exec->error_message), "%s", frame->error->message);
        break;
    default:
        fail_msg("session frame %d", frame->frame_case);
    }
}

struct claim {
    struct fixture *fixture;
    struct fixture_exec *exec;
};

static void on_relay_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct claim *claim = user;
    const Openshell__V1__RelayFrame *frame = (const void *)message;
    if (claim->exec == NULL) {
        assert_int_equal(frame->payload_case, OPENSHELL__V1__RELAY_FRAME__PAYLOAD_INIT);
        for (struct fixture_exec *exec = claim->fixture->execs; exec != NULL; exec = exec->next)
            if (strcmp(exec->channel_id, frame->init->channel_id) == 0)
                claim->exec = exec;
        assert_non_null(claim->exec);
        claim->exec->call = call;
    } else {
        assert_int_equal(frame->payload_case, OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION);
        assert_false(claim->exec->done); /* nothing follows the end */
        take_session_frame(claim->exec, frame->session);
    }
    if (!claim->exec->unread)
        rpc_call_read(call);
}

static void on_relay_end(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call);
}

static void on_relay_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct claim *claim = user;
    struct fixture_exec *exec = claim->exec;
    if (exec != NULL) {
        exec->call = NULL;
        if (!exec->done)
            exec->error_code = ERROR_CANCELLED;
        exec->done = true;
    }
    free(claim);
}

static void relay_stream(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {
        .on_message = on_relay_message, .on_end = on_relay_end, .on_done = on_relay_done};
    struct claim *claim = memory_new_of(struct claim);
    claim->fixture = user;
    rpc_call_accept(call, &EVENTS, claim);
    rpc_call_read(call);
}

void fixture_exec_begin(struct fixture *fixture, struct fixture_exec *exec, char **argv,
                        void (*change)(Openshell__Ext__V1__SessionStart *start))
{
    exec->fixture = fixture;
    exec->next = fixture->execs;
    fixture->execs = exec;
    uuid_generate(exec->channel_id);
    Openshell__Ext__V1__SessionStart start = OPENSHELL__EXT__V1__SESSION_START__INIT;
    ProtobufCBinaryData command[32];
    for (; argv[start.n_command] != NULL; start.n_command++)
        command[start.n_command] =
            (ProtobufCBinaryData){strlen(argv[start.n_command]), (uint8_t *)argv[start.n_command]};
    char request_id[UUID_SIZE];
    uuid_generate(request_id);
    Google__Protobuf__Timestamp expiry = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    expiry.seconds = clock_realtime_milliseconds() / 1000 + 30;
    start.kind = OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_EXEC;
    start.command = command;
    start.request_id = request_id;
    start.expiry = &expiry;
    start.no_login_shell = 1;
    if (change != NULL)
        change(&start);
    Openshell__Ext__V1__SessionTarget target = OPENSHELL__EXT__V1__SESSION_TARGET__INIT;
    target.start = &start;
    Openshell__V1__RelayOpen open = OPENSHELL__V1__RELAY_OPEN__INIT;
    open.channel_id = exec->channel_id;
    open.target_case = OPENSHELL__V1__RELAY_OPEN__TARGET_SESSION;
    open.session = &target;
    Openshell__V1__GatewayMessage message = OPENSHELL__V1__GATEWAY_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_RELAY_OPEN;
    message.relay_open = &open;
    assert_non_null(fixture->session);
    assert_true(rpc_call_send(fixture->session, &message.base));
}

void fixture_exec_send(struct fixture_exec *exec, const Openshell__Ext__V1__SessionFrame *frame)
{
    FIXTURE_RUN_UNTIL(exec->fixture, exec->call != NULL || exec->done);
    if (exec->call == NULL)
        return;
    Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
    message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION;
    message.session = (Openshell__Ext__V1__SessionFrame *)frame;
    rpc_call_send(exec->call, &message.base);
}

void fixture_exec_input(struct fixture_exec *exec, const void *data, size_t length)
{
    const uint8_t *bytes = data;
    while (length > 0) {
        Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
        frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN;
        frame.stdin.data = (uint8_t *)bytes;
        frame.stdin.len = length < 65536 ? length : 65536;
        fixture_exec_send(exec, &frame);
        FIXTURE_RUN_UNTIL(exec->fixture, exec->call == NULL || rpc_call_unsent(exec->call) < 4);
        bytes += frame.stdin.len;
        length -= frame.stdin.len;
    }
}

void fixture_exec_end_input(struct fixture_exec *exec)
{
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN_EOF;
    frame.stdin_eof = 1;
    fixture_exec_send(exec, &frame);
}

void fixture_exec_read(struct fixture_exec *exec)
{
    exec->unread = false;
    if (exec->call != NULL)
        rpc_call_read(exec->call);
}

static void without_input(Openshell__Ext__V1__SessionStart *start)
{
    start->stdin_complete = 1;
}

void fixture_exec_run(struct fixture *fixture, struct fixture_exec *exec, char **argv)
{
    fixture_exec_begin(fixture, exec, argv, without_input);
    FIXTURE_RUN_UNTIL(fixture, exec->done);
}

void fixture_exec_free(struct fixture_exec *exec)
{
    FIXTURE_RUN_UNTIL(exec->fixture, exec->call == NULL);
    for (struct fixture_exec **link = &exec->fixture->execs; *link != NULL; link = &(*link)->next)
        if (*link == exec) {
            *link = exec->next;
            break;
        }
    buffer_free(&exec->output);
    buffer_free(&exec->error_output);
    memset(exec, 0, sizeof(*exec));
}

/* ---- its socket ---- */

static void on_connection_closed(struct rpc_connection *connection, void *user)
{
    struct fixture *fixture = user;
    if (fixture->connection == connection)
        fixture->connection = NULL;
}

static void on_gateway_connection(int events, void *argument)
{
    (void)events;
    struct fixture *fixture = argument;
    int descriptor = accept4(fixture->gateway_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0)
        return;
    struct rpc_connection_events connection_events = {on_connection_closed, fixture};
    fixture->connection =
        rpc_server_accept(fixture->server, descriptor, 0, &connection_events, NULL);
    assert_non_null(fixture->connection);
}

void fixture_gateway_up(struct fixture *fixture)
{
    fixture->gateway_listener =
        file_unix_listen(fixture->supervisor.gateway_socket, 0600, 16, NULL);
    assert_true(fixture->gateway_listener >= 0);
    fixture->gateway_watch = reactor_watch_start(fixture->reactor, fixture->gateway_listener,
                                                 UV_READABLE, on_gateway_connection, fixture, NULL);
}

void fixture_gateway_down(struct fixture *fixture)
{
    reactor_watch_cancel(fixture->gateway_watch);
    close(fixture->gateway_listener);
    unlink(fixture->supervisor.gateway_socket);
    if (fixture->connection != NULL)
        rpc_connection_close(fixture->connection);
    FIXTURE_RUN_UNTIL(fixture, fixture->connection == NULL && fixture->session == NULL);
}

/* ---- the driver's part ---- */

static char *in_directory(const struct fixture *fixture, const char *name)
{
    return memory_printf("%s/%s", fixture->directory, name);
}

static char *new_uuid(void)
{
    char text[UUID_SIZE];
    uuid_generate(text);
    return memory_strdup(text);
}

static char *sign(struct fixture *fixture, enum session_token_kind kind)
{
    struct session_token_claims claims = {.auth_epoch = fixture->supervisor.auth_epoch};
    snprintf(claims.sandbox_id, sizeof(claims.sandbox_id), "%s", fixture->supervisor.sandbox_id);
    snprintf(claims.generation, sizeof(claims.generation), "%s", fixture->supervisor.generation);
    char *token =
        session_token_sign(fixture->key, kind, fixture->supervisor.gateway_id, &claims, NULL);
    assert_non_null(token);
    return token;
}

/* $TMPDIR, which must be short enough for socket paths, or /tmp. */
static void make_directory(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");
    int length = snprintf(path, size, "%s/openshell-boundary-XXXXXX", base != NULL ? base : "/tmp");
    assert_true(length > 0 && (size_t)length < size);
    assert_non_null(mkdtemp(path));
}

static char cache[64];

static void remove_cache(void)
{
    file_remove_tree(cache, NULL);
}

/* What sandboxes share is made once for all tests. */
static char *shared_cache(void)
{
    if (cache[0] == '\0') {
        make_directory(cache, sizeof(cache));
        atexit(remove_cache);
    }
    return memory_strdup(cache);
}

static void fill_launches(struct fixture *fixture)
{
    struct launch_supervisor *supervisor = &fixture->supervisor;
    struct launch_runtime *runtime = &fixture->runtime;
    supervisor->sandbox_id = new_uuid();
    supervisor->sandbox_name = memory_strdup("demo");
    supervisor->generation = new_uuid();
    supervisor->auth_epoch = 3;
    supervisor->gateway_id = memory_strdup("stand-in");
    supervisor->gateway_socket = in_directory(fixture, "gateway.sock");
    supervisor->gateway_token = sign(fixture, SESSION_TOKEN_GATEWAY);
    supervisor->sandbox_token = sign(fixture, SESSION_TOKEN_SANDBOX);
    char pin[65];
    tls_identity_pin(fixture->identity, pin);
    supervisor->runtime_pin = memory_strdup(pin);
    supervisor->backend_name = memory_strdup("openshell-sandbox");
    supervisor->driver_descriptor = memory_strdup("descriptor");
    supervisor->stop_grace_milliseconds = 2000;

    runtime->sandbox_id = memory_strdup(supervisor->sandbox_id);
    runtime->sandbox_name = memory_strdup("demo");
    runtime->generation = memory_strdup(supervisor->generation);
    runtime->auth_epoch = 3;
    runtime->gateway_id = memory_strdup("stand-in");
    runtime->supervisor_socket = in_directory(fixture, "boundary.sock");
    runtime->verification_key_id = memory_strdup(session_token_key_id(fixture->key));
    runtime->verification_key_pem = session_token_key_public_pem(fixture->key);
    runtime->driver_descriptor = memory_strdup("descriptor");
    runtime->state_directory = in_directory(fixture, "state");
    runtime->cache_directory = shared_cache();
    runtime->host_id_base = getuid() == 0 ? 0x70000000u + 65536u * (unsigned)(getpid() % 1000) : 0;
    runtime->process_limit = 512;
    assert_true(file_make_private_directory(runtime->state_directory, NULL));
    assert_true(file_make_private_directory(runtime->cache_directory, NULL));
}

int fixture_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    struct fixture *fixture = memory_new_of(struct fixture);
    make_directory(fixture->directory, sizeof(fixture->directory));
    snprintf(fixture->supervisor_lock, sizeof(fixture->supervisor_lock), "%s/supervisor.lock",
             fixture->directory);
    snprintf(fixture->runtime_lock, sizeof(fixture->runtime_lock), "%s/runtime.lock",
             fixture->directory);
    fixture->key = session_token_key_generate(NULL);
    fixture->identity = tls_identity_generate("openshell-sandbox", NULL);
    fill_launches(fixture);
    openshell__sandbox__v1__sandbox_policy__init(&fixture->policy);
    fixture->policy.version = 1;

    fixture->reactor = reactor_new(NULL);
    fixture->rpc = rpc_runtime_new(fixture->reactor, NULL);
    fixture->server = rpc_server_new(fixture->rpc, authorize, fixture);
    rpc_server_handle(fixture->server, &rpc_openshell_v1_OpenShell_GetSandboxConfig, get_config);
    rpc_server_handle(fixture->server, &rpc_openshell_v1_OpenShell_ReportSandboxConfiguration,
                      report_configuration);
    rpc_server_handle(fixture->server, &rpc_openshell_v1_OpenShell_ConnectSupervisor,
                      connect_supervisor);
    rpc_server_handle(fixture->server, &rpc_openshell_v1_OpenShell_RelayStream, relay_stream);
    rpc_server_handle(fixture->server, &rpc_openshell_v1_OpenShell_ReportMainProcessExit,
                      report_exit);
    rpc_server_handle(fixture->server, &rpc_openshell_v1_OpenShell_FinalizeMainProcessExit,
                      finalize_exit);
    fixture_gateway_up(fixture);
    *state = fixture;
    return 0;
}

/* A pipe's end from which the text can be read; the text fits into the pipe. */
static int pipe_with(const struct buffer *text)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(file_write_all(ends[1], text->data, text->length, NULL));
    close(ends[1]);
    return ends[0];
}

static pid_t spawn(const struct fixture *fixture, const char *program, int third, int fourth,
                   int fifth)
{
    char *path = memory_printf("%s/%s", PROGRAMS_DIRECTORY, program);
    char *log = memory_printf("%s/%s.log", fixture->directory, program);
    char *argv[] = {path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    /* Out of the way of 3 to 5 first. */
    int from[3] = {third, fourth, fifth};
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, from[i], 200 + i);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, 200 + i, 3 + i);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t process = 0;
    assert_int_equal(posix_spawn(&process, path, &actions, &attributes, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(log);
    free(path);
    return process;
}

void fixture_launch(struct fixture *fixture, char **command)
{
    struct buffer supervisor = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    struct buffer runtime = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    struct buffer secret_text = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    fixture->supervisor.main.command = command;
    fixture->supervisor.main.columns = 80;
    fixture->supervisor.main.rows = 24;
    struct launch_runtime_secret secret = {tls_identity_certificate_pem(fixture->identity),
                                           tls_identity_key_pem(fixture->identity)};
    assert_true(launch_supervisor_encode(&fixture->supervisor, &supervisor, NULL));
    assert_true(launch_runtime_encode(&fixture->runtime, &runtime, NULL));
    assert_true(launch_runtime_secret_encode(&secret, &secret_text, NULL));
    launch_runtime_secret_free(&secret);
    fixture->supervisor.main.command = NULL;

    int listener = file_unix_listen(fixture->runtime.supervisor_socket, 0600, 16, NULL);
    assert_true(listener >= 0);
    int pipes[] = {pipe_with(&supervisor), pipe_with(&runtime), pipe_with(&secret_text)};
    int locks[] = {owner_lock_create(fixture->supervisor_lock, NULL),
                   owner_lock_create(fixture->runtime_lock, NULL)};
    assert_true(locks[0] >= 0 && locks[1] >= 0);
    fixture->runtime_process = spawn(fixture, "openshell-sandbox", pipes[1], pipes[2], locks[1]);
    fixture->supervisor_process =
        spawn(fixture, "openshell-supervisor", pipes[0], listener, locks[0]);
    for (int i = 0; i < 3; i++)
        close(pipes[i]);
    close(listener);
    close(locks[0]);
    close(locks[1]);
    buffer_wipe(&supervisor);
    buffer_wipe(&runtime);
    buffer_wipe(&secret_text);
}

void fixture_start(struct fixture *fixture, char **command)
{
    int64_t before = clock_monotonic_milliseconds();
    fixture_launch(fixture, command);
    FIXTURE_RUN_UNTIL(fixture, fixture->session != NULL);
    print_message("session after %lld ms\n", (long long)(clock_monotonic_milliseconds() - before));
}

/* ---- the end ---- */

static bool reap(pid_t *process, int *ret_status)
{
    if (*process != 0 && waitpid(*process, ret_status, WNOHANG) == *process)
        *process = 0;
    return *process == 0;
}

static void on_child(int number, void *argument)
{
    (void)number;
    (void)argument;
}

void fixture_wait_end(struct fixture *fixture, struct fixture_end *ret_end)
{
    struct reactor_signal *child =
        reactor_signal_start(fixture->reactor, SIGCHLD, on_child, NULL, NULL);
    FIXTURE_RUN_UNTIL(fixture, reap(&fixture->supervisor_process, &ret_end->supervisor_status) &
                                   reap(&fixture->runtime_process, &ret_end->runtime_status));
    reactor_signal_cancel(child);
    assert_false(owner_lock_is_held(fixture->supervisor_lock));
    assert_false(owner_lock_is_held(fixture->runtime_lock));
    assert_true(owner_lock_read(fixture->supervisor_lock, &ret_end->supervisor, NULL));
    assert_true(owner_lock_read(fixture->runtime_lock, &ret_end->runtime, NULL));
}

static void show_log(const struct fixture *fixture, const char *program)
{
    char *path = memory_printf("%s/%s.log", fixture->directory, program);
    struct buffer text = BUFFER_INIT(1024 * 1024);
    if (file_read(path, &text, NULL))
        print_message("%s", buffer_text(&text));
    buffer_free(&text);
    free(path);
}

int fixture_tear_down(void **state)
{
    struct fixture *fixture = *state;
    pid_t processes[] = {fixture->supervisor_process, fixture->runtime_process};
    for (int i = 0; i < 2; i++)
        if (processes[i] != 0) {
            kill(processes[i], SIGKILL);
            waitpid(processes[i], NULL, 0);
        }
    if (getenv("OPENSHELL_LOG_LEVEL") != NULL) {
        show_log(fixture, "openshell-sandbox");
        show_log(fixture, "openshell-supervisor");
    }
    struct error error = {0};
    if (!file_remove_tree(fixture->directory, &error))
        print_message("%s\n", error.message);
    error_clear(&error);
    rpc_server_free(fixture->server);
    reactor_watch_cancel(fixture->gateway_watch);
    rpc_runtime_free(fixture->rpc);
    reactor_free(fixture->reactor);
    close(fixture->gateway_listener);
    launch_supervisor_free(&fixture->supervisor);
    launch_runtime_free(&fixture->runtime);
    tls_identity_free(fixture->identity);
    session_token_key_free(fixture->key);
    free(fixture);
    return 0;
}
