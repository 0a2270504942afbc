/* openshell-supervisor: outside the boundary of one sandbox, between its gateway and its runtime.
 */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/daemon.h"
#include "base/log.h"
#include "base/memory.h"
#include "boundary/owner_lock.h"
#include "supervisor/main.h"
#include "supervisor/supervisor.h"

static const char USAGE[] =
    "Usage: openshell-supervisor [--help] [--version]\n"
    "\n"
    "The supervisor of one sandbox. It is started by the gateway's local driver, which gives it\n"
    "its configuration on descriptor 3, the socket for the runtime on 4 and its lock file on 5; "
    "it\n"
    "is of no use by hand.\n"
    "SIGTERM stops the sandbox, SIGUSR1 makes it connect to the gateway again at once.\n"
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
        puts("openshell-supervisor " PACKAGE_VERSION);
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
    log_init("supervisor", level);
    log_limit_file();
}

static bool read_launch(struct launch_supervisor *ret_launch, struct error *error)
{
    struct buffer text;
    if (!launch_read(LAUNCH_CONFIG_DESCRIPTOR, &text, error))
        return false;
    close(LAUNCH_CONFIG_DESCRIPTOR);
    bool valid = launch_supervisor_decode(buffer_text(&text), text.length, ret_launch, error);
    buffer_wipe(&text);
    return valid;
}

static bool run(int *ret_status, struct error *error)
{
    struct launch_supervisor launch;
    if (!daemon_protect_memory(error) || !read_launch(&launch, error))
        return false;
    struct supervisor_options options = {
        .launch = &launch, .listener = LAUNCH_SECRET_DESCRIPTOR, .lock = LAUNCH_LOCK_DESCRIPTOR};
    options.reactor = reactor_new(error);
    if (options.reactor == NULL)
        return false;
    options.rpc = rpc_runtime_new(options.reactor, error);
    if (options.rpc == NULL)
        return false;
    log_debug("starting");
    *ret_status = supervisor_run(&options);
    launch_supervisor_free(&launch);
    return true;
}

int supervisor_main(int argc, char **argv)
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
    _exit(status);
}
