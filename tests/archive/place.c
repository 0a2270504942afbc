#include "tests/archive/place.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

static char location[PATH_MAX];
static char before[PATH_MAX];

int place_set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    const char *base = getenv("TMPDIR");
    if (base == NULL ||
        *base == '\0') /* thousands of small transfers: memory, where there is some */
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(location, sizeof(location), "%s/openshell-archive-XXXXXX", base);
    if (getcwd(before, sizeof(before)) == NULL || mkdtemp(location) == NULL)
        return 1;
    umask(022);
    return chdir(location);
}

int place_tear_down(void **state)
{
    (void)state;
    if (chdir(before) != 0)
        return 1;
    return !file_remove_tree(location, NULL);
}

void place_directory(const char *path, mode_t mode)
{
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
}

void place_file(const char *path, const char *content)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, content, strlen(content)), (ssize_t)strlen(content));
    close(file);
}

const char *place_read(const char *path)
{
    static char content[65536];
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return NULL;
    ssize_t got = read(file, content, sizeof(content) - 1);
    close(file);
    if (got < 0)
        return NULL;
    content[got] = '\0';
    return content;
}

bool place_exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

size_t place_count(const char *path)
{
    size_t count = 0;
    DIR *stream = opendir(path);
    assert_non_null(stream);
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count - 2;
}

int place_open(const char *path)
{
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(opened >= 0);
    return opened;
}

static uint64_t checksum_of(int directory, const char *name)
{
    uint64_t sum = UINT64_C(1469598103934665603);
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    unsigned char chunk[65536];
    ssize_t got;
    while (file >= 0 && (got = read(file, chunk, sizeof(chunk))) > 0)
        for (ssize_t i = 0; i < got; i++)
            sum = (sum ^ chunk[i]) * UINT64_C(1099511628211);
    if (file >= 0)
        close(file);
    return sum;
}

struct lines {
    char **line;
    size_t count;
    ino_t inodes[256];
    char *names[256];
    size_t linked;
    bool with_times;
};

/* The first name under which a file was seen. */
static const char *same_file(struct lines *lines, const struct stat *status, const char *path)
{
    for (size_t i = 0; i < lines->linked; i++)
        if (lines->inodes[i] == status->st_ino)
            return strcmp(lines->names[i], path) < 0 ? lines->names[i] : path;
    if (lines->linked < 256) {
        lines->inodes[lines->linked] = status->st_ino;
        lines->names[lines->linked++] = strdup(path);
    }
    return path;
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static void describe(struct lines *lines, int directory, const char *above)
{
    struct dirent **entries;
    int count = scandirat(directory, ".", &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        struct stat status;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            char *path = memory_printf("%s%s", above, name), target[4096] = "", times[64] = "";
            if (lines->with_times)
                snprintf(times, sizeof(times), "%lld.%09ld", (long long)status.st_mtim.tv_sec,
                         status.st_mtim.tv_nsec);
            if (S_ISLNK(status.st_mode)) {
                ssize_t length = readlinkat(directory, name, target, sizeof(target) - 1);
                target[length > 0 ? length : 0] = '\0';
            } else if (S_ISREG(status.st_mode)) {
                snprintf(target, sizeof(target), "%lld %016llx %s", (long long)status.st_size,
                         (unsigned long long)checksum_of(directory, name),
                         status.st_nlink > 1 ? same_file(lines, &status, path) : "");
            }
            lines->line = memory_resize(lines->line, (lines->count + 1) * sizeof(char *));
            lines->line[lines->count++] =
                memory_printf("%06o %s %s -> %s\n", status.st_mode, times, path, target);
            if (S_ISDIR(status.st_mode)) {
                char *below = memory_printf("%s/", path);
                int opened =
                    openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                describe(lines, opened, below);
                if (opened >= 0)
                    close(opened);
                free(below);
            }
            free(path);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

char *place_describe(const char *path, bool with_times)
{
    struct lines lines = {.with_times = with_times};
    int directory = place_open(path);
    describe(&lines, directory, "");
    close(directory);
    struct buffer text = {0};
    buffer_append_text(&text, "\n");
    for (size_t i = 0; i < lines.count; i++) {
        buffer_append_text(&text, lines.line[i]);
        free(lines.line[i]);
    }
    for (size_t i = 0; i < lines.linked; i++)
        free(lines.names[i]);
    free(lines.line);
    return (char *)text.data;
}

struct feeder {
    int descriptor;
    const unsigned char *data;
    size_t length;
    size_t piece;
};

static void *feed(void *data)
{
    struct feeder *feeder = data;
    for (size_t at = 0; at < feeder->length;) {
        size_t piece = feeder->length - at;
        if (feeder->piece > 0 && piece > feeder->piece)
            piece = feeder->piece;
        ssize_t written = write(feeder->descriptor, feeder->data + at, piece);
        if (written < 0)
            break;
        at += (size_t)written;
    }
    close(feeder->descriptor);
    return NULL;
}

struct archive_receive_options place_receive_options(void)
{
    return (struct archive_receive_options){.control = {.cancel = -1}};
}

bool place_receive(const void *data, size_t length, size_t piece, const char *directory,
                   const struct archive_receive_options *options, struct archive_summary *summary,
                   struct error *error)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct feeder feeder = {ends[1], data, length, piece};
    bool fits = piece == 0 && length <= 65536; /* into the pipe: no thread is needed */
    pthread_t thread;
    if (fits)
        feed(&feeder);
    else
        assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
    int destination = place_open(directory);
    bool received = archive_receive(ends[0], destination, options, summary, error);
    close(ends[0]);
    close(destination);
    if (!fits)
        pthread_join(thread, NULL);
    return received;
}

struct sending {
    const struct archive_send_options *options;
    int output;
    struct place_copy *copy;
};

static void *send_all(void *data)
{
    struct sending *sending = data;
    sending->copy->send_good = archive_send(sending->output, sending->options, &sending->copy->sent,
                                            &sending->copy->send_error);
    close(sending->output);
    return NULL;
}

void place_copy(const struct archive_send_options *send, const char *directory,
                const struct archive_receive_options *receive, struct place_copy *ret_copy)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *ret_copy = (struct place_copy){0};
    struct sending sending = {send, ends[1], ret_copy};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, send_all, &sending), 0);
    int destination = directory != NULL ? place_open(directory) : -1;
    ret_copy->receive_good = archive_receive(ends[0], destination, receive, &ret_copy->received,
                                             &ret_copy->receive_error);
    close(ends[0]);
    if (destination >= 0)
        close(destination);
    pthread_join(thread, NULL);
}

void place_copy_clear(struct place_copy *copy)
{
    archive_summary_clear(&copy->sent);
    archive_summary_clear(&copy->received);
    error_clear(&copy->send_error);
    error_clear(&copy->receive_error);
}

void place_copy_tree(const char *source, const char *name, const char *directory,
                     struct place_copy *ret_copy)
{
    int base = place_open(".");
    struct archive_send_options send = {
        .base = base, .path = source, .name = name, .control = {.cancel = -1}};
    struct archive_receive_options receive = place_receive_options();
    place_copy(&send, directory, &receive, ret_copy);
    close(base);
}

bool place_issue(const struct archive_summary *summary, enum archive_issue_kind kind,
                 const char *name)
{
    for (size_t i = 0; i < archive_summary_kept(summary); i++)
        if (summary->issues[i].kind == kind && strcmp(summary->issues[i].name, name) == 0)
            return true;
    return false;
}
