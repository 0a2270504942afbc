/* The local driver: a sandbox is a supervisor and a runtime, two processes of this machine that
 * outlive the gateway (decisions P9, P10, P12). */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/table.h"
#include "base/text.h"
#include "boundary/owner_lock.h"
#include "gateway/drivers/local_launch.h"
#include "gateway/drivers/local_process.h"

enum {
    PARTNER_MILLISECONDS = 5000,    /* one part ended: how long the other may take to notice */
    REMOVE_MILLISECONDS = 2000,     /* between SIGTERM and SIGKILL when all is to go */
    STOP_SLACK_MILLISECONDS = 5000, /* over the workload's own grace */
    KILLED_MILLISECONDS = 10000,    /* how long a killed process may take to vanish */
};

enum local_state { LOCAL_RUNNING, LOCAL_STOPPING, LOCAL_REMOVING };

struct local_sandbox {
    struct local_driver *driver;
    enum local_state state;
    struct local_process supervisor;
    struct local_process runtime;
    struct reactor_timer *timer;
    bool killed;
    driver_done done; /* of the stop or remove in flight */
    void *user;
    char id[];
};

static struct local_driver *local_of(struct driver *driver)
{
    return (struct local_driver *)driver;
}

/* ---- how it ended ---- */

static void end_failed(struct driver_end *end, const char *part, const char *text)
{
    end->cause = DRIVER_END_FAILED;
    char harmless[200];
    text_escape(text, harmless, sizeof(harmless));
    snprintf(end->text, sizeof(end->text), "%s: %s", part, harmless);
}

/* Judges by the last lines of both lock files: a part that was killed wrote none. */
static void classify(const struct local_driver *driver, const char *id, struct driver_end *end)
{
    CLEANUP_FREE char *supervisor_path = local_run_path(driver, id, "supervisor.lock");
    CLEANUP_FREE char *runtime_path = local_run_path(driver, id, "runtime.lock");
    struct owner_lock supervisor = {0}, runtime = {0};
    bool traces = owner_lock_read(supervisor_path, &supervisor, NULL);
    traces |= owner_lock_read(runtime_path, &runtime, NULL);
    *end = (struct driver_end){.cause = DRIVER_END_STOPPED};
    if (strcmp(supervisor.ended, OWNER_ENDED_REFUSED) == 0)
        end->cause = DRIVER_END_REFUSED;
    else if (!traces)
        end->cause = DRIVER_END_ABSENT;
    else if (strncmp(runtime.ended, "failed: ", 8) == 0)
        end_failed(end, "the runtime", runtime.ended + 8);
    else if (strncmp(supervisor.ended, "failed: ", 8) == 0)
        end_failed(end, "the supervisor", supervisor.ended + 8);
    else if (runtime.ended[0] == '\0')
        end->cause = DRIVER_END_RUNTIME_LOST;
    else if (supervisor.ended[0] == '\0')
        end->cause = DRIVER_END_SUPERVISOR_LOST;
    else if (strcmp(supervisor.ended, OWNER_ENDED_RUNTIME_LOST) == 0)
        end->cause = DRIVER_END_RUNTIME_LOST;
}

/* ---- ending ---- */

static void sandbox_free(struct local_sandbox *sandbox)
{
    reactor_timer_cancel(sandbox->timer);
    local_process_forget(&sandbox->supervisor);
    local_process_forget(&sandbox->runtime);
    table_remove(sandbox->driver->sandboxes, sandbox->id);
    free(sandbox);
}

static bool both_ended(const struct local_sandbox *sandbox)
{
    return !local_process_running(&sandbox->supervisor) &&
           !local_process_running(&sandbox->runtime);
}

static void finish(struct local_sandbox *sandbox)
{
    struct local_driver *driver = sandbox->driver;
    enum local_state state = sandbox->state;
    driver_done done = sandbox->done;
    void *user = sandbox->user;
    CLEANUP_FREE char *id = memory_strdup(sandbox->id);
    sandbox_free(sandbox);
    if (state == LOCAL_RUNNING) {
        struct driver_end end;
        classify(driver, id, &end);
        driver->base.events.on_ended(id, &end, driver->base.events.user);
        return;
    }
    struct error error = {0};
    bool done_well = state == LOCAL_STOPPING || local_discard_state(driver, id, &error);
    done(done_well ? NULL : &error, user);
    error_clear(&error);
}

static void arm(struct local_sandbox *sandbox, uint64_t milliseconds);

static void on_timer(void *user)
{
    struct local_sandbox *sandbox = user;
    if (!sandbox->killed) {
        sandbox->killed = true;
        local_process_signal(&sandbox->supervisor, SIGKILL);
        local_process_signal(&sandbox->runtime, SIGKILL);
        arm(sandbox, KILLED_MILLISECONDS);
        return;
    }
    log_error("the processes of sandbox %s were killed and do not end", sandbox->id);
    if (sandbox->state == LOCAL_RUNNING)
        return;
    driver_done done = sandbox->done;
    void *done_user = sandbox->user;
    sandbox->state = LOCAL_RUNNING;
    sandbox->done = NULL;
    struct error error = {0};
    error_set(&error, ERROR_UNAVAILABLE, "processes of the sandbox were killed and do not end");
    done(&error, done_user);
    error_clear(&error);
}

static void arm(struct local_sandbox *sandbox, uint64_t milliseconds)
{
    reactor_timer_cancel(sandbox->timer);
    sandbox->timer =
        reactor_timer_start(sandbox->driver->reactor, milliseconds, 0, on_timer, sandbox);
}

static void on_end(struct local_process *process, void *user)
{
    (void)process;
    struct local_sandbox *sandbox = user;
    if (both_ended(sandbox))
        finish(sandbox);
    else if (sandbox->state == LOCAL_RUNNING)
        arm(sandbox, PARTNER_MILLISECONDS);
    else
        local_process_signal(&sandbox->runtime, SIGTERM); /* it has nobody to serve any more */
}

static struct local_sandbox *sandbox_new(struct local_driver *driver, const char *id)
{
    struct local_sandbox *sandbox = memory_new(sizeof(*sandbox) + strlen(id) + 1);
    memcpy(sandbox->id, id, strlen(id) + 1);
    sandbox->driver = driver;
    struct local_process initial = {
        .reactor = driver->reactor, .descriptor = -1, .on_end = on_end, .user = sandbox};
    sandbox->supervisor = initial;
    sandbox->runtime = initial;
    table_put(driver->sandboxes, id, sandbox);
    return sandbox;
}

/* ---- the driver's calls ---- */

static void local_start(struct driver *base, const struct driver_launch *launch, driver_done done,
                        void *user)
{
    struct local_driver *driver = local_of(base);
    struct error error = {0};
    struct local_sandbox *sandbox = NULL;
    bool started = false;
    if (table_get(driver->sandboxes, launch->sandbox_id) != NULL) {
        error_set(&error, ERROR_ABORTED, "the processes of an earlier launch still run");
    } else {
        sandbox = sandbox_new(driver, launch->sandbox_id);
        started = local_launch(driver, launch, &sandbox->supervisor, &sandbox->runtime, &error);
    }
    if (started) {
        done(NULL, user);
    } else {
        if (sandbox != NULL && !both_ended(sandbox)) {
            /* Half a sandbox: it ends as soon as it notices, or is killed. */
            sandbox->state = LOCAL_RUNNING;
            local_process_signal(&sandbox->supervisor, SIGKILL);
            local_process_signal(&sandbox->runtime, SIGKILL);
        } else if (sandbox != NULL) {
            sandbox_free(sandbox);
        }
        done(&error, user);
    }
    error_clear(&error);
}

static void local_stop(struct driver *base, const char *id, driver_done done, void *user)
{
    struct local_sandbox *sandbox = table_get(local_of(base)->sandboxes, id);
    if (sandbox == NULL) {
        done(NULL, user);
        return;
    }
    sandbox->state = LOCAL_STOPPING;
    sandbox->done = done;
    sandbox->user = user;
    sandbox->killed = false;
    local_process_signal(local_process_running(&sandbox->supervisor) ? &sandbox->supervisor
                                                                     : &sandbox->runtime,
                         SIGTERM);
    arm(sandbox, LOCAL_STOP_GRACE_MILLISECONDS + STOP_SLACK_MILLISECONDS);
}

static void local_remove(struct driver *base, const char *id, driver_done done, void *user)
{
    struct local_driver *driver = local_of(base);
    struct local_sandbox *sandbox = table_get(driver->sandboxes, id);
    if (sandbox == NULL) {
        struct error error = {0};
        done(local_discard_state(driver, id, &error) ? NULL : &error, user);
        error_clear(&error);
        return;
    }
    sandbox->state = LOCAL_REMOVING;
    sandbox->done = done;
    sandbox->user = user;
    sandbox->killed = false;
    local_process_signal(&sandbox->supervisor, SIGTERM);
    local_process_signal(&sandbox->runtime, SIGTERM);
    arm(sandbox, REMOVE_MILLISECONDS);
}

static bool local_adopt(struct driver *base, const char *id, struct driver_end *ret_end)
{
    struct local_driver *driver = local_of(base);
    CLEANUP_FREE char *supervisor_path = local_run_path(driver, id, "supervisor.lock");
    CLEANUP_FREE char *runtime_path = local_run_path(driver, id, "runtime.lock");
    struct local_sandbox *sandbox = sandbox_new(driver, id);
    bool with_supervisor = local_process_adopt(&sandbox->supervisor, supervisor_path);
    bool with_runtime = local_process_adopt(&sandbox->runtime, runtime_path);
    if (!with_supervisor && !with_runtime) {
        sandbox_free(sandbox);
        classify(driver, id, ret_end);
        return false;
    }
    local_process_signal(&sandbox->supervisor, SIGUSR1);
    if (!with_supervisor || !with_runtime)
        arm(sandbox, PARTNER_MILLISECONDS);
    return true;
}

static bool local_running(struct driver *base, const char *id)
{
    const struct local_sandbox *sandbox = table_get(local_of(base)->sandboxes, id);
    return sandbox != NULL && local_process_running(&sandbox->supervisor);
}

static bool local_owns(struct driver *base, pid_t process)
{
    const struct local_sandbox *sandbox;
    size_t position = 0;
    while ((sandbox = table_next(local_of(base)->sandboxes, &position, NULL)) != NULL)
        if (sandbox->supervisor.process == process)
            return true;
    return false;
}

static void local_close(struct driver *base)
{
    struct local_driver *driver = local_of(base);
    struct local_sandbox *sandbox;
    size_t position = 0;
    while ((sandbox = table_next(driver->sandboxes, &position, NULL)) != NULL)
        sandbox_free(sandbox);
    table_free(driver->sandboxes);
    local_launch_close(driver);
}

static const struct driver_class local_class = {
    .name = "local",
    .version = PACKAGE_VERSION,
    .start = local_start,
    .stop = local_stop,
    .remove = local_remove,
    .adopt = local_adopt,
    .running = local_running,
    .owns = local_owns,
    .close = local_close,
};

struct driver *local_driver_new(const struct local_driver_options *options,
                                const struct driver_events *events, struct error *error)
{
    struct local_driver *driver = memory_new_of(struct local_driver);
    driver->base.class = &local_class;
    driver->base.events = *events;
    driver->sandboxes = table_new();
    if (local_launch_open(driver, options, error))
        return &driver->base;
    local_close(&driver->base);
    return NULL;
}
