/* The configuration that a sandbox's supervisor gets, and the numbers by which its reports name it
 * (behaviour reference 2.7, 3.5). */
#ifndef GATEWAY_CONFIGURATION_H
#define GATEWAY_CONFIGURATION_H

#include "base/arena.h"
#include "gateway/admission.h"
#include "openshell.pb-c.h"
#include "sandbox.pb-c.h"

struct configuration {
    const Openshell__Sandbox__V1__SandboxPolicy *policy; /* in the record or the arena */
    Openshell__Sandbox__V1__PolicySource source;
    struct admission_generation generation; /* strings in the arena */
};

/* What the supervisor of this sandbox would get now. */
bool configuration_load(const Openshell__V1__Sandbox *sandbox, struct arena *arena,
                        struct configuration *ret_configuration, struct error *error);

/* Fills in an initialised response; its parts live in the record or the arena. */
bool configuration_fill(const Openshell__V1__Sandbox *sandbox, struct arena *arena,
                        Openshell__Sandbox__V1__GetSandboxConfigResponse *response,
                        struct error *error);

#endif
