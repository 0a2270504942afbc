/* openshell gateway status */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/paths.h"
#include "base/text.h"
#include "client/command.h"
#include "client/document.h"
#include "client/local_gateway.h"
#include "client/settings.h"

static const struct option options[] = {OPTION_OUTPUT, {0}};

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    pid_t process = 0;
    int descriptor = local_gateway_find(&process, error);
    if (descriptor < 0 && error->code != ERROR_OK)
        return -1;
    CLEANUP_FREE char *directory = paths_run_directory(error);
    CLEANUP_FREE char *log = directory != NULL ? local_gateway_log_path(error) : NULL;
    if (log == NULL)
        return -1;
    CLEANUP_FREE char *socket = memory_printf("%s/gateway.sock", directory);
    bool running = descriptor >= 0;
    if (running)
        close(descriptor);
    if (settings.output != OUTPUT_TABLE) {
        json_t *document = json_object();
        json_object_set_new(document, "running", json_boolean(running));
        json_object_set_new(document, "pid", running ? json_integer(process) : json_null());
        json_object_set_new(document, "socket", document_text(socket));
        json_object_set_new(document, "log", document_text(log));
        document_print(document, settings.output, stdout);
        return EXIT_SUCCESS;
    }
    CLEANUP_FREE char *shown_socket = text_escaped(socket);
    CLEANUP_FREE char *shown_log = text_escaped(log);
    if (running)
        printf("The gateway runs (process %d).\n", (int)process);
    else
        printf("The gateway does not run; the next command that needs it starts it.\n");
    printf("Socket: %s\nLog:    %s\n", shown_socket, shown_log);
    return EXIT_SUCCESS;
}

const struct command command_gateway_status = {
    .usage = "[OPTIONS]",
    .description = "Says whether the gateway of this user on this machine runs, and where its "
                   "socket\nand its log are.",
    .examples = "  openshell gateway status -o json",
    .options = options,
    .run = run,
};
