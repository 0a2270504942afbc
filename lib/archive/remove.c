#include "archive/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/beneath.h"

enum {
    REMOVE_LEVELS = 64,
    REMOVE_PASSES = 1000 /* over the top; each takes 64 levels off, or what was added meanwhile */
};

struct removal {
    int top;
    unsigned moved; /* names given to what was moved up */
    bool again;     /* something was moved up, so the top is to be read once more */
    int first_error;
};

static void fail(struct removal *removal, int errnum)
{
    if (errnum != ENOENT && removal->first_error == 0)
        removal->first_error = errnum;
}

static void move_up(struct removal *removal, int directory, const char *name)
{
    mode_t mode;
    /* A directory changes its parent only with write permission on itself. */
    int opened = beneath_force_open_directory(directory, name, &mode);
    if (opened >= 0)
        close(opened);
    for (int attempt = 0; attempt < 1000; attempt++) {
        char unique[32];
        snprintf(unique, sizeof(unique), ".deep-%u", removal->moved++);
        if (renameat2(directory, name, removal->top, unique, RENAME_NOREPLACE) == 0) {
            removal->again = true;
            return;
        }
        if (errno != EEXIST)
            break;
    }
    fail(removal, errno);
}

/* Whether a directory entry was removed at once: anything but a directory that is not empty. */
static bool remove_plain(int directory, const struct dirent *entry)
{
    if (entry->d_type != DT_DIR && unlinkat(directory, entry->d_name, 0) == 0)
        return true;
    return unlinkat(directory, entry->d_name, AT_REMOVEDIR) == 0;
}

/* Empties `directory`, which is closed. */
static void empty(struct removal *removal, int directory, unsigned level)
{
    DIR *stream = fdopendir(directory);
    if (stream == NULL) {
        fail(removal, errno);
        close(directory);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || remove_plain(directory, entry))
            continue;
        if (level == REMOVE_LEVELS) {
            move_up(removal, directory, name);
            continue;
        }
        mode_t mode;
        int child = beneath_force_open_directory(directory, name, &mode);
        if (child >= 0)
            empty(removal, child, level + 1);
        if (remove_plain(directory, entry))
            continue;
        if (errno == ENOTEMPTY && removal->first_error == 0)
            removal->again = true; /* added meanwhile, or moved up from below */
        else
            fail(removal, errno);
    }
    closedir(stream);
}

bool remove_below(int directory)
{
    struct removal removal = {.top = directory, .again = true};
    for (int pass = 0; removal.again && pass < REMOVE_PASSES; pass++) {
        removal.again = false;
        int opened = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (opened < 0) {
            fail(&removal, errno);
            break;
        }
        empty(&removal, opened, 0);
    }
    if (removal.again)
        fail(&removal, ELOOP);
    errno = removal.first_error;
    return removal.first_error == 0;
}

bool remove_tree_at(int directory, const char *name)
{
    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
        return true;
    mode_t mode;
    int opened = beneath_force_open_directory(directory, name, &mode);
    if (opened < 0)
        return errno == ENOENT;
    bool emptied = remove_below(opened);
    int saved = errno;
    close(opened);
    if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    if (!emptied)
        errno = saved;
    return false;
}
