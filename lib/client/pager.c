#include "client/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t pager;

/* The command, or NULL where none is wanted or of use. */
static const char *choose(void)
{
    static const char *const variables[] = {"OPENSHELL_PAGER", "PAGER"};
    const char *terminal = getenv("TERM"), *command = "less";
    if (!isatty(STDOUT_FILENO) || terminal == NULL || terminal[0] == '\0' ||
        strcmp(terminal, "dumb") == 0)
        return NULL;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        if (value == NULL)
            continue;
        command = value;
        break;
    }
    return command[0] != '\0' && strcmp(command, "cat") != 0 ? command : NULL;
}

static bool spawn(const char *command, int input)
{
    /* A plain name is executed, so that its absence is known; anything else is the shell's. */
    bool plain = strpbrk(command, "|&;<>()$`\\\"' \t\n*?[#~=%") == NULL;
    char *alone[] = {(char *)command, NULL};
    char *shell[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    int failed = posix_spawnp(&pager, plain ? command : "sh", &actions, NULL, plain ? alone : shell,
                              environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        pager = 0;
    return failed == 0;
}

void pager_start(void)
{
    const char *command = choose();
    int ends[2];
    if (command == NULL || pipe2(ends, O_CLOEXEC) != 0)
        return;
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    fflush(stdout);
    if (spawn(command, ends[0])) {
        /* Who leaves the pager has seen enough. */
        signal(SIGPIPE, SIG_IGN);
        dup2(ends[1], STDOUT_FILENO);
    }
    close(ends[0]);
    close(ends[1]);
}

void pager_finish(void)
{
    if (pager == 0)
        return;
    fflush(stdout);
    close(STDOUT_FILENO);
    /* What could not be written is nobody's loss, and nothing further is written. */
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    clearerr(stdout);
    (void)nothing;
    while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
        ;
    pager = 0;
}
