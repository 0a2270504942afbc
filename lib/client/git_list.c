#include "client/git_list.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/failure.h"

enum { ABOVE_MAX = 512 }; /* directories looked at on the way up */

bool git_list_applies(int directory)
{
    CLEANUP_CLOSE int at = openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; at >= 0 && i < ABOVE_MAX; i++) {
        struct stat here, above;
        if (faccessat(at, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
        int next = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 || fstat(at, &here) != 0 || fstat(next, &above) != 0 ||
            (here.st_ino == above.st_ino && here.st_dev == above.st_dev)) {
            if (next >= 0)
                close(next);
            return false;
        }
        close(at);
        at = next;
    }
    return false;
}

static int unnamed_file(void)
{
    const char *directory = getenv("TMPDIR");
    if (directory == NULL || *directory == '\0')
        directory = "/var/tmp";
    int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0)
        return file;
    CLEANUP_FREE char *path = memory_printf("%s/openshell.XXXXXX", directory);
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    return file;
}

/* Without the variables by which a surrounding git, as of a hook, names its own repository. */
static char **environment_for_git(void)
{
    static const char *const DROPPED[] = {
        "GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_PREFIX="};
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    char **environment = memory_new(sizeof(char *) * (count + 1));
    for (size_t i = 0; i < count; i++) {
        bool dropped = false;
        for (size_t j = 0; j < sizeof(DROPPED) / sizeof(DROPPED[0]); j++)
            dropped = dropped || strncmp(environ[i], DROPPED[j], strlen(DROPPED[j])) == 0;
        if (!dropped)
            environment[kept++] = environ[i];
    }
    return environment;
}

/* 0 when git ended well, its exit code, or -1 with errno. */
static int run_git(int directory, int output)
{
    static const char *const WORDS[] = {"git",           "ls-files", "-co", "--exclude-standard",
                                        "--deduplicate", "-z",       NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addfchdir_np(&actions, directory);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    CLEANUP_FREE char **environment = environment_for_git();
    pid_t process;
    int status,
        result = posix_spawnp(&process, "git", &actions, NULL, (char *const *)WORDS, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (result != 0) {
        errno = result;
        return -1;
    }
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int git_list_open(int directory, const char *shown, struct error *error)
{
    static const char HINT[] = "send all files with: --no-git-ignore";
    int file = unnamed_file();
    int result = file >= 0 ? run_git(directory, file) : -1;
    struct stat status;
    if (file < 0)
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a temporary file");
    else if (result < 0)
        failure_set(error, CLIENT_REASON_COPY_FAILED,
                    "'%s' is in a git work tree, and git cannot be run: %s", shown,
                    strerror(errno));
    else if (result > 0)
        failure_set(error, CLIENT_REASON_COPY_FAILED,
                    "git cannot say which files of '%s' it ignores", shown);
    else if (fstat(file, &status) != 0 || lseek(file, 0, SEEK_SET) != 0)
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot read a temporary file");
    else if (status.st_size == 0)
        failure_set(error, CLIENT_REASON_COPY_FAILED, "git ignores everything in '%s'", shown);
    else
        return file;
    failure_hint(error, HINT);
    if (file >= 0)
        close(file);
    return -1;
}
