/* Ways out of a sandbox, tried from inside.
 *
 *   isolation-attempts --groups      the names of the groups
 *   isolation-attempts --list [GROUP]
 *   isolation-attempts --control     the names of those that succeed for root without a sandbox
 *   isolation-attempts NAME...       tries them; exits 0 when each was refused as it has to be
 *   isolation-attempts --raw NAME    prints the outcome: "success" or the name of the errno
 *   isolation-attempts --host DIR [usr]
 *                                    makes what they look for on the host, until its input ends
 *   isolation-attempts --deny NUMBER ERRNO COMMAND...
 *                                    runs a command for which one system call fails
 *
 * What an attempt needs to know about the host comes from the environment, as --host prints it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempts.h"

static const struct group {
    const char *name;
    const struct attempt *attempts;
} GROUPS[] = {
    {"files", ATTEMPTS_FILES},   {"sockets", ATTEMPTS_SOCKETS}, {"processes", ATTEMPTS_PROCESSES},
    {"rights", ATTEMPTS_RIGHTS}, {"kernel", ATTEMPTS_KERNEL},
};

enum { GROUP_COUNT = sizeof(GROUPS) / sizeof(GROUPS[0]) };

int attempt_outcome(long result)
{
    return result < 0 ? errno : 0;
}

const char *attempt_need(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        exit(3);
    }
    return value;
}

int attempt_open(const char *path, int flags)
{
    int file = open(path, flags | O_CLOEXEC, 0600);
    int result = attempt_outcome(file);
    if (file >= 0)
        close(file);
    return result;
}

int attempt_read(const char *path)
{
    char byte;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int result = attempt_outcome(file);
    if (file >= 0) {
        result = attempt_outcome(read(file, &byte, 1));
        close(file);
    }
    return result;
}

static const char *name_of(int result)
{
    return result < 0 ? "no outcome" : result == 0 ? "success" : strerrorname_np(result);
}

static int list(const char *group, bool control)
{
    bool found = false;
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        if (group != NULL && strcmp(GROUPS[i].name, group) != 0)
            continue;
        found = true;
        for (const struct attempt *attempt = GROUPS[i].attempts; attempt->name != NULL; attempt++)
            if (control ? (attempt->flags & CONTROL) != 0 : (attempt->flags & ALONE) == 0)
                puts(attempt->name);
    }
    return found ? 0 : 2;
}

static int list_groups(void)
{
    for (size_t i = 0; i < GROUP_COUNT; i++)
        puts(GROUPS[i].name);
    return 0;
}

static const struct attempt *find(const char *name)
{
    for (size_t i = 0; i < GROUP_COUNT; i++)
        for (const struct attempt *attempt = GROUPS[i].attempts; attempt->name != NULL; attempt++)
            if (strcmp(attempt->name, name) == 0)
                return attempt;
    fprintf(stderr, "no such attempt: %s\n", name);
    exit(2);
}

/* Tries one in a child, so that what it does to this process does not matter to the next. -1 when
 * it gave no answer. */
static int try_in_child(const struct attempt *attempt)
{
    int answer[2];
    int result = -1;
    if (pipe2(answer, O_CLOEXEC) != 0)
        exit(3);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(answer[0]);
        /* High, where no inherited descriptor is looked for. */
        int high = fcntl(answer[1], F_DUPFD_CLOEXEC, 1000);
        if (high >= 0) {
            close(answer[1]);
            answer[1] = high;
        }
        result = attempt->attempt();
        ssize_t ignored = write(answer[1], &result, sizeof(result));
        (void)ignored;
        _exit(0);
    }
    close(answer[1]);
    if (read(answer[0], &result, sizeof(result)) != sizeof(result))
        result = -1;
    close(answer[0]);
    waitpid(child, NULL, 0);
    return result;
}

/* Whether only one id is mapped: then the sandbox is an ordinary user's. */
static bool is_ordinary_user(void)
{
    char text[256] = "";
    FILE *file = fopen("/proc/self/uid_map", "re");
    size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    unsigned inner, outer, count;
    return sscanf(text, "%u %u %u", &inner, &outer, &count) == 3 && inner != 0 && count == 1;
}

static bool check(const struct attempt *attempt)
{
    bool user = is_ordinary_user();
    int expected = user && attempt->expected_user != 0 ? attempt->expected_user : attempt->expected;
    if ((attempt->flags & NEEDS_USR) != 0 && getenv("HOST_USR_SOCKET") == NULL)
        return true;
    int result = try_in_child(attempt);
    if (result == expected || expected == ANY ||
        (result == ENOENT && (attempt->flags & MAY_BE_MISSING) != 0))
        return true;
    printf("FAILED %s: %s, expected %s\n", attempt->name, name_of(result), name_of(expected));
    return false;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "--groups") == 0)
        return list_groups();
    if (strcmp(mode, "--list") == 0)
        return list(argv[2], false);
    if (strcmp(mode, "--control") == 0)
        return list(NULL, true);
    if (strcmp(mode, "--host") == 0 && argc >= 3)
        return attempts_host(argv[2], argc > 3);
    if (strcmp(mode, "--deny") == 0)
        return attempts_deny(argv + 2);
    if (strcmp(mode, "--raw") == 0 && argc == 3) {
        puts(name_of(try_in_child(find(argv[2]))));
        return 0;
    }
    bool held = argc > 1;
    for (int i = 1; i < argc; i++)
        held = check(find(argv[i])) && held;
    return held ? 0 : 1;
}
