#include "boundary/owner_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

enum { FILE_LIMIT = 1024, CREATE_TRIES = 20, CREATE_PAUSE_MILLISECONDS = 5 };

static bool lock_exclusively(int descriptor)
{
    for (int try = 0; try < CREATE_TRIES; try++) {
        if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = CREATE_PAUSE_MILLISECONDS * 1000000L}, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

int owner_lock_create(const char *path, struct error *error)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot create the lock file '%s'", path);
        return -1;
    }
    if (!lock_exclusively(descriptor)) {
        if (errno == EWOULDBLOCK)
            error_set(error, ERROR_ABORTED, "a living process holds the lock file '%s'", path);
        else
            error_set_errno(error, ERROR_INTERNAL, errno, "cannot lock '%s'", path);
        close(descriptor);
        return -1;
    }
    if (ftruncate(descriptor, 0) != 0) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot empty the lock file '%s'", path);
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* Field 22 of /proc/PID/stat; the second field may contain anything, but ends with the last ')'. */
static bool read_start_time(pid_t process, uint64_t *ret_start_time)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    struct buffer text = BUFFER_INIT(4096);
    bool found = false;
    if (file_read(path, &text, NULL)) {
        const char *field = strrchr(buffer_text(&text), ')');
        for (int number = 2; field != NULL && number < 22; number++) {
            field = strchr(field, ' ');
            if (field != NULL)
                field++;
        }
        found = field != NULL && sscanf(field, "%" SCNu64, ret_start_time) == 1;
    }
    buffer_free(&text);
    return found;
}

bool owner_lock_claim(int descriptor, struct error *error)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot hold the lock file");
    uint64_t start_time = 0;
    if (!read_start_time(getpid(), &start_time))
        return error_set(error, ERROR_INTERNAL, "cannot read the start time of this process");
    char line[64];
    int length = snprintf(line, sizeof(line), "%d %" PRIu64 "\n", (int)getpid(), start_time);
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, line, (size_t)length, 0) != length)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write the lock file");
    return true;
}

void owner_lock_end(int descriptor, const char *reason)
{
    char line[sizeof("ended: ") + sizeof(((struct owner_lock *)0)->ended)];
    int length = snprintf(line, sizeof(line) - 1, "ended: %s", reason);
    if (length > (int)sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    for (int i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    line[length++] = '\n';
    if (lseek(descriptor, 0, SEEK_END) < 0 || write(descriptor, line, (size_t)length) != length)
        return;
}

static bool parse(const char *text, struct owner_lock *lock)
{
    const char *end = strchr(text, '\n');
    int process = 0, used = 0;
    if (end == NULL || sscanf(text, "%d %" SCNu64 "%n", &process, &lock->start_time, &used) != 2 ||
        text + used != end || process <= 0)
        return false;
    lock->process = process;
    static const char PREFIX[] = "ended: ";
    if (strncmp(end + 1, PREFIX, sizeof(PREFIX) - 1) == 0) {
        const char *reason = end + sizeof(PREFIX);
        size_t length = strcspn(reason, "\n");
        if (length >= sizeof(lock->ended))
            length = sizeof(lock->ended) - 1;
        memcpy(lock->ended, reason, length);
        lock->ended[length] = '\0';
    }
    return true;
}

bool owner_lock_read(const char *path, struct owner_lock *ret_lock, struct error *error)
{
    struct buffer text = BUFFER_INIT(FILE_LIMIT);
    if (!file_read(path, &text, error)) {
        buffer_free(&text);
        return false;
    }
    struct owner_lock lock = {0};
    bool whole = parse(buffer_text(&text), &lock);
    buffer_free(&text);
    if (!whole)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the lock file '%s' does not name a process", path);
    *ret_lock = lock;
    return true;
}

bool owner_lock_is_held(const char *path)
{
    CLEANUP_CLOSE int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return false;
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

int owner_lock_open_process(const struct owner_lock *lock, struct error *error)
{
    int descriptor = (int)syscall(SYS_pidfd_open, lock->process, 0);
    if (descriptor < 0) {
        error_set_errno(error, errno == ESRCH ? ERROR_NOT_FOUND : ERROR_INTERNAL, errno,
                        "cannot open process %d", (int)lock->process);
        return -1;
    }
    uint64_t start_time = 0;
    if (!read_start_time(lock->process, &start_time) || start_time != lock->start_time) {
        error_set(error, ERROR_NOT_FOUND, "process %d is not the one that is meant",
                  (int)lock->process);
        close(descriptor);
        return -1;
    }
    return descriptor;
}
