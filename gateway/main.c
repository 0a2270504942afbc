/* openshell-gateway: the API, the records, and every decision about state and access. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "gateway/main.h"
#include "gateway/options.h"
#include "gateway/server.h"

enum { EXIT_USAGE = 2, DESCRIPTORS_WANTED = 8192 };

/* Nothing of the caller's but its standard streams: a kept descriptor may keep the caller waiting.
 * Secrets stay out of core files and of other processes' reach. */
static void harden(int ready_descriptor)
{
    if (ready_descriptor < 0) {
        close_range(3, ~0U, 0);
    } else {
        if (ready_descriptor > 3)
            close_range(3, (unsigned)ready_descriptor - 1, 0);
        close_range((unsigned)ready_descriptor + 1, ~0U, 0);
        fcntl(ready_descriptor, F_SETFD, FD_CLOEXEC);
    }
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    prctl(PR_SET_DUMPABLE, 0);
    struct rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur < DESCRIPTORS_WANTED) {
        descriptors.rlim_cur =
            descriptors.rlim_max < DESCRIPTORS_WANTED ? descriptors.rlim_max : DESCRIPTORS_WANTED;
        setrlimit(RLIMIT_NOFILE, &descriptors);
    }
}

static bool open_log_file(const char *path, struct error *error)
{
    if (path == NULL)
        return true;
    CLEANUP_CLOSE int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || dup2(descriptor, STDERR_FILENO) < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open the log '%s'", path);
    return true;
}

static void tell_ready(int descriptor)
{
    if (descriptor < 0)
        return;
    if (write(descriptor, "\n", 1) != 1)
        log_warn("nobody waits for the gateway to be ready");
    close(descriptor);
}

static int fail(const struct error *error, int status)
{
    fprintf(stderr, "openshell-gateway: %s\n", error->message);
    return status;
}

int gateway_main(int argc, char **argv)
{
    struct options options;
    struct error error = {0};
    if (!options_parse(argc, argv, &options, &error))
        return fail(&error, EXIT_USAGE);
    if (options.help || options.version) {
        fputs(options.help ? options_help() : "openshell-gateway " PACKAGE_VERSION "\n", stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    harden(options.ready_descriptor);
    log_init("gateway", options.log_level);
    if (!open_log_file(options.log_file, &error))
        return fail(&error, EXIT_FAILURE);
    /* Somebody else's file, to which stderr was directed, is theirs to limit. */
    if (options.log_file != NULL || options.ready_descriptor >= 0)
        log_limit_file();
    struct gateway *gateway = server_open(options.socket, &error);
    if (gateway == NULL)
        return fail(&error, EXIT_FAILURE);
    log_info("version %s serves %s", PACKAGE_VERSION, gateway->socket_path);
    tell_ready(options.ready_descriptor);
    server_run(gateway);
    server_close(gateway);
    /* What is left belongs to calls that end with the process. */
    fflush(NULL);
    _exit(EXIT_SUCCESS);
}
