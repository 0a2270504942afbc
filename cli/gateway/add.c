/* openshell gateway add */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/gateway/describe.h"
#include "client/command.h"
#include "client/failure.h"
#include "client/gateway_address.h"
#include "client/gateway_store.h"
#include "client/report.h"

extern char **environ;

enum { SSH_OUTPUT_MAX = 64 * 1024 };

static struct {
    const char *name;
    const char *remote;
    bool local;
    const char *oidc_issuer;
    const char *oidc_client_id;
    const char *oidc_audience;
    const char *oidc_scopes;
} given = {.oidc_client_id = "openshell-cli"};

static const struct option options[] = {
    {.type = OPTION_TEXT,
     .name = "name",
     .value = &given.name,
     .metavar = "NAME",
     .help = "How it is called here; without it, the host's name, and openshell for this machine"},
    {.type = OPTION_TEXT,
     .name = "remote",
     .value = &given.remote,
     .metavar = "DESTINATION",
     .help = "It runs on another machine, which ssh reaches as DESTINATION",
     .conflicts = "local"},
    {.type = OPTION_FLAG,
     .name = "local",
     .value = &given.local,
     .help = "It runs on this machine; the certificates of its installation are used",
     .conflicts = "remote"},
    {.type = OPTION_TEXT,
     .name = "oidc-issuer",
     .value = &given.oidc_issuer,
     .metavar = "URL",
     .help = "It knows people by this OpenID Connect issuer",
     .conflicts = "remote"},
    {.type = OPTION_TEXT,
     .name = "oidc-client-id",
     .value = &given.oidc_client_id,
     .metavar = "ID",
     .help = "As which client to log in",
     .fallback = "openshell-cli",
     .requires = "oidc-issuer"},
    {.type = OPTION_TEXT,
     .name = "oidc-audience",
     .value = &given.oidc_audience,
     .metavar = "AUDIENCE",
     .help = "The audience to ask a token for",
     .requires = "oidc-issuer"},
    {.type = OPTION_TEXT,
     .name = "oidc-scopes",
     .value = &given.oidc_scopes,
     .metavar = "SCOPES",
     .help = "The scopes to ask for, with spaces between them",
     .requires = "oidc-issuer"},
    {0},
};

/* ---- ssh's own configuration ---- */

/* What `ssh -G` says; false when there is no ssh. */
static bool run_ssh(const char *destination, struct buffer *output)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    char *arguments[] = {(char *)"ssh", (char *)"-G", (char *)"--", (char *)destination, NULL};
    pid_t process;
    int failed = posix_spawnp(&process, "ssh", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    int status = -1;
    bool read = failed == 0 && file_read_descriptor(ends[0], output, NULL);
    close(ends[0]);
    while (failed == 0 && waitpid(process, &status, 0) < 0 && errno == EINTR)
        ;
    return read && status == 0;
}

/* The host that ssh would connect to. Owned by the caller. */
static char *resolve_host(const char *destination, const char *host)
{
    struct buffer output = BUFFER_INIT(SSH_OUTPUT_MAX);
    char *resolved = NULL;
    if (run_ssh(destination, &output)) {
        static const char key[] = "hostname ";
        const char *at = buffer_text(&output);
        while (at != NULL && !text_has_prefix(at, key)) {
            at = strchr(at, '\n');
            at += at != NULL;
        }
        if (at != NULL) {
            at += sizeof(key) - 1;
            resolved = memory_printf("%.*s", (int)strcspn(at, "\n"), at);
        }
    }
    buffer_free(&output);
    return resolved != NULL ? resolved : memory_strdup(host);
}

/* ---- the entry ---- */

static bool describe_ssh(struct gateway_address *address, struct gateway_entry *entry,
                         struct error *error)
{
    if (given.remote != NULL || given.local)
        return failure_usage(error, "an ssh address and '--%s' exclude each other",
                             given.local ? "local" : "remote");
    char *destination = address->user != NULL ? memory_printf("%s@%s", address->user, address->host)
                                              : memory_strdup(address->host);
    char *resolved = resolve_host(destination, address->host);
    address->endpoint = gateway_address_https(resolved, address->port);
    entry->remote_host = destination;
    entry->resolved_host = resolved;
    entry->is_remote = true;
    return true;
}

static bool describe(struct gateway_address *address, struct gateway_entry *entry,
                     struct error *error)
{
    *entry = (struct gateway_entry){.port = address->port};
    if (address->scheme == GATEWAY_SCHEME_SSH && !describe_ssh(address, entry, error))
        return false;
    if (address->scheme == GATEWAY_SCHEME_UNIX &&
        (given.remote != NULL || given.oidc_issuer != NULL))
        return failure_usage(error, "a socket of this machine and '--%s' exclude each other",
                             given.remote != NULL ? "remote" : "oidc-issuer");
    if (given.remote != NULL)
        entry->remote_host = given.remote;
    entry->endpoint = address->endpoint;
    entry->is_remote |= !given.local && (given.remote != NULL || !address->loopback);
    bool certified = given.local || given.remote != NULL || entry->remote_host != NULL;
    if (given.oidc_issuer != NULL) {
        entry->auth_mode = "oidc";
        entry->oidc_issuer = given.oidc_issuer;
        entry->oidc_client_id = given.oidc_client_id;
        entry->oidc_audience = given.oidc_audience;
        entry->oidc_scopes = given.oidc_scopes;
    } else if (address->scheme == GATEWAY_SCHEME_HTTP || address->scheme == GATEWAY_SCHEME_UNIX) {
        entry->auth_mode = "plaintext";
    } else {
        entry->auth_mode = certified ? "mtls" : "cloudflare_jwt";
    }
    return true;
}

static bool choose_name(const struct gateway_address *address, struct gateway_entry *entry,
                        struct error *error)
{
    entry->name = given.name;
    if (entry->name == NULL && address->scheme == GATEWAY_SCHEME_UNIX)
        return failure_usage(error, "a gateway at a socket needs a name: give it with --name");
    if (entry->name == NULL)
        entry->name = address->loopback ? GATEWAY_LOCAL_NAME : address->host;
    if (gateway_name_valid(entry->name))
        return true;
    CLEANUP_FREE char *shown = text_escaped(entry->name);
    return failure_usage(error, "'%s' cannot be a gateway's name", shown);
}

/* ---- afterwards ---- */

static void warn_of_reach(const struct gateway_address *address)
{
    if (address->scheme != GATEWAY_SCHEME_UNIX) {
        report_notice("this build speaks to gateways at Unix sockets only; until it has TLS, "
                      "commands cannot reach this one, nor log in to it");
        return;
    }
    struct error error = {0};
    int descriptor = file_unix_connect(gateway_unix_path(address->endpoint), &error);
    if (descriptor >= 0)
        close(descriptor);
    else
        report_notice("it cannot be reached now: %s", error.message);
    error_clear(&error);
}

static void report_added(const struct gateway_entry *entry)
{
    const struct gateway shown = {.auth_mode = (char *)entry->auth_mode,
                                  .is_remote = entry->is_remote};
    report_notice("gateway '%s' is added, and used from now on", entry->name);
    report_notice("endpoint: %s", entry->endpoint);
    report_notice("type: %s", describe_type(&shown));
    report_notice("auth: %s", entry->auth_mode);
}

static int run(const struct invocation *invocation, struct error *error)
{
    struct gateway_address address;
    struct gateway_entry entry;
    if (!gateway_address_parse(invocation->words[0], &address, error) ||
        !describe(&address, &entry, error) || !choose_name(&address, &entry, error))
        return -1;
    if (strcmp(entry.auth_mode, "mtls") == 0 &&
        !gateway_store_check_bundle(entry.name, given.local, error))
        return -1;
    if (!gateway_store_add(&entry, error) || !gateway_store_activate(entry.name, error))
        return -1;
    report_added(&entry);
    warn_of_reach(&address);
    return EXIT_SUCCESS;
}

const struct command command_gateway_add = {
    .usage = "[OPTIONS] ENDPOINT",
    .description =
        "Notes a gateway that runs already, and uses it from now on. ENDPOINT is unix:PATH,\n"
        "https://HOST:PORT (also without the scheme), http://HOST:PORT, or\n"
        "ssh://USER@HOST:PORT for one on a machine that ssh knows. The gateway of this user\n"
        "on this machine need not be added.",
    .examples = "  openshell gateway add --name lab unix:/run/lab/gateway.sock\n"
                "  openshell gateway add --local https://127.0.0.1:17670",
    .options = options,
    .least_words = 1,
    .most_words = 1,
    .run = run,
};
