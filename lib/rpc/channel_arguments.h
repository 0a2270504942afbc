/* The only place that chooses how gRPC behaves (decision B5). */
#ifndef RPC_CHANNEL_ARGUMENTS_H
#define RPC_CHANNEL_ARGUMENTS_H

#include <grpc/grpc.h>

/* Static; never freed. */
const grpc_channel_args *channel_arguments_client(void);
const grpc_channel_args *channel_arguments_server(void);

#endif
