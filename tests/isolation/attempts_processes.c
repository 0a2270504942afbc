/* Processes: the host's, and the sandbox's own that are trusted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempts.h"

static int host_process(void)
{
    return attempt_outcome(kill(atoi(attempt_need("HOST_PROCESS")), SIGTERM));
}

static int trace_1(void)
{
    return attempt_outcome(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
}

static int trace_me(void)
{
    return attempt_outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int memory_of_1(void)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
    return attempt_outcome(process_vm_readv(1, &local, 1, &remote, 1, 0));
}

static int write_memory_of_1(void)
{
    char byte = 0;
    struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
    return attempt_outcome(process_vm_writev(1, &local, 1, &remote, 1, 0));
}

static int pidfd_of_1(void)
{
    return attempt_outcome(syscall(SYS_pidfd_open, 1, 0));
}

static int pidfd_steal(void)
{
    return attempt_outcome(syscall(SYS_pidfd_getfd, 0, 0, 0));
}

static int pidfd_signal(void)
{
    return attempt_outcome(syscall(SYS_pidfd_send_signal, 0, 0, NULL, 0));
}

static int file_of(pid_t process, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
    return attempt_read(path);
}

static int environment_of_1(void)
{
    return file_of(1, "environ");
}

static int maps_of_1(void)
{
    return file_of(1, "maps");
}

static int mem_of_1(void)
{
    return file_of(1, "mem");
}

static int auxv_of_1(void)
{
    return file_of(1, "auxv");
}

static int descriptors_of_1(void)
{
    return attempt_open("/proc/1/fd", O_RDONLY | O_DIRECTORY);
}

static int link_of_1(const char *name)
{
    char path[64], target[256];
    snprintf(path, sizeof(path), "/proc/1/%s", name);
    return attempt_outcome(readlink(path, target, sizeof(target)));
}

static int root_of_1(void)
{
    return link_of_1("root");
}

static int directory_of_1(void)
{
    return link_of_1("cwd");
}

static int program_of_1(void)
{
    return link_of_1("exe");
}

static int namespace_of_1(void)
{
    return link_of_1("ns/mnt");
}

/* The reaper of this session: the process of that name with the highest number. */
static pid_t find_reaper(void)
{
    pid_t found = 0;
    DIR *stream = opendir("/proc");
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof(name), file) != NULL && strcmp(name, "openshell-reap\n") == 0 &&
            atoi(entry->d_name) > found)
            found = atoi(entry->d_name);
        fclose(file);
    }
    if (stream != NULL)
        closedir(stream);
    return found;
}

static int environment_of_reaper(void)
{
    return file_of(find_reaper(), "environ");
}

static int descriptors_of_reaper(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", find_reaper());
    return attempt_open(path, O_RDONLY | O_DIRECTORY);
}

static int kill_reaper(void)
{
    return attempt_outcome(kill(find_reaper(), SIGKILL));
}

static int stop_reaper(void)
{
    return attempt_outcome(kill(find_reaper(), SIGSTOP));
}

static int kill_1(void)
{
    kill(1, SIGTERM);
    return attempt_outcome(kill(1, SIGKILL));
}

/* The name of the runtime's state directory, or anything with a slash, in what process 1 shows. */
static int arguments_of_1(void)
{
    char text[4096];
    int file = open("/proc/1/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof(text)) : 0;
    if (file >= 0)
        close(file);
    for (ssize_t i = 0; i < length; i++)
        if (text[i] == '/')
            return 0;
    return ENODATA;
}

const struct attempt ATTEMPTS_PROCESSES[] = {
    {"host-process", host_process, ESRCH, 0, CONTROL},
    {"trace-1", trace_1, EPERM, 0, 0},
    {"trace-me", trace_me, EPERM, 0, CONTROL},
    {"memory-of-1", memory_of_1, EPERM, 0, 0},
    {"write-memory-of-1", write_memory_of_1, EPERM, 0, 0},
    {"pidfd-of-1", pidfd_of_1, EPERM, 0, CONTROL},
    {"pidfd-steal", pidfd_steal, EPERM, 0, 0},
    {"pidfd-signal", pidfd_signal, EPERM, 0, 0},
    {"environment-of-1", environment_of_1, EACCES, 0, CONTROL},
    {"maps-of-1", maps_of_1, EACCES, 0, CONTROL},
    {"mem-of-1", mem_of_1, EACCES, 0, 0},
    {"auxv-of-1", auxv_of_1, EACCES, 0, CONTROL},
    {"descriptors-of-1", descriptors_of_1, EACCES, 0, CONTROL},
    {"root-of-1", root_of_1, EACCES, 0, CONTROL},
    {"directory-of-1", directory_of_1, EACCES, 0, CONTROL},
    {"program-of-1", program_of_1, EACCES, 0, CONTROL},
    {"namespace-of-1", namespace_of_1, EACCES, 0, CONTROL},
    {"arguments-of-1", arguments_of_1, ENODATA, 0, 0},
    {"environment-of-reaper", environment_of_reaper, EACCES, 0, 0},
    {"descriptors-of-reaper", descriptors_of_reaper, EACCES, 0, 0},
    /* With one id the call is allowed and has no effect: process 1 takes no such signal. */
    {"kill-1", kill_1, EPERM, ANY, 0},
    /* An ordinary user's workload can end its own session so (decision P8). */
    {"stop-reaper", stop_reaper, EPERM, ANY, ALONE},
    {"kill-reaper", kill_reaper, EPERM, ANY, ALONE},
    {NULL, NULL, 0, 0, 0},
};
