#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/copied_root.h"
#include "runtime/descriptors.h"
#include "runtime/maker_internal.h"
#include "runtime/syscalls.h"

static void send_warning(const char *text, void *user)
{
    const int *link = user;
    struct message message = {.type = MESSAGE_WARNING};
    size_t length = strnlen(text, sizeof(message.text) - 1);
    memcpy(message.text, text, length);
    message_send(*link, &message, NULL, 0, NULL);
}

static _Noreturn void run(const struct maker_config *config, int link)
{
    struct error error = {0};
    int kept[] = {0, 1, 2, link};
    descriptors_keep_only(kept, sizeof(kept) / sizeof(kept[0]));
    prctl(PR_SET_NAME, "openshell-copy");
    const struct copied_root_request request = {
        .from = config->from_directory,
        .state = config->state_directory,
        .sandbox_name = config->sandbox_name,
        .host_id_base = config->host_id_base,
        .link = link,
    };
    if (copied_root_make(&request, send_warning, &link, &error))
        message_send_simple(link, MESSAGE_READY, 0);
    else
        message_send_error(link, MESSAGE_READY, 0, &error);
    _exit(0);
}

bool copier_start(struct maker *maker, const struct maker_config *config, struct error *error)
{
    int ends[2];
    if (!message_socketpair(ends, error))
        return false;
    maker->copier = syscall_fork();
    if (maker->copier == 0)
        run(config, ends[1]);
    close(ends[1]);
    maker->copier_link = ends[0];
    if (maker->copier < 0) {
        maker->copier = 0;
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno,
                               "cannot start a process to copy the root");
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return true;
}

void copier_stop(struct maker *maker)
{
    reactor_watch_cancel(maker->copier_watch);
    maker->copier_watch = NULL;
    if (maker->copier_link >= 0)
        close(maker->copier_link);
    maker->copier_link = -1;
    if (maker->copier == 0)
        return;
    kill(maker->copier, SIGKILL);
    while (waitpid(maker->copier, NULL, 0) < 0 && errno == EINTR)
        ;
    maker->copier = 0;
}

enum message_result copier_receive(struct maker *maker, struct message *ret_message)
{
    int descriptors[MESSAGE_DESCRIPTORS_MAX];
    return message_receive(maker->copier_link, ret_message, descriptors, NULL);
}
