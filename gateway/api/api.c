#include "gateway/api/api.h"

#include "gateway/logs.h"
#include "gateway/relay.h"
#include "gateway/sessions.h"
#include "gateway/watch.h"
#include "method_table.h"

void api_register(struct gateway *gateway)
{
    const struct {
        const struct rpc_method *method;
        rpc_handler handler;
    } handlers[] = {
        {&rpc_openshell_v1_OpenShell_Health, api_health},
        {&rpc_openshell_v1_OpenShell_GetCurrentUser, api_get_current_user},
        {&rpc_openshell_v1_OpenShell_GetGatewayInfo, api_get_gateway_info},
        {&rpc_openshell_v1_OpenShell_CreateSandbox, api_create_sandbox},
        {&rpc_openshell_v1_OpenShell_GetSandbox, api_get_sandbox},
        {&rpc_openshell_v1_OpenShell_ListSandboxes, api_list_sandboxes},
        {&rpc_openshell_v1_OpenShell_DeleteSandbox, api_delete_sandbox},
        {&rpc_openshell_v1_OpenShell_StopSandbox, api_stop_sandbox},
        {&rpc_openshell_v1_OpenShell_StartSandbox, api_start_sandbox},
        {&rpc_openshell_v1_OpenShell_WatchSandbox, watch_sandbox},
        {&rpc_openshell_v1_OpenShell_ExecSandbox, api_exec_sandbox},
        {&rpc_openshell_v1_OpenShell_ExecSandboxInteractive, api_exec_sandbox_interactive},
        {&rpc_openshell_ext_v1_Extensions_AttachMainProcess, api_attach_main_process},
        {&rpc_openshell_v1_OpenShell_ConnectSupervisor, session_connect},
        {&rpc_openshell_v1_OpenShell_RelayStream, relay_stream},
        {&rpc_openshell_v1_OpenShell_ReportMainProcessExit, api_report_main_process_exit},
        {&rpc_openshell_v1_OpenShell_FinalizeMainProcessExit, api_finalize_main_process_exit},
        {&rpc_openshell_v1_OpenShell_GetSandboxConfig, api_get_sandbox_config},
        {&rpc_openshell_v1_OpenShell_ReportSandboxConfiguration, api_report_sandbox_configuration},
        {&rpc_openshell_v1_OpenShell_GetSandboxLogs, logs_get},
        {&rpc_openshell_v1_OpenShell_PushSandboxLogs, logs_push},
        {&rpc_openshell_v1_OpenShell_ListWorkspaces, api_list_workspaces},
        {&rpc_openshell_v1_OpenShell_GetWorkspace, api_get_workspace},
    };
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
        rpc_server_handle(gateway->server, handlers[i].method, handlers[i].handler);
}
