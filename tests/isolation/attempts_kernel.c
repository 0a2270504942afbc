/* The kernel: its settings, and calls that are wider than a workload needs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempts.h"

static int try_call(long number)
{
    return attempt_outcome(syscall(number, -1L, 0L, 0L, 0L, 0L, 0L));
}

static int core_pattern(void)
{
    return attempt_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int module_program(void)
{
    return attempt_open("/proc/sys/kernel/modprobe", O_WRONLY);
}

static int system_request(void)
{
    return attempt_open("/proc/sysrq-trigger", O_WRONLY);
}

static int network_settings(void)
{
    return attempt_open("/proc/sys/net/ipv4/ip_forward", O_WRONLY);
}

static int kernel_memory(void)
{
    return attempt_read("/proc/kcore");
}

static int kernel_messages(void)
{
    return attempt_open("/proc/kmsg", O_RDONLY);
}

static int kernel_log(void)
{
    return attempt_outcome(syscall(SYS_syslog, 3, NULL, 0));
}

static int own_oom_score(void)
{
    return attempt_open("/proc/self/oom_score_adj", O_WRONLY);
}

static int control_group_files(void)
{
    return attempt_open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
}

/* The control group's own name has to look like the top. */
static int control_group_path(void)
{
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *path = strrchr(line, ':');
        if (path == NULL || strstr(path, "openshell") != NULL)
            return 0;
    }
    if (file != NULL)
        fclose(file);
    return ENOENT;
}

static int shared_memory(void)
{
    return attempt_outcome(shmget((key_t)strtol(attempt_need("HOST_SHM"), NULL, 0), 0, 0));
}

static int add_a_key(void)
{
    return attempt_outcome(
        syscall(SYS_add_key, "user", "way-out", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static int request_a_key(void)
{
    return attempt_outcome(syscall(SYS_request_key, "user", "way-out", NULL, 0));
}

static int read_a_keyring(void)
{
    char bytes[64];
    return attempt_outcome(
        syscall(SYS_keyctl, KEYCTL_READ, KEY_SPEC_SESSION_KEYRING, bytes, 64, 0));
}

static int uring(void)
{
    struct io_uring_params parameters = {0};
    return attempt_outcome(syscall(SYS_io_uring_setup, 4, &parameters));
}

static int bpf_call(void)
{
    union bpf_attr attribute = {0};
    attribute.map_type = BPF_MAP_TYPE_ARRAY;
    attribute.key_size = attribute.value_size = 4;
    attribute.max_entries = 1;
    return attempt_outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attribute, sizeof(attribute)));
}

static int perf_event(void)
{
    struct perf_event_attr attribute = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof(attribute), .config = PERF_COUNT_SW_TASK_CLOCK};
    return attempt_outcome(syscall(SYS_perf_event_open, &attribute, 0, -1, -1, 0));
}

static int fault_descriptor(void)
{
    return attempt_outcome(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
}

static int memory_file(void)
{
    return attempt_outcome(memfd_create("way-out", 0));
}

static int execute_descriptor(void)
{
    int file = open("/usr/bin/true", O_PATH | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_execveat, file, "", (const char *[]){"true", NULL}, (const char *[]){NULL},
                AT_EMPTY_PATH);
        _exit(errno);
    }
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int terminal_input(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return master < 0 ? ENOTTY : attempt_outcome(ioctl(master, TIOCSTI, "x"));
}

/* The command's high half is not looked at by the kernel. */
static int terminal_input_high_bits(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return attempt_outcome(syscall(SYS_ioctl, master, 0x100000000L | TIOCSTI, "x"));
}

static struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_fprog allow_program = {1, allow};

static int another_filter(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return attempt_outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &allow_program));
}

static int another_filter_by_prctl(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return attempt_outcome(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &allow_program, 0, 0));
}

static int load_module(void)
{
    return try_call(SYS_init_module);
}

static int load_kernel(void)
{
    return try_call(SYS_kexec_load);
}

static int add_swap(void)
{
    return attempt_outcome(syscall(SYS_swapon, "/tmp/way-out", 0));
}

static int reboot_call(void)
{
    return attempt_outcome(syscall(SYS_reboot, 0, 0, 0, NULL));
}

#if defined(__x86_64__)
static int x32_call(void)
{
    return try_call(0x40000000L | SYS_getpid);
}

static int x32_trace(void)
{
    return attempt_outcome(syscall(0x40000000L | 521, PTRACE_TRACEME, 0, NULL, NULL));
}

static long interrupt_80(long number, long first, long second, long third)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(first), "c"(second), "d"(third)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static int old_call(void)
{
    long result = interrupt_80(20 /* getpid */, 0, 0, 0);
    return result < 0 ? (int)-result : 0;
}

static int old_socket(void)
{
    long result = interrupt_80(359 /* socket */, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
    return result < 0 ? (int)-result : 0;
}
#endif

/* Only the standard streams are open. */
static int inherited_descriptors(void)
{
    for (int i = 3; i < 1000; i++)
        if (fcntl(i, F_GETFD) >= 0)
            return 0;
    return EBADF;
}

static int more_processes(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    return attempt_outcome(setrlimit(RLIMIT_NPROC, &limit));
}

const struct attempt ATTEMPTS_KERNEL[] = {
    {"core-pattern", core_pattern, EACCES, 0, CONTROL},
    {"module-program", module_program, EACCES, 0, MAY_BE_MISSING},
    {"system-request", system_request, EACCES, 0, MAY_BE_MISSING},
    {"network-settings", network_settings, EACCES, 0, CONTROL},
    {"kernel-memory", kernel_memory, EACCES, 0, MAY_BE_MISSING},
    {"kernel-messages", kernel_messages, EACCES, 0, CONTROL},
    {"kernel-log", kernel_log, EPERM, 0, 0},
    {"own-oom-score", own_oom_score, EACCES, 0, CONTROL},
    {"control-group-files", control_group_files, ENOENT, 0, CONTROL},
    {"control-group-path", control_group_path, ENOENT, 0, 0},
    {"shared-memory", shared_memory, ENOENT, 0, CONTROL},
    {"add-key", add_a_key, EPERM, 0, CONTROL},
    {"request-key", request_a_key, EPERM, 0, 0},
    {"read-keyring", read_a_keyring, EPERM, 0, 0},
    {"io-uring", uring, EPERM, 0, CONTROL},
    {"bpf", bpf_call, EPERM, 0, CONTROL},
    {"perf-event", perf_event, EPERM, 0, CONTROL},
    {"fault-descriptor", fault_descriptor, EPERM, 0, CONTROL},
    {"memory-file", memory_file, EPERM, 0, CONTROL},
    {"execute-descriptor", execute_descriptor, EPERM, 0, CONTROL},
    {"terminal-input", terminal_input, EPERM, 0, 0},
    {"terminal-input-high-bits", terminal_input_high_bits, EPERM, 0, 0},
    {"another-filter", another_filter, EPERM, 0, CONTROL},
    {"another-filter-by-prctl", another_filter_by_prctl, EPERM, 0, CONTROL},
    {"load-module", load_module, EPERM, 0, 0},
    {"load-kernel", load_kernel, EPERM, 0, 0},
    {"add-swap", add_swap, EPERM, 0, 0},
    {"reboot", reboot_call, EPERM, 0, 0},
#if defined(__x86_64__)
    {"x32-call", x32_call, EPERM, 0, 0},
    {"x32-trace", x32_trace, EPERM, 0, 0},
    {"old-call", old_call, EPERM, 0, CONTROL},
    {"old-socket", old_socket, EPERM, 0, CONTROL},
#endif
    {"inherited-descriptors", inherited_descriptors, EBADF, 0, 0},
    {"more-processes", more_processes, ANY, EPERM, 0},
    {NULL, NULL, 0, 0, 0},
};
