#include "rpc/channel_arguments.h"

#include <limits.h>

#include "rpc/rpc.h"

enum {
    /* What one unread stream may hold in memory, and what may be under way on it. */
    STREAM_WINDOW = 128 * 1024,
    FRAME_SIZE = 64 * 1024,
    /* A peer that was lost without a word (a suspended machine, a cut network) is noticed within
     * the sum of these two while calls are open. A local peer that dies is noticed at once. */
    KEEPALIVE_EVERY = 30 * 1000,
    KEEPALIVE_PATIENCE = 20 * 1000,
    PING_INTERVAL_ALLOWED = 5 * 1000,
    METADATA_LIMIT = 16 * 1024,
};

#define INTEGER(name, number)                                                                      \
    {                                                                                              \
        .type = GRPC_ARG_INTEGER, .key = (char *)(name), .value.integer = (number)                 \
    }
#define STRING(name, text)                                                                         \
    {                                                                                              \
        .type = GRPC_ARG_STRING, .key = (char *)(name), .value.string = (char *)(text)             \
    }

/* With the default bandwidth probe the window of an unread stream grows to 4 MB. Compression stays
 * off: what is compressed can be a bomb, and local sockets gain nothing from it. */
#define BOTH_ROLES                                                                                 \
    INTEGER(GRPC_ARG_HTTP2_BDP_PROBE, 0),                                                          \
        INTEGER(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, STREAM_WINDOW),                             \
        INTEGER(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, FRAME_SIZE),                                        \
        INTEGER(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_LIMIT),                           \
        INTEGER(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, RPC_MESSAGE_LIMIT),                              \
        INTEGER(GRPC_ARG_MAX_METADATA_SIZE, METADATA_LIMIT),                                       \
        INTEGER(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_EVERY),                                      \
        INTEGER(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_PATIENCE),                                \
        INTEGER(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0),                                       \
        INTEGER(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),                                         \
        INTEGER(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),                                       \
        INTEGER(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1),                            \
        INTEGER(GRPC_ARG_ENABLE_CENSUS, 0), INTEGER(GRPC_ARG_ENABLE_CHANNELZ, 0),                  \
        INTEGER(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0)

const grpc_channel_args *channel_arguments_client(void)
{
    static grpc_arg list[] = {
        BOTH_ROLES,
        INTEGER(GRPC_ARG_ENABLE_RETRIES, 0),
        INTEGER(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        INTEGER(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX),
        INTEGER(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        STRING(GRPC_ARG_DEFAULT_AUTHORITY, "openshell"),
    };
    static const grpc_channel_args arguments = {sizeof(list) / sizeof(list[0]), list};
    return &arguments;
}

const grpc_channel_args *channel_arguments_server(void)
{
    static grpc_arg list[] = {
        BOTH_ROLES,
        INTEGER(GRPC_ARG_MAX_CONCURRENT_STREAMS, RPC_CALLS_PER_CONNECTION),
        INTEGER(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, PING_INTERVAL_ALLOWED),
    };
    static const grpc_channel_args arguments = {sizeof(list) / sizeof(list[0]), list};
    return &arguments;
}
