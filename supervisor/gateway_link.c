#include "supervisor/gateway_link.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

struct gateway_link {
    struct reactor *reactor;
    struct rpc_runtime *rpc;
    const struct launch_supervisor *launch;
    struct rpc_channel *channel;
    unsigned generation; /* of the channel, to drop it once */
    bool watched;
    struct gateway_call *calls;
};

struct gateway_call {
    struct gateway_link *link; /* NULL: freed meanwhile */
    struct gateway_call *next;
    struct gateway_call *previous;
    const struct rpc_method *method;
    const ProtobufCMessage *request;
    int64_t give_up;
    unsigned attempt;
    unsigned generation;
    struct reactor_timer *timer;
    void (*done)(const ProtobufCMessage *, const struct error *, void *);
    void *user;
};

uint64_t gateway_backoff(unsigned attempt)
{
    uint64_t pause = GATEWAY_BACKOFF_LEAST_MILLISECONDS;
    for (unsigned i = 1; i < attempt && pause < GATEWAY_BACKOFF_MOST_MILLISECONDS; i++)
        pause *= 2;
    return pause < GATEWAY_BACKOFF_MOST_MILLISECONDS ? pause : GATEWAY_BACKOFF_MOST_MILLISECONDS;
}

struct gateway_link *gateway_link_new(struct reactor *reactor, struct rpc_runtime *rpc,
                                      const struct launch_supervisor *launch)
{
    struct gateway_link *link = memory_new_of(struct gateway_link);
    link->reactor = reactor;
    link->rpc = rpc;
    link->launch = launch;
    return link;
}

void gateway_link_drop(struct gateway_link *link)
{
    rpc_channel_free(link->channel);
    link->channel = NULL;
}

void gateway_link_set_watched(struct gateway_link *link, bool watched)
{
    link->watched = watched;
}

void gateway_link_free(struct gateway_link *link)
{
    if (link == NULL)
        return;
    for (struct gateway_call *call = link->calls; call != NULL; call = call->next) {
        call->link = NULL;
        reactor_timer_cancel(call->timer);
        call->timer = NULL;
    }
    gateway_link_drop(link);
    free(link);
}

struct rpc_channel *gateway_link_channel(struct gateway_link *link, struct error *error)
{
    if (link->channel != NULL)
        return link->channel;
    int descriptor = file_unix_connect(link->launch->gateway_socket, error);
    if (descriptor < 0)
        return NULL;
    link->channel = rpc_channel_new(link->rpc, descriptor, error);
    link->generation++;
    return link->channel;
}

/* ---- calls ---- */

static void try_call(struct gateway_call *call);

static void finish(struct gateway_call *call, const ProtobufCMessage *response,
                   const struct error *error)
{
    reactor_timer_cancel(call->timer);
    if (call->previous != NULL)
        call->previous->next = call->next;
    else if (call->link != NULL)
        call->link->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    if (call->link != NULL)
        call->done(response, error, call->user);
    free(call);
}

static bool passes(enum error_code code)
{
    return code == ERROR_UNAVAILABLE || code == ERROR_DEADLINE_EXCEEDED || code == ERROR_CANCELLED;
}

static void on_pause_over(void *argument)
{
    struct gateway_call *call = argument;
    reactor_timer_cancel(call->timer);
    call->timer = NULL;
    try_call(call);
}

static void try_again_or_finish(struct gateway_call *call, const struct error *error)
{
    uint64_t pause = gateway_backoff(++call->attempt);
    if (!passes(error->code) ||
        (call->give_up != 0 && clock_monotonic_milliseconds() + (int64_t)pause > call->give_up)) {
        finish(call, NULL, error);
        return;
    }
    log_debug("%s is tried again: %s", call->method->name, error->message);
    call->timer = reactor_timer_start(call->link->reactor, pause, 0, on_pause_over, call);
}

static void on_answered(const ProtobufCMessage *response, const struct error *error, void *user)
{
    struct gateway_call *call = user;
    if (error == NULL || call->link == NULL) {
        finish(call, response, error);
        return;
    }
    /* A channel over a descriptor stays dead once its connection is lost. */
    if (error->code == ERROR_UNAVAILABLE && !call->link->watched &&
        call->generation == call->link->generation)
        gateway_link_drop(call->link);
    try_again_or_finish(call, error);
}

static void try_call(struct gateway_call *call)
{
    struct error error = {0};
    struct rpc_channel *channel = gateway_link_channel(call->link, &error);
    if (channel == NULL) {
        error.code = ERROR_UNAVAILABLE;
        try_again_or_finish(call, &error);
        error_clear(&error);
        return;
    }
    call->generation = call->link->generation;
    struct rpc_call_options options = {.bearer = call->link->launch->gateway_token,
                                       .deadline = GATEWAY_CALL_MILLISECONDS};
    rpc_unary(channel, call->method, &options, call->request, on_answered, call);
}

void gateway_link_call(struct gateway_link *link, const struct rpc_method *method,
                       const ProtobufCMessage *request, int64_t give_up,
                       void (*done)(const ProtobufCMessage *response, const struct error *error,
                                    void *user),
                       void *user)
{
    struct gateway_call *call = memory_new_of(struct gateway_call);
    *call = (struct gateway_call){.link = link,
                                  .method = method,
                                  .request = request,
                                  .give_up = give_up,
                                  .done = done,
                                  .user = user,
                                  .next = link->calls};
    if (call->next != NULL)
        call->next->previous = call;
    link->calls = call;
    try_call(call);
}
