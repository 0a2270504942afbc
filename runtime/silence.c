#include "runtime/silence.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/descriptors.h"
#include "runtime/syscalls.h"

void silence_descriptors(int control, int other)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; null >= 0 && i < 3; i++)
        if (i != control && i != other)
            dup2(null, i);
    int kept[] = {0, 1, 2, control, other};
    descriptors_keep_only(kept, sizeof(kept) / sizeof(kept[0]));
}

/* Overwrites the memory that /proc/PID/cmdline and environ show. Its bounds are fields 48 to 51 of
 * stat. */
static void hide_arguments(void)
{
    static const char TITLE[] = "openshell-process-maker";
    char text[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *field = strrchr(text, ')');
    for (int number = 2; field != NULL && number < 48; number++) {
        field = strchr(field, ' ');
        field = field != NULL ? field + 1 : NULL;
    }
    unsigned long bounds[4];
    if (field == NULL ||
        sscanf(field, "%lu %lu %lu %lu", &bounds[0], &bounds[1], &bounds[2], &bounds[3]) != 4)
        return;
    for (int i = 0; i < 4; i += 2)
        if (bounds[i] != 0 && bounds[i + 1] > bounds[i])
            memset((void *)(uintptr_t)bounds[i], 0, bounds[i + 1] - bounds[i]);
    if (bounds[0] != 0 && bounds[1] > bounds[0])
        snprintf((char *)(uintptr_t)bounds[0], bounds[1] - bounds[0], "%s", TITLE);
}

void silence_process(void)
{
    static const struct rlimit NO_CORE = {0, 0};
    prctl(PR_SET_DUMPABLE, 0);
    setrlimit(RLIMIT_CORE, &NO_CORE);
    prctl(PR_SET_NAME, "openshell-maker");
    syscall_join_session_keyring();
    syscall_reset_signals();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    hide_arguments();
}
