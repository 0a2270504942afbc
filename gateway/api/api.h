/* The methods that are built, one file a resource. Every other method of the table answers
 * UNIMPLEMENTED with its name, after authorization. */
#ifndef GATEWAY_API_API_H
#define GATEWAY_API_API_H

#include "gateway/gateway.h"

/* Hands all handlers to the gateway's server. */
void api_register(struct gateway *gateway);

void api_health(struct rpc_call *call, void *gateway);
void api_get_current_user(struct rpc_call *call, void *gateway);
void api_get_gateway_info(struct rpc_call *call, void *gateway);

void api_create_sandbox(struct rpc_call *call, void *gateway);
void api_get_sandbox(struct rpc_call *call, void *gateway);
void api_list_sandboxes(struct rpc_call *call, void *gateway);
void api_delete_sandbox(struct rpc_call *call, void *gateway);
void api_stop_sandbox(struct rpc_call *call, void *gateway);
void api_start_sandbox(struct rpc_call *call, void *gateway);

void api_exec_sandbox(struct rpc_call *call, void *gateway);
void api_exec_sandbox_interactive(struct rpc_call *call, void *gateway);
void api_attach_main_process(struct rpc_call *call, void *gateway);

void api_get_sandbox_config(struct rpc_call *call, void *gateway);
void api_report_sandbox_configuration(struct rpc_call *call, void *gateway);
void api_report_main_process_exit(struct rpc_call *call, void *gateway);
void api_finalize_main_process_exit(struct rpc_call *call, void *gateway);

void api_list_workspaces(struct rpc_call *call, void *gateway);
void api_get_workspace(struct rpc_call *call, void *gateway);

#endif
