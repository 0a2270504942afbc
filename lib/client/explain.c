#include "client/explain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/failure.h"

struct entry {
    const char *domain;
    const char *reason;
    /* Templates. {message} is the error's message; {phase} the phase in the metadata as a word;
     * any other {key} the value in the metadata. A template with a value that is missing is not
     * used: the message is then the error's own, and there is no hint. */
    const char *message;
    const char *hint;
};

#define GATEWAY ERROR_DOMAIN_GATEWAY
#define ANY_DOMAIN ""

static const struct entry entries[] = {
    /* The gate (decision P2). */
    {GATEWAY, "PhaseNotServing", "sandbox '{sandbox}' cannot be used now: it is {phase}",
     "see how it comes on with: openshell sandbox get {sandbox}"},
    {GATEWAY, "Stopped", "sandbox '{sandbox}' is stopped",
     "start it with: openshell sandbox start {sandbox}"},
    {GATEWAY, "Deleting", "sandbox '{sandbox}' is being deleted",
     "make another one with: openshell sandbox create"},
    {GATEWAY, "SupervisorDisconnected",
     "sandbox '{sandbox}' has ended and nothing of it runs any more",
     "see why with: openshell sandbox get {sandbox}; start it again with: openshell sandbox start "
     "{sandbox}"},
    {GATEWAY, "ServiceInfraError",
     "the services of sandbox '{sandbox}' are closed because the sandbox failed",
     "see why with: openshell sandbox get {sandbox}"},

    /* Changes (behaviour reference 4.0). */
    {GATEWAY, "RESOURCE_VERSION_CONFLICT", "{message}",
     "somebody else changed it meanwhile; look at it and try again"},
    {GATEWAY, "REQUEST_OUTCOME_UNCERTAIN", "{message}",
     "look at the current state before you try again"},
    {GATEWAY, "REQUEST_ID_PAYLOAD_MISMATCH", "{message}",
     "the same request id was used for another request"},

    /* What begins on this side. */
    {CLIENT_DOMAIN, CLIENT_REASON_USAGE, "{message}", "{hint}"},
    {CLIENT_DOMAIN, CLIENT_REASON_GATEWAY_UNKNOWN, "{message}",
     "see which there are with: openshell gateway list"},
    {CLIENT_DOMAIN, CLIENT_REASON_CONNECTION_LOST, "{message}",
     "see whether the gateway runs with: openshell status"},
    {CLIENT_DOMAIN, CLIENT_REASON_TRANSPORT_UNSUPPORTED, "{message}",
     "use the one of this machine with: openshell gateway select openshell"},
    {CLIENT_DOMAIN, CLIENT_REASON_GATEWAY_NOT_RUNNING, "{message}",
     "start it with: openshell gateway start"},

    /* Codes without a reason. */
    {ANY_DOMAIN, "ALREADY_EXISTS", "sandbox '{sandbox}' exists already",
     "choose another --name, or delete it with: openshell sandbox delete {sandbox}"},
    {ANY_DOMAIN, "NOT_FOUND", "there is no sandbox '{sandbox}'",
     "see which there are with: openshell sandbox list"},
    {ANY_DOMAIN, "UNAUTHENTICATED", "the gateway does not know you: {message}",
     "see as whom it knows you with: openshell whoami"},
    {ANY_DOMAIN, "PERMISSION_DENIED", "you may not do this: {message}",
     "see as whom the gateway knows you with: openshell whoami"},
    {ANY_DOMAIN, "UNIMPLEMENTED", "the gateway cannot do this: {message}",
     "see its version with: openshell status"},
};

/* "SANDBOX_PHASE_STOPPING" becomes "stopping". */
static void phase_word(const char *name, char *word, size_t size)
{
    static const char prefix[] = "SANDBOX_PHASE_";
    if (text_has_prefix(name, prefix))
        name += sizeof(prefix) - 1;
    snprintf(word, size, "%.*s", (int)size - 1, name);
    for (char *at = word; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
}

static bool append(char *text, size_t size, size_t *used, const char *piece, size_t length)
{
    if (*used + length >= size)
        return false;
    memcpy(text + *used, piece, length);
    *used += length;
    text[*used] = '\0';
    return true;
}

static bool append_value(const struct error *error, const char *key, char *text, size_t size,
                         size_t *used)
{
    const char *value =
        strcmp(key, "message") == 0 ? error->message : error_get_metadata(error, key);
    if (value == NULL || value[0] == '\0')
        return false;
    char word[64];
    if (strcmp(key, "phase") == 0) {
        phase_word(value, word, sizeof(word));
        value = word;
    }
    CLEANUP_FREE char *escaped = text_escaped(value);
    return append(text, size, used, escaped, strlen(escaped));
}

/* False when a value is missing or the text does not fit. */
static bool fill(const char *template, const struct error *error, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*template != '\0') {
        size_t plain = strcspn(template, "{");
        if (!append(text, size, &used, template, plain))
            return false;
        template += plain;
        if (*template == '\0')
            break;
        char key[32];
        size_t length = strcspn(template, "}");
        snprintf(key, sizeof(key), "%.*s", (int)length - 1, template + 1);
        template += length + 1;
        if (!append_value(error, key, text, size, &used))
            return false;
    }
    return true;
}

static const struct entry *find(const char *domain, const char *reason)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        if (strcmp(entries[i].domain, domain) == 0 && strcmp(entries[i].reason, reason) == 0)
            return &entries[i];
    return NULL;
}

void explain(const struct error *error, struct explanation *ret_explanation)
{
    const struct entry *entry = error->reason[0] != '\0'
                                    ? find(error->domain, error->reason)
                                    : find(ANY_DOMAIN, error_code_name(error->code));
    if (entry == NULL ||
        !fill(entry->message, error, ret_explanation->message, sizeof(ret_explanation->message)))
        text_escape(error->message[0] != '\0' ? error->message : error_code_name(error->code),
                    ret_explanation->message, sizeof(ret_explanation->message));
    /* A hint of our own names what to do in this very case. */
    const char *own = strcmp(error->domain, CLIENT_DOMAIN) == 0 ? "{hint}" : NULL;
    if (own != NULL && fill(own, error, ret_explanation->hint, sizeof(ret_explanation->hint)))
        return;
    if (entry == NULL ||
        !fill(entry->hint, error, ret_explanation->hint, sizeof(ret_explanation->hint)))
        ret_explanation->hint[0] = '\0';
}
