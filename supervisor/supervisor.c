#include "supervisor/supervisor.h"

#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/trim.h"
#include "boundary/owner_lock.h"
#include "rpc/tls_stream.h"

/* ---- the end ---- */

static void stop_loop(void *user)
{
    struct supervisor *supervisor = user;
    reactor_stop(supervisor->options.reactor);
}

/* What was logged last says why: it goes to the gateway first. */
void supervisor_end(struct supervisor *supervisor, const char *reason, int status)
{
    if (supervisor->ended)
        return;
    supervisor->ended = true;
    supervisor->exit_status = status;
    log_info("ending: %s", reason);
    if (!supervisor->stopping) /* a stop has written its reason already */
        owner_lock_end(supervisor->options.lock, reason);
    log_push_finish(supervisor->log, stop_loop, supervisor);
}

void supervisor_fail(struct supervisor *supervisor, const struct error *error)
{
    log_error("%s", error->message);
    if (supervisor->stopping) /* what is being ended may fail */
        return;
    char *reason = memory_printf("failed: %s", error->message);
    supervisor_end(supervisor, reason, EXIT_FAILURE);
    free(reason);
}

static void on_terminated(const struct error *error, void *user)
{
    if (error != NULL)
        log_warn("the boundary did not confirm its end: %s", error->message);
    supervisor_end(user, OWNER_ENDED_STOPPED, EXIT_SUCCESS);
}

static void on_stop_too_slow(void *argument)
{
    log_warn("the boundary did not end in time");
    supervisor_end(argument, OWNER_ENDED_STOPPED, EXIT_SUCCESS);
}

/* The end of this process ends the boundary in any case (decision P9): asking gives the workload
 * its grace. */
static void on_stop_signal(int number, void *argument)
{
    (void)number;
    struct supervisor *supervisor = argument;
    if (supervisor->stopping || supervisor->ended)
        return;
    supervisor->stopping = true;
    owner_lock_end(supervisor->options.lock, OWNER_ENDED_STOPPED);
    if (supervisor->boundary == NULL || !boundary_is_open(supervisor->boundary)) {
        supervisor_end(supervisor, OWNER_ENDED_STOPPED, EXIT_SUCCESS);
        return;
    }
    uint32_t grace = supervisor->options.launch->stop_grace_milliseconds;
    log_info("stopping, grace %u ms", grace);
    supervisor->stop_timer =
        reactor_timer_start(supervisor->options.reactor, (uint64_t)grace + STOP_EXTRA_MILLISECONDS,
                            0, on_stop_too_slow, supervisor);
    boundary_terminate(supervisor->boundary, grace, on_terminated, supervisor);
}

static void on_reconnect_signal(int number, void *argument)
{
    (void)number;
    struct supervisor *supervisor = argument;
    if (supervisor->session != NULL)
        gateway_session_hurry(supervisor->session);
}

/* ---- running ---- */

static void on_session_accepted(void *user)
{
    struct supervisor *supervisor = user;
    log_push_session(supervisor->log, supervisor->had_session);
    supervisor->had_session = true;
    main_process_session_accepted(supervisor->main);
}

static void on_relay_open(const Openshell__V1__RelayOpen *open, void *user)
{
    struct supervisor *supervisor = user;
    struct error error = {0};
    if (!relays_open(supervisor->relays, supervisor->running, open, &error)) {
        log_warn("a relay was refused: %s", error.message);
        gateway_session_refuse_relay(supervisor->session, open->channel_id, error.message);
    }
    error_clear(&error);
}

static void on_relay_close(const Openshell__V1__RelayClose *close, void *user)
{
    struct supervisor *supervisor = user;
    log_debug("the gateway closed a relay: %s", close->reason);
    relays_drop(supervisor->relays, close->channel_id);
}

static void on_attachment(void *user)
{
    struct supervisor *supervisor = user;
    main_process_attached(supervisor->main);
}

static void on_output_taken(void *user)
{
    struct supervisor *supervisor = user;
    main_process_output_taken(supervisor->main);
}

static void on_attachment_ended(bool settled, void *user)
{
    struct supervisor *supervisor = user;
    main_process_attachment_ended(supervisor->main, settled);
}

void supervisor_running(struct supervisor *supervisor, struct running_boundary *running)
{
    const struct supervisor_options *options = &supervisor->options;
    supervisor->running = running;
    supervisor->main = main_process_follow(options->reactor, supervisor->link, running,
                                           options->launch, supervisor->instance_id);
    struct gateway_session_events events = {.on_accepted = on_session_accepted,
                                            .on_relay_open = on_relay_open,
                                            .on_relay_close = on_relay_close,
                                            .user = supervisor};
    supervisor->session = gateway_session_start(options->reactor, supervisor->link, options->launch,
                                                supervisor->instance_id, &events);
}

static bool watch_signals(struct supervisor *supervisor, struct reactor_signal *signals[2],
                          struct error *error)
{
    struct reactor *reactor = supervisor->options.reactor;
    signals[0] = reactor_signal_start(reactor, SIGTERM, on_stop_signal, supervisor, error);
    if (signals[0] != NULL)
        signals[1] = reactor_signal_start(reactor, SIGUSR1, on_reconnect_signal, supervisor, error);
    return signals[0] != NULL && signals[1] != NULL;
}

/* While the gateway answers the first calls and the runtime makes its root (decision B17). */
static void warm_up(void *argument)
{
    (void)argument;
    tls_warm_up();
    log_debug("TLS is warm");
}

int supervisor_run(const struct supervisor_options *options)
{
    struct supervisor supervisor = {.options = *options};
    uuid_generate(supervisor.instance_id);
    supervisor.link = gateway_link_new(options->reactor, options->rpc, options->launch);
    supervisor.log = log_push_start(options->reactor, supervisor.link, options->launch);
    const struct relays_events relays_events = {.on_attachment = on_attachment,
                                                .on_progress = on_output_taken,
                                                .on_attachment_ended = on_attachment_ended,
                                                .user = &supervisor};
    supervisor.relays =
        relays_new(supervisor.link, options->launch, supervisor.instance_id, &relays_events);
    reactor_post(options->reactor, warm_up, NULL);
    struct reactor_signal *signals[2] = {NULL, NULL};
    struct error error = {0};
    if (watch_signals(&supervisor, signals, &error)) {
        startup_begin(&supervisor);
    } else {
        supervisor_fail(&supervisor, &error);
        error_clear(&error);
    }
    reactor_when_quiet(options->reactor, TRIM_QUIET_MILLISECONDS, trim_memory);
    reactor_run(options->reactor);
    /* The process ends now: what is open closes with it. */
    return supervisor.exit_status;
}
