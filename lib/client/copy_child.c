#include "client/copy_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/report.h"

enum { ISSUE_NAME_MAX = 512 }; /* bytes of an escaped name that are shown */

struct copy_shared {
    _Atomic uint64_t bytes, entries;
    bool finished; /* what follows is there */
    struct copy_result result;
    enum error_code code;
    char message[ERROR_MESSAGE_MAX];
    uint64_t issue_count;
    size_t kept;
    struct {
        char name[ISSUE_NAME_MAX];
        char reason[sizeof(((struct archive_issue *)0)->reason)];
    } issues[ARCHIVE_ISSUES_MAX];
};

static void on_progress(void *data, uint64_t bytes, uint64_t entries)
{
    struct copy_shared *shared = data;
    atomic_store(&shared->bytes, bytes);
    atomic_store(&shared->entries, entries);
}

static void hand_over(struct copy_shared *shared, bool good, const struct archive_summary *summary,
                      const struct error *error)
{
    shared->result = (struct copy_result){.good = good,
                                          .incomplete = summary->incomplete,
                                          .bytes = summary->bytes,
                                          .entries = summary->entries,
                                          .link_copies = summary->link_copies};
    shared->code = error->code;
    snprintf(shared->message, sizeof(shared->message), "%s", error->message);
    shared->issue_count = summary->issue_count;
    shared->kept = archive_summary_kept(summary);
    for (size_t i = 0; i < shared->kept; i++) {
        snprintf(shared->issues[i].name, sizeof(shared->issues[i].name), "%s",
                 summary->issues[i].name);
        snprintf(shared->issues[i].reason, sizeof(shared->issues[i].reason), "%s",
                 summary->issues[i].reason);
    }
    shared->finished = true;
}

/* A terminal sends its signals to all of the foreground; the parent decides what they mean. */
static _Noreturn void run_child(struct copy_shared *shared, copy_work *work, void *data, int stream,
                                int cancel)
{
    static const int IGNORED[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof(IGNORED) / sizeof(IGNORED[0]); i++)
        signal(IGNORED[i], SIG_IGN);
    struct archive_summary summary = {0};
    struct error error = {0};
    const struct archive_control control = {
        .cancel = cancel, .progress = on_progress, .progress_data = shared};
    bool good = work(data, stream, &control, &summary, &error);
    hand_over(shared, good, &summary, &error);
    _exit(0);
}

bool copy_child_start(struct copy_child *child, copy_work *work, void *data, struct error *error)
{
    int ends[2], cancel[2];
    void *memory = mmap(NULL, sizeof(struct copy_shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
        pipe2(cancel, O_CLOEXEC) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot start to copy");
    pid_t process = fork();
    if (process < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot start to copy");
    if (process == 0) {
        close(ends[0]);
        close(cancel[1]);
        run_child(memory, work, data, ends[1], cancel[0]);
    }
    close(ends[1]);
    close(cancel[0]);
    *child = (struct copy_child){
        .process = process, .stream = ends[0], .cancel = cancel[1], .shared = memory};
    return true;
}

void copy_child_progress(const struct copy_child *child, uint64_t *ret_bytes, uint64_t *ret_entries)
{
    *ret_bytes = atomic_load(&child->shared->bytes);
    *ret_entries = atomic_load(&child->shared->entries);
}

void copy_child_close_stream(struct copy_child *child)
{
    if (child->stream >= 0)
        close(child->stream);
    child->stream = -1;
}

void copy_child_cancel(struct copy_child *child)
{
    if (child->cancel >= 0)
        close(child->cancel);
    child->cancel = -1;
}

struct copy_result copy_child_wait(struct copy_child *child, struct error *error)
{
    while (!child->ended && waitpid(child->process, NULL, 0) < 0 && errno == EINTR)
        ;
    child->ended = true;
    const struct copy_shared *shared = child->shared;
    if (!shared->finished)
        error_set(error, ERROR_INTERNAL, "the process that copies was killed");
    else if (!shared->result.good)
        error_set(error, shared->code, "%s", shared->message);
    return shared->finished ? shared->result : (struct copy_result){0};
}

void copy_child_report(const struct copy_child *child)
{
    const struct copy_shared *shared = child->shared;
    for (size_t i = 0; shared->finished && i < shared->kept; i++)
        report_notice("%s: %s", shared->issues[i].name, shared->issues[i].reason);
    if (shared->finished && shared->issue_count > shared->kept)
        report_notice("and %" PRIu64 " more", shared->issue_count - shared->kept);
}
