/* openshell-sandbox: the runtime of one sandbox. It makes the process-maker before it reads a
 * secret or starts a thread (decision B12), then serves its supervisor. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/daemon.h"
#include "base/log.h"
#include "base/memory.h"
#include "boundary/launch.h"
#include "boundary/owner_lock.h"
#include "runtime/main.h"
#include "runtime/service.h"

static const char USAGE[] =
    "Usage: openshell-sandbox [--help] [--version]\n"
    "\n"
    "The runtime of one sandbox. It is started by the gateway's local driver, which gives it its\n"
    "configuration on descriptor 3, its key on 4 and its lock file on 5; it is of no use by hand.\n"
    "OPENSHELL_LOG_LEVEL sets the least level of its log: error, warn, info, debug or trace.\n";

/* Whether to go on; else the exit status. */
static bool parse_options(int argc, char **argv, int *ret_status)
{
    static const struct option OPTIONS[] = {
        {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
    int option = getopt_long(argc, argv, "hV", OPTIONS, NULL);
    if (option == -1 && optind == argc)
        return true;
    *ret_status = option == 'h' || option == 'V' ? EXIT_SUCCESS : 2;
    if (option == 'V')
        puts("openshell-sandbox " PACKAGE_VERSION);
    else
        fputs(USAGE, *ret_status == EXIT_SUCCESS ? stdout : stderr);
    return false;
}

static void start_log(void)
{
    enum log_level level = LOG_LEVEL_INFO;
    const char *wanted = getenv("OPENSHELL_LOG_LEVEL");
    if (wanted != NULL)
        log_level_parse(wanted, &level);
    log_init("runtime", level);
    log_limit_file();
}

static bool read_launch(struct launch_runtime *ret_launch, struct error *error)
{
    struct buffer text;
    if (!launch_read(LAUNCH_CONFIG_DESCRIPTOR, &text, error))
        return false;
    close(LAUNCH_CONFIG_DESCRIPTOR);
    bool valid = launch_runtime_decode(buffer_text(&text), text.length, ret_launch, error);
    buffer_free(&text);
    return valid;
}

static struct tls_identity *read_identity(struct error *error)
{
    struct buffer text;
    if (!launch_read(LAUNCH_SECRET_DESCRIPTOR, &text, error))
        return NULL;
    close(LAUNCH_SECRET_DESCRIPTOR);
    struct launch_runtime_secret secret;
    bool valid = launch_runtime_secret_decode(buffer_text(&text), text.length, &secret, error);
    buffer_wipe(&text);
    if (!valid)
        return NULL;
    struct tls_identity *identity =
        tls_identity_parse(secret.certificate_pem, secret.key_pem, error);
    launch_runtime_secret_free(&secret);
    return identity;
}

static struct maker *spawn_maker(const struct launch_runtime *launch, struct error *error)
{
    struct maker_config config = {
        .sandbox_name = launch->sandbox_name,
        .state_directory = launch->state_directory,
        .cache_directory = launch->cache_directory,
        .from_directory = launch->from_directory,
        .host_id_base = launch->host_id_base,
        .process_limit = launch->process_limit,
    };
    return maker_spawn(&config, error);
}

/* Everything that needs a thread, a key or the loop; the root is being built meanwhile. */
static bool serve(const struct launch_runtime *launch, struct maker *maker, int *ret_status,
                  struct error *error)
{
    if (!daemon_protect_memory(error))
        return false;
    struct service_options options = {
        .maker = maker, .launch = launch, .lock = LAUNCH_LOCK_DESCRIPTOR};
    tls_warm_up();
    options.identity = read_identity(error);
    if (options.identity == NULL)
        return false;
    options.key = session_token_key_parse_public(launch->verification_key_pem,
                                                 launch->verification_key_id, error);
    if (options.key == NULL)
        return false;
    options.reactor = reactor_new(error);
    if (options.reactor == NULL)
        return false;
    options.rpc = rpc_runtime_new(options.reactor, error);
    if (options.rpc == NULL)
        return false;
    log_debug("serving");
    *ret_status = service_run(&options);
    return true;
}

static bool run(int *ret_status, struct error *error)
{
    struct launch_runtime launch;
    if (!read_launch(&launch, error))
        return false;
    struct maker *maker = spawn_maker(&launch, error);
    if (maker == NULL)
        return false;
    log_debug("process-maker started");
    return serve(&launch, maker, ret_status, error);
}

int runtime_main(int argc, char **argv)
{
    int status = EXIT_FAILURE;
    if (!parse_options(argc, argv, &status))
        return status;
    start_log();
    struct error error = {0};
    if (!daemon_prepare(LAUNCH_LOCK_DESCRIPTOR, &error) ||
        !owner_lock_claim(LAUNCH_LOCK_DESCRIPTOR, &error)) {
        log_error("%s", error.message);
        return EXIT_FAILURE;
    }
    if (!run(&status, &error)) {
        log_error("%s", error.message);
        char *reason = memory_printf("failed: %s", error.message);
        owner_lock_end(LAUNCH_LOCK_DESCRIPTOR, reason);
    }
    /* The process-maker sees the end of its link and ends what may be left. */
    _exit(status);
}
