/* A policy as its file has it (policy reference 1): the same keys in YAML and JSON; what is empty,
 * zero or false is left out. */
#ifndef CLIENT_POLICY_DOCUMENT_H
#define CLIENT_POLICY_DOCUMENT_H

#include <jansson.h>

#include "proto/sandbox.pb-c.h"

/* Owned by the caller. */
json_t *policy_document(const Openshell__Sandbox__V1__SandboxPolicy *policy);

#endif
