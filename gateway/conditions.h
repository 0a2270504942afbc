/* The conditions of a sandbox (behaviour reference 1.3). */
#ifndef GATEWAY_CONDITIONS_H
#define GATEWAY_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "openshell.pb-c.h"

#define CONDITION_READY "Ready"
#define CONDITION_CONFIGURATION_READY "ConfigurationReady"
#define CONDITION_DESIRED_CONFIGURATION_READY "DesiredConfigurationReady"
#define CONDITION_WORKLOAD_IDENTITY "WorkloadIdentity"

/* The condition of this type, or NULL. */
Openshell__V1__SandboxCondition *conditions_get(const Openshell__V1__SandboxStatus *status,
                                                const char *type);
/* The reason of a condition, "" where there is none. */
const char *conditions_reason(const Openshell__V1__SandboxStatus *status, const char *type);

/* Adds or changes a condition; strings are copied into the arena. transition_time becomes `now`
 * (milliseconds since the epoch) when status or reason change and is kept otherwise. True when
 * anything changed. */
bool conditions_set(Openshell__V1__SandboxStatus *status, struct arena *arena, const char *type,
                    bool value, const char *reason, const char *message, int64_t now);
/* True when there was one. */
bool conditions_remove(Openshell__V1__SandboxStatus *status, const char *type);

/* Sets ConfigurationReady and DesiredConfigurationReady from the admission in the status. Without
 * an admission (a legacy row) both are absent. */
bool conditions_set_configuration(Openshell__V1__SandboxStatus *status, struct arena *arena,
                                  int64_t now);

/* WorkloadIdentity True/DriverResolved: "UID:GID". */
bool conditions_set_identity(Openshell__V1__SandboxStatus *status, struct arena *arena,
                             uint32_t user, uint32_t group, int64_t now);

#endif
