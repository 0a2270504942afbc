#include "supervisor/log_push.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "method_table.h"
#include "openshell.pb-c.h"

typedef Openshell__V1__SandboxLogLine line_message;
typedef Openshell__V1__SandboxLogLine__FieldsEntry line_field;

struct kept_line {
    enum log_level level;
    int64_t seconds;
    int32_t nanoseconds;
    char *target;
    char *message;
    struct log_field fields[LOG_FIELDS_LIMIT];
    size_t field_count;
};

struct log_push {
    struct reactor *reactor;
    struct gateway_link *link;
    char *sandbox_id;
    /* Numbers of lines since the beginning: [first, next) are kept, [sent, next) are to be sent. */
    struct kept_line lines[LOG_PUSH_KEPT_LIMIT];
    uint64_t first;
    uint64_t sent;
    uint64_t next;
    uint64_t lost; /* lines that never reached the gateway */
    int64_t last_seconds;
    int32_t last_nanoseconds;

    struct arena *batch; /* of the call in flight; NULL: none */
    uint64_t batch_end;
    unsigned failures;
    struct reactor_timer *timer;

    bool finishing;
    void (*done)(void *user);
    void *user;
};

/* ---- what is kept ---- */

static struct kept_line *line_at(struct log_push *push, uint64_t number)
{
    return &push->lines[number % LOG_PUSH_KEPT_LIMIT];
}

static void drop_oldest(struct log_push *push)
{
    struct kept_line *line = line_at(push, push->first);
    free(line->target);
    free(line->message);
    for (size_t i = 0; i < line->field_count; i++) {
        free((char *)line->fields[i].key);
        free((char *)line->fields[i].value);
    }
    if (push->sent == push->first) {
        push->sent++;
        push->lost++;
    }
    push->first++;
}

/* Each line has a time of its own, later than the one before: by it the gateway knows a line that
 * it gets again. */
static void stamp(struct log_push *push, struct kept_line *kept, const struct log_line *line)
{
    kept->seconds = line->seconds;
    kept->nanoseconds = line->nanoseconds;
    if (kept->seconds < push->last_seconds ||
        (kept->seconds == push->last_seconds && kept->nanoseconds <= push->last_nanoseconds)) {
        kept->seconds = push->last_seconds;
        kept->nanoseconds = push->last_nanoseconds + 1;
        if (kept->nanoseconds == 1000 * 1000 * 1000) {
            kept->seconds++;
            kept->nanoseconds = 0;
        }
    }
    push->last_seconds = kept->seconds;
    push->last_nanoseconds = kept->nanoseconds;
}

static void keep(struct log_push *push, const struct log_line *line)
{
    if (push->next - push->first == LOG_PUSH_KEPT_LIMIT)
        drop_oldest(push);
    struct kept_line *kept = line_at(push, push->next++);
    *kept = (struct kept_line){.level = line->level,
                               .target = memory_strdup(line->target),
                               .message = memory_strdup(line->message),
                               .field_count = line->field_count};
    for (size_t i = 0; i < line->field_count; i++)
        kept->fields[i] = (struct log_field){memory_strdup(line->fields[i].key),
                                             memory_strdup(line->fields[i].value)};
    stamp(push, kept, line);
}

/* ---- a batch ---- */

static line_message *make_message(const struct kept_line *kept, struct arena *arena)
{
    line_message *message = arena_new_of(arena, line_message);
    openshell__v1__sandbox_log_line__init(message);
    message->event_time = arena_new_of(arena, Google__Protobuf__Timestamp);
    google__protobuf__timestamp__init(message->event_time);
    message->event_time->seconds = kept->seconds;
    message->event_time->nanos = kept->nanoseconds;
    message->level = (char *)log_level_name(kept->level);
    message->source = (char *)"sandbox";
    message->target = arena_strdup(arena, kept->target);
    message->message = arena_strdup(arena, kept->message);
    message->fields = arena_array_of(arena, line_field *, kept->field_count + 1);
    for (size_t i = 0; i < kept->field_count; i++) {
        line_field *field = arena_new_of(arena, line_field);
        openshell__v1__sandbox_log_line__fields_entry__init(field);
        field->key = arena_strdup(arena, kept->fields[i].key);
        field->value = arena_strdup(arena, kept->fields[i].value);
        message->fields[message->n_fields++] = field;
    }
    return message;
}

static const ProtobufCMessage *make_batch(struct log_push *push)
{
    struct arena *arena = arena_new(0);
    Openshell__V1__PushSandboxLogsRequest *request =
        arena_new_of(arena, Openshell__V1__PushSandboxLogsRequest);
    openshell__v1__push_sandbox_logs_request__init(request);
    request->sandbox_id = push->sandbox_id;
    request->logs = arena_array_of(arena, line_message *, LOG_PUSH_BATCH_LIMIT);
    uint64_t number = push->sent;
    for (; number < push->next && request->n_logs < LOG_PUSH_BATCH_LIMIT; number++)
        request->logs[request->n_logs++] = make_message(line_at(push, number), arena);
    push->batch = arena;
    push->batch_end = number;
    return &request->base;
}

/* ---- when ---- */

static void flush(struct log_push *push);

static void on_timer(void *argument)
{
    struct log_push *push = argument;
    reactor_timer_cancel(push->timer);
    push->timer = NULL;
    if (push->finishing)
        push->done(push->user);
    else
        flush(push);
}

static void flush_after(struct log_push *push, uint64_t milliseconds)
{
    if (push->finishing) /* the timer is the end */
        return;
    reactor_timer_cancel(push->timer);
    push->timer = reactor_timer_start(push->reactor, milliseconds, 0, on_timer, push);
}

static void flush_when_due(struct log_push *push)
{
    uint64_t waiting = push->next - push->sent;
    if (push->finishing || waiting >= LOG_PUSH_BATCH_LIMIT)
        flush(push);
    else if (waiting > 0 && push->timer == NULL)
        flush_after(push, LOG_PUSH_PAUSE);
}

static void finish(struct log_push *push)
{
    reactor_timer_cancel(push->timer);
    push->timer = NULL;
    push->done(push->user);
}

/* What was lost is said once lines get through again. */
static void tell_loss(struct log_push *push)
{
    uint64_t lost = push->lost;
    push->lost = 0;
    if (lost > 0)
        log_warn("%" PRIu64 " lines of this log did not reach the gateway; the file has them",
                 lost);
}

static void on_pushed(const ProtobufCMessage *response, const struct error *error, void *user)
{
    (void)response;
    struct log_push *push = user;
    arena_free(push->batch);
    push->batch = NULL;
    if (error == NULL) {
        push->failures = 0;
        if (push->sent < push->batch_end)
            push->sent = push->batch_end;
        tell_loss(push);
        flush_when_due(push);
    } else if (push->finishing) {
        finish(push);
    } else {
        uint64_t pause = LOG_PUSH_BACKOFF_LEAST;
        for (unsigned i = 0; i < push->failures && pause < LOG_PUSH_BACKOFF_MOST; i++)
            pause *= 2;
        push->failures++;
        flush_after(push, pause < LOG_PUSH_BACKOFF_MOST ? pause : LOG_PUSH_BACKOFF_MOST);
    }
}

/* The stream of one batch each: its answer says that the lines arrived. */
static void flush(struct log_push *push)
{
    if (push->batch != NULL)
        return;
    if (push->sent == push->next) {
        if (push->finishing)
            finish(push);
        return;
    }
    if (!push->finishing) {
        reactor_timer_cancel(push->timer);
        push->timer = NULL;
    }
    const ProtobufCMessage *batch = make_batch(push);
    gateway_link_call(push->link, &rpc_openshell_v1_OpenShell_PushSandboxLogs, batch,
                      clock_monotonic_milliseconds(), on_pushed, push);
}

static void on_line(const struct log_line *line, void *user)
{
    struct log_push *push = user;
    keep(push, line);
    if (push->batch == NULL && push->failures == 0)
        flush_when_due(push);
}

/* ---- the interface ---- */

struct log_push *log_push_start(struct reactor *reactor, struct gateway_link *link,
                                const struct launch_supervisor *launch)
{
    struct log_push *push = memory_new_of(struct log_push);
    push->reactor = reactor;
    push->link = link;
    push->sandbox_id = launch->sandbox_id;
    log_set_listener(on_line, push);
    return push;
}

void log_push_session(struct log_push *push, bool again)
{
    if (push->finishing)
        return;
    if (again) {
        push->sent = push->first;
        push->batch_end = push->first; /* an answer on its way counts for nothing */
    }
    if (again || push->failures > 0)
        flush_after(push, LOG_PUSH_PAUSE);
    push->failures = 0;
}

void log_push_finish(struct log_push *push, void (*done)(void *user), void *user)
{
    if (push->finishing)
        return;
    log_set_listener(NULL, NULL);
    flush_after(push, LOG_PUSH_END);
    push->finishing = true;
    push->done = done;
    push->user = user;
    flush(push);
}
