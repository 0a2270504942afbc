#include "runtime/copy_helper.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "archive/destination.h"
#include "archive/transfer.h"
#include "base/memory.h"

static int hex_digit(char digit)
{
    static const char DIGITS[] = "0123456789abcdef";
    const char *at = digit != '\0' ? strchr(DIGITS, digit | 0x20) : NULL;
    return at != NULL ? (int)(at - DIGITS) : -1;
}

/* The path that the words name; NULL when they are none. */
static char *path_of(const char *const *words, size_t count)
{
    if (count == 0)
        return NULL;
    char *path = memory_strdup(words[count - 1]);
    if (count < 2 || strcmp(words[count - 2], COPY_HELPER_ESCAPED) != 0)
        return path;
    char *to = path;
    for (const char *from = path; *from != '\0'; to++) {
        int high = from[0] == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (*from == '%' && (low < 0 || (high == 0 && low == 0))) {
            free(path);
            return NULL;
        }
        bool coded = *from == '%';
        *to = coded ? (char)(high * 16 + low) : *from;
        from += coded ? 3 : 1;
    }
    *to = '\0';
    return path;
}

/* Readable when the copy is to end. */
static int cancel_descriptor(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool receive(const char *path, const char *directory, int cancel,
                    struct archive_summary *summary, struct error *error)
{
    struct archive_chooser chooser = {
        .direction = ARCHIVE_UPLOAD, .dest = path, .working_directory = directory, .output = -1};
    const struct archive_receive_options options = {.choose_place = archive_chooser_place,
                                                    .choose_place_data = &chooser,
                                                    .control = {.cancel = cancel}};
    bool good = archive_receive(STDIN_FILENO, -1, &options, summary, error);
    if (!good)
        archive_chooser_undo(&chooser);
    return good;
}

static bool send(const char *path, const char *directory, int cancel,
                 struct archive_summary *summary, struct error *error)
{
    struct archive_inner_source source;
    if (!archive_inner_source_open(directory, path, &source, error))
        return false;
    const struct archive_send_options options = {.from = ARCHIVE_SOURCE_PATH,
                                                 .base = source.base,
                                                 .path = source.path,
                                                 .name = source.name,
                                                 .control = {.cancel = cancel}};
    return archive_send(STDOUT_FILENO, &options, summary, error);
}

static int report(bool good, struct archive_summary *summary, const struct error *error)
{
    size_t kept = archive_summary_kept(summary);
    for (size_t i = 0; i < kept; i++)
        dprintf(STDERR_FILENO, "%s: %s\n", summary->issues[i].name, summary->issues[i].reason);
    if (summary->issue_count > kept)
        dprintf(STDERR_FILENO, "and %" PRIu64 " more\n", summary->issue_count - kept);
    if (!good)
        dprintf(STDERR_FILENO, "%s\n", error->message);
    return !good ? COPY_EXIT_FAILED : summary->incomplete ? COPY_EXIT_INCOMPLETE : COPY_EXIT_WHOLE;
}

int copy_helper_run(enum copy_helper helper, const char *const *words, size_t count)
{
    struct archive_summary summary = {0};
    struct error error = {0};
    CLEANUP_FREE char *path = path_of(words, count);
    CLEANUP_FREE char *directory = getcwd(NULL, 0);
    bool good = false;
    if (path == NULL || directory == NULL)
        error_set(&error, ERROR_INVALID_ARGUMENT, "the path or the working directory is none");
    else if (helper == COPY_RECEIVE)
        good = receive(path, directory, cancel_descriptor(), &summary, &error);
    else
        good = send(path, directory, cancel_descriptor(), &summary, &error);
    return report(good, &summary, &error);
}
