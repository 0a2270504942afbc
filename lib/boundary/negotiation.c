#include "boundary/negotiation.h"

#include "config.h"

#include <string.h>

#include "boundary/failure.h"

static char *const REQUIRED[] = {(char *)CAPABILITY_SANDBOX_PROTOCOL};
/* The supervisor could use suspension where a backend offers it (isolation IB-12). */
static char *const SUPERVISOR_SUPPORTED[] = {(char *)CAPABILITY_SANDBOX_PROTOCOL,
                                             (char *)CAPABILITY_SUSPEND_RESUME};

static Openshell__Extension__V1__ProtocolVersion OUR_VERSION = {
    .base = PROTOBUF_C_MESSAGE_INIT(&openshell__extension__v1__protocol_version__descriptor),
    .major = NEGOTIATION_MAJOR,
    .minor = NEGOTIATION_MINOR,
};

static const peer_metadata SUPERVISOR = {
    .base = PROTOBUF_C_MESSAGE_INIT(&openshell__extension__v1__peer_metadata__descriptor),
    .protocol_version = &OUR_VERSION,
    .implementation_name = (char *)"openshell-supervisor",
    .implementation_version = (char *)PACKAGE_VERSION,
    .n_supported_capabilities = 2,
    .supported_capabilities = (char **)SUPERVISOR_SUPPORTED,
    .n_required_capabilities = 1,
    .required_capabilities = (char **)REQUIRED,
};

static const peer_metadata RUNTIME = {
    .base = PROTOBUF_C_MESSAGE_INIT(&openshell__extension__v1__peer_metadata__descriptor),
    .protocol_version = &OUR_VERSION,
    .implementation_name = (char *)"openshell-sandbox",
    .implementation_version = (char *)PACKAGE_VERSION,
    .n_supported_capabilities = 1,
    .supported_capabilities = (char **)REQUIRED,
    .n_required_capabilities = 1,
    .required_capabilities = (char **)REQUIRED,
};

const peer_metadata *negotiation_supervisor(void)
{
    return &SUPERVISOR;
}

const peer_metadata *negotiation_runtime(void)
{
    return &RUNTIME;
}

static bool contains(char *const *list, size_t count, const char *capability)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], capability) == 0)
            return true;
    return false;
}

/* "openshell." and at least two more segments of lowercase letters, digits and inner hyphens. */
static bool well_formed(const char *capability)
{
    static const char PREFIX[] = "openshell.";
    if (strncmp(capability, PREFIX, sizeof(PREFIX) - 1) != 0 || strlen(capability) > 128)
        return false;
    size_t segments = 0;
    for (const char *segment = capability; segment != NULL; segments++) {
        size_t length = strcspn(segment, ".");
        if (length == 0 || strspn(segment, "abcdefghijklmnopqrstuvwxyz0123456789-") < length ||
            segment[0] == '-' || segment[length - 1] == '-')
            return false;
        segment = segment[length] == '.' ? segment + length + 1 : NULL;
    }
    return segments >= 3;
}

static bool list_valid(char *const *list, size_t count, struct error *error)
{
    if (count > NEGOTIATION_CAPABILITIES_LIMIT)
        return failure_set(error, FAILURE_UNSUPPORTED, "the peer names more than %d capabilities",
                           NEGOTIATION_CAPABILITIES_LIMIT);
    for (size_t i = 0; i < count; i++) {
        if (!well_formed(list[i]))
            return failure_set(error, FAILURE_UNSUPPORTED,
                               "the peer names a malformed capability '%s'", list[i]);
        if (contains(list, i, list[i]))
            return failure_set(error, FAILURE_UNSUPPORTED, "the peer names '%s' twice", list[i]);
    }
    return true;
}

static bool metadata_valid(const peer_metadata *peer, struct error *error)
{
    if (peer == NULL || peer->protocol_version == NULL)
        return failure_set(error, FAILURE_UNSUPPORTED,
                           "the peer does not say which protocol it speaks");
    if (peer->protocol_version->major != NEGOTIATION_MAJOR)
        return failure_set(error, FAILURE_UNSUPPORTED,
                           "the peer speaks protocol %u.%u, this is %d.%d",
                           peer->protocol_version->major, peer->protocol_version->minor,
                           NEGOTIATION_MAJOR, NEGOTIATION_MINOR);
    return list_valid(peer->supported_capabilities, peer->n_supported_capabilities, error) &&
           list_valid(peer->required_capabilities, peer->n_required_capabilities, error);
}

bool negotiation_check(const peer_metadata *ours, const peer_metadata *theirs, struct error *error)
{
    if (!metadata_valid(theirs, error))
        return false;
    for (size_t i = 0; i < ours->n_required_capabilities; i++)
        if (!contains(theirs->supported_capabilities, theirs->n_supported_capabilities,
                      ours->required_capabilities[i]))
            return failure_set(error, FAILURE_UNSUPPORTED,
                               "the peer lacks the capability '%s'; update it",
                               ours->required_capabilities[i]);
    for (size_t i = 0; i < theirs->n_required_capabilities; i++)
        if (!contains(ours->supported_capabilities, ours->n_supported_capabilities,
                      theirs->required_capabilities[i]))
            return failure_set(error, FAILURE_UNSUPPORTED,
                               "the peer requires the capability '%s', which this side lacks",
                               theirs->required_capabilities[i]);
    return true;
}

bool negotiation_shared(const peer_metadata *ours, const peer_metadata *theirs,
                        const char *capability)
{
    return contains(ours->supported_capabilities, ours->n_supported_capabilities, capability) &&
           contains(theirs->supported_capabilities, theirs->n_supported_capabilities, capability);
}
