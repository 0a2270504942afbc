/* Health, GetCurrentUser, GetGatewayInfo (behaviour reference 4.1). */
#include <config.h>

#include <stdlib.h>

#include "base/memory.h"
#include "gateway/api/api.h"
#include "gateway/auth/authorize.h"
#include "gateway/auth/peer.h"
#include "openshell.pb-c.h"

void api_health(struct rpc_call *call, void *gateway)
{
    (void)gateway;
    Openshell__V1__HealthResponse response = OPENSHELL__V1__HEALTH_RESPONSE__INIT;
    response.status = OPENSHELL__V1__SERVICE_STATUS__SERVICE_STATUS_HEALTHY;
    response.version = (char *)PACKAGE_VERSION;
    rpc_call_respond(call, &response.base);
}

void api_get_current_user(struct rpc_call *call, void *gateway)
{
    (void)gateway;
    const struct principal *principal = rpc_call_principal(call);
    CLEANUP_FREE char *name = peer_name(principal->user);
    char *roles[] = {(char *)"platform_admin"};
    char *scopes[] = {(char *)"openshell:all"};
    Openshell__V1__GetCurrentUserResponse response = OPENSHELL__V1__GET_CURRENT_USER_RESPONSE__INIT;
    response.subject = name;
    response.display_name = name;
    response.n_roles = 1;
    response.roles = roles;
    response.n_scopes = 1;
    response.scopes = scopes;
    response.identity_provider = (char *)"local_dev";
    rpc_call_respond(call, &response.base);
}

void api_get_gateway_info(struct rpc_call *call, void *user)
{
    const struct gateway *gateway = user;
    const struct driver_class *class = gateway->driver->class;
    Openshell__V1__CpuResourceCapabilities cpu = OPENSHELL__V1__CPU_RESOURCE_CAPABILITIES__INIT;
    cpu.limit_supported = class->cpu_limit;
    Openshell__V1__MemoryResourceCapabilities memory =
        OPENSHELL__V1__MEMORY_RESOURCE_CAPABILITIES__INIT;
    memory.limit_supported = class->memory_limit;
    Openshell__V1__GpuResourceCapabilities gpu = OPENSHELL__V1__GPU_RESOURCE_CAPABILITIES__INIT;
    Openshell__V1__ResourceCapabilities resources = OPENSHELL__V1__RESOURCE_CAPABILITIES__INIT;
    resources.cpu = &cpu;
    resources.memory = &memory;
    resources.gpu = &gpu;
    Openshell__V1__ComputeDriverCapabilities capabilities =
        OPENSHELL__V1__COMPUTE_DRIVER_CAPABILITIES__INIT;
    capabilities.driver_name = (char *)class->name;
    capabilities.driver_version = (char *)class->version;
    capabilities.resource_capabilities = &resources;
    Openshell__V1__ComputeDriverInfo driver = OPENSHELL__V1__COMPUTE_DRIVER_INFO__INIT;
    driver.name = (char *)class->name;
    driver.capabilities = &capabilities;
    Openshell__V1__ComputeDriverInfo *drivers[] = {&driver};
    Openshell__V1__GetGatewayInfoResponse response = OPENSHELL__V1__GET_GATEWAY_INFO_RESPONSE__INIT;
    response.status = OPENSHELL__V1__SERVICE_STATUS__SERVICE_STATUS_HEALTHY;
    response.gateway_version = (char *)PACKAGE_VERSION;
    response.n_compute_drivers = 1;
    response.compute_drivers = drivers;
    rpc_call_respond(call, &response.base);
}
