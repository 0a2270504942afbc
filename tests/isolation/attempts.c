/* Ways out of a sandbox, tried from inside.
 *
 *   isolation-attempts --list        the names
 *   isolation-attempts --control     the names of those that succeed for root without a sandbox
 *   isolation-attempts NAME          tries one; exits 0 when it was refused as it has to be
 *   isolation-attempts --raw NAME    prints the outcome: "success" or the name of the errno
 *
 * What an attempt needs to know about the host comes from the environment: HOST_FILE, HOST_SOCKET,
 * HOST_ABSTRACT, HOST_USR_SOCKET, HOST_PROCESS, HOST_PORT, HOST_SHM. */
#include <arpa/inet.h>
#include <asm/ioctls.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* An attempt returns 0 when it succeeded, else an errno. */
static int outcome(long result)
{
    return result < 0 ? errno : 0;
}

static const char *need(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        exit(3);
    }
    return value;
}

static int try_open(const char *path, int flags)
{
    int file = open(path, flags | O_CLOEXEC, 0600);
    int result = outcome(file);
    if (file >= 0)
        close(file);
    return result;
}

/* Opens and reads a byte: some files of /proc only refuse the reading. */
static int try_read(const char *path)
{
    char byte;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int result = outcome(file);
    if (file >= 0) {
        result = outcome(read(file, &byte, 1));
        close(file);
    }
    return result;
}

static int try_call(long number)
{
    return outcome(syscall(number, -1L, 0L, 0L, 0L, 0L, 0L));
}

/* ---- files ---- */

static int host_file(void)
{
    return try_open(need("HOST_FILE"), O_RDONLY);
}

static int host_file_by_own_root(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "/proc/self/root%s", need("HOST_FILE"));
    return try_open(path, O_RDONLY);
}

static int host_file_by_root_of_1(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "/proc/1/root%s", need("HOST_FILE"));
    return try_open(path, O_RDONLY);
}

static int host_file_by_dots(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "/sandbox/../../../../../../..%s", need("HOST_FILE"));
    return try_open(path, O_RDONLY);
}

static int withheld_by_own_root(void)
{
    return try_open("/proc/self/root/home", O_RDONLY | O_DIRECTORY);
}

static int withheld_by_link(void)
{
    unlink("/tmp/way-out");
    if (symlink("/home", "/tmp/way-out") != 0)
        return 0;
    return try_open("/tmp/way-out", O_RDONLY | O_DIRECTORY);
}

static int withheld_by_working_directory(void)
{
    if (chdir("/home") != 0)
        return errno;
    return try_open("/proc/self/cwd", O_RDONLY | O_DIRECTORY);
}

static int password_hashes(void)
{
    return try_open("/etc/shadow", O_RDONLY) == 0 && try_read("/etc/gshadow") == 0
               ? (access("/etc/shadow", R_OK) == 0 && open("/etc/shadow", O_RDONLY) >= 0 ? ENODATA
                                                                                         : 0)
               : EACCES;
}

static int write_usr(void)
{
    return try_open("/usr/way-out", O_WRONLY | O_CREAT);
}

static int write_usr_file(void)
{
    return try_open("/usr/bin/env", O_WRONLY);
}

static int write_etc(void)
{
    return try_open("/etc/way-out", O_WRONLY | O_CREAT);
}

static int write_root(void)
{
    return try_open("/way-out", O_WRONLY | O_CREAT);
}

static int write_dev(void)
{
    return try_open("/dev/way-out", O_WRONLY | O_CREAT);
}

static int change_mode_of_usr(void)
{
    return outcome(chmod("/usr/bin/env", 04777));
}

static int link_out_of_usr(void)
{
    return outcome(link("/usr/bin/env", "/sandbox/way-out"));
}

static int handle_of_a_file(void)
{
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount;
    if (name_to_handle_at(AT_FDCWD, "/tmp", &file.handle, &mount, 0) != 0)
        file.handle.handle_bytes = 8;
    int directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return outcome(open_by_handle_at(directory, &file.handle, O_RDONLY));
}

static int block_device(void)
{
    unlink("/tmp/way-out");
    return outcome(mknod("/tmp/way-out", S_IFBLK | 0666, makedev(8, 0)));
}

static int memory_device(void)
{
    unlink("/tmp/way-out");
    return outcome(mknod("/tmp/way-out", S_IFCHR | 0666, makedev(1, 1)));
}

static int host_devices(void)
{
    const char *const paths[] = {"/dev/mem",  "/dev/kmsg",    "/dev/sda",
                                 "/dev/vda",  "/dev/kvm",     "/dev/fuse",
                                 "/dev/tty0", "/dev/net/tun", "/dev/loop-control"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (access(paths[i], F_OK) == 0)
            return 0;
    return ENOENT;
}

static int system_directory(void)
{
    return try_open("/sys/kernel", O_RDONLY | O_DIRECTORY);
}

/* ---- sockets ---- */

static int connect_unix(const char *name, bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
    int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    int result = outcome(connect(handle, (struct sockaddr *)&address, size));
    close(handle);
    return result;
}

static int host_socket(void)
{
    return connect_unix(need("HOST_SOCKET"), false);
}

static int host_abstract_socket(void)
{
    return connect_unix(need("HOST_ABSTRACT"), true);
}

static int host_usr_socket(void)
{
    return connect_unix(need("HOST_USR_SOCKET"), false);
}

static int system_bus(void)
{
    return connect_unix("/run/dbus/system_bus_socket", false);
}

static int connect_inet(const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    inet_pton(AF_INET, host, &address.sin_addr);
    int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = outcome(connect(handle, (struct sockaddr *)&address, sizeof(address)));
    close(handle);
    return result;
}

static int host_loopback(void)
{
    return connect_inet("127.0.0.1", need("HOST_PORT"));
}

static int internet(void)
{
    return connect_inet("192.0.2.1", "80");
}

static int try_socket(int domain, int type, int protocol)
{
    int handle = socket(domain, type | SOCK_CLOEXEC, protocol);
    int result = outcome(handle);
    if (handle >= 0)
        close(handle);
    return result;
}

static int raw_socket(void)
{
    return try_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int raw_socket_6(void)
{
    return try_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static int packet_socket(void)
{
    return try_socket(AF_PACKET, SOCK_RAW, 0);
}

static int vsock_socket(void)
{
    return try_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static int bluetooth_socket(void)
{
    return try_socket(AF_BLUETOOTH, SOCK_RAW, 1);
}

static int crypto_socket(void)
{
    return try_socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static int audit_netlink(void)
{
    return try_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}

static int netfilter_netlink(void)
{
    return try_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static int uevent_netlink(void)
{
    return try_socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT);
}

/* The domain's high half is not looked at by the kernel; a filter must not look either. */
static int packet_socket_high_bits(void)
{
    return outcome(syscall(SYS_socket, 0x100000000L | AF_PACKET, SOCK_RAW, 0));
}

/* The route family is there, but only to look. */
static int new_interface(void)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request),
                   .nlmsg_type = RTM_NEWLINK,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    int handle = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (handle < 0)
        return ENOTSUP;
    if (send(handle, &request, sizeof(request), 0) < 0 ||
        recv(handle, &answer, sizeof(answer), 0) < 0)
        return errno;
    close(handle);
    return -answer.error.error;
}

/* ---- processes ---- */

static int host_process(void)
{
    return outcome(kill(atoi(need("HOST_PROCESS")), SIGTERM));
}

static int trace_1(void)
{
    return outcome(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
}

static int trace_me(void)
{
    return outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int memory_of_1(void)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
    return outcome(process_vm_readv(1, &local, 1, &remote, 1, 0));
}

static int write_memory_of_1(void)
{
    char byte = 0;
    struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
    return outcome(process_vm_writev(1, &local, 1, &remote, 1, 0));
}

static int pidfd_of_1(void)
{
    return outcome(syscall(SYS_pidfd_open, 1, 0));
}

static int pidfd_steal(void)
{
    return outcome(syscall(SYS_pidfd_getfd, 0, 0, 0));
}

static int pidfd_signal(void)
{
    return outcome(syscall(SYS_pidfd_send_signal, 0, 0, NULL, 0));
}

static int file_of(pid_t process, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
    return try_read(path);
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
    return try_open("/proc/1/fd", O_RDONLY | O_DIRECTORY);
}

static int link_of_1(const char *name)
{
    char path[64], target[256];
    snprintf(path, sizeof(path), "/proc/1/%s", name);
    return outcome(readlink(path, target, sizeof(target)));
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
    return try_open(path, O_RDONLY | O_DIRECTORY);
}

static int kill_reaper(void)
{
    return outcome(kill(find_reaper(), SIGKILL));
}

static int stop_reaper(void)
{
    return outcome(kill(find_reaper(), SIGSTOP));
}

static int kill_1(void)
{
    kill(1, SIGTERM);
    return outcome(kill(1, SIGKILL));
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

/* ---- namespaces, mounts, rights ---- */

static int try_unshare(int flags)
{
    return outcome(unshare(flags));
}

static int new_user_namespace(void)
{
    return try_unshare(CLONE_NEWUSER);
}

static int new_mount_namespace(void)
{
    return try_unshare(CLONE_NEWNS);
}

static int new_network_namespace(void)
{
    return try_unshare(CLONE_NEWNET);
}

static int new_pid_namespace(void)
{
    return try_unshare(CLONE_NEWPID);
}

static int new_time_namespace(void)
{
    return try_unshare(CLONE_NEWTIME);
}

static int clone_user_namespace(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(0);
    return outcome(child);
}

static int clone3_call(void)
{
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (child == 0)
        _exit(0);
    return outcome(child);
}

static int enter_namespace_of_1(void)
{
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return outcome(setns(space, CLONE_NEWNS));
}

static int mount_call(void)
{
    return outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int mount_control_groups(void)
{
    return outcome(mount("none", "/tmp", "cgroup2", 0, NULL));
}

static int remount_usr(void)
{
    return outcome(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int unmount_proc(void)
{
    return outcome(umount2("/proc", MNT_DETACH));
}

static int new_file_system(void)
{
    return outcome(fsopen("tmpfs", 0));
}

static int copy_mount(void)
{
    return outcome(open_tree(AT_FDCWD, "/tmp", OPEN_TREE_CLONE));
}

static int move_a_mount(void)
{
    return outcome(move_mount(AT_FDCWD, "/tmp", AT_FDCWD, "/run", 0));
}

static int change_a_mount(void)
{
    struct mount_attr attribute = {.attr_clr = MOUNT_ATTR_RDONLY};
    return outcome(mount_setattr(AT_FDCWD, "/usr", 0, &attribute, sizeof(attribute)));
}

static int change_root(void)
{
    return outcome(chroot("/tmp"));
}

static int pivot_root_call(void)
{
    return outcome(syscall(SYS_pivot_root, "/tmp", "/tmp"));
}

static int set_user_0(void)
{
    return outcome(setresuid(0, 0, 0));
}

static int set_groups(void)
{
    gid_t group = 0;
    return outcome(syscall(SYS_setgroups, 1, &group));
}

/* The capabilities that are there, and then asking for one. */
static int gain_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &header, data) != 0 || data[0].permitted != 0 || data[1].permitted != 0)
        return 0;
    data[0].effective = data[0].permitted = 1U << CAP_SYS_ADMIN;
    return outcome(syscall(SYS_capset, &header, data));
}

static int bounding_set(void)
{
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_READ, capability) != 0)
            return 0;
    return EPERM;
}

static int new_privileges(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}

/* No mount lets a set-user-id bit or a device node act, but for the devices given. */
static int set_user_id_mounts(void)
{
    char line[4096];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strstr(line, "nosuid") == NULL ||
            (strstr(line, "nodev") == NULL && strstr(line, " /dev") == NULL)) {
            fputs(line, stderr);
            return 0;
        }
    fclose(file);
    return EPERM;
}

static int host_name(void)
{
    return outcome(sethostname("other", 5));
}

static int core_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur != 0 || limit.rlim_max != 0)
        return 0;
    limit.rlim_cur = limit.rlim_max = 1 << 20;
    return outcome(setrlimit(RLIMIT_CORE, &limit));
}

/* ---- the kernel ---- */

static int core_pattern(void)
{
    return try_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int module_program(void)
{
    return try_open("/proc/sys/kernel/modprobe", O_WRONLY);
}

static int system_request(void)
{
    return try_open("/proc/sysrq-trigger", O_WRONLY);
}

static int network_settings(void)
{
    return try_open("/proc/sys/net/ipv4/ip_forward", O_WRONLY);
}

static int kernel_memory(void)
{
    return try_read("/proc/kcore");
}

static int kernel_messages(void)
{
    return try_open("/proc/kmsg", O_RDONLY);
}

static int kernel_log(void)
{
    return outcome(syscall(SYS_syslog, 3, NULL, 0));
}

static int own_oom_score(void)
{
    return try_open("/proc/self/oom_score_adj", O_WRONLY);
}

static int control_group_files(void)
{
    return try_open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
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
    return outcome(shmget((key_t)strtol(need("HOST_SHM"), NULL, 0), 0, 0));
}

static int add_a_key(void)
{
    return outcome(syscall(SYS_add_key, "user", "way-out", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static int request_a_key(void)
{
    return outcome(syscall(SYS_request_key, "user", "way-out", NULL, 0));
}

static int read_a_keyring(void)
{
    char bytes[64];
    return outcome(syscall(SYS_keyctl, KEYCTL_READ, KEY_SPEC_SESSION_KEYRING, bytes, 64, 0));
}

static int uring(void)
{
    struct io_uring_params parameters = {0};
    return outcome(syscall(SYS_io_uring_setup, 4, &parameters));
}

static int bpf_call(void)
{
    union bpf_attr attribute = {0};
    attribute.map_type = BPF_MAP_TYPE_ARRAY;
    attribute.key_size = attribute.value_size = 4;
    attribute.max_entries = 1;
    return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attribute, sizeof(attribute)));
}

static int perf_event(void)
{
    struct perf_event_attr attribute = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof(attribute), .config = PERF_COUNT_SW_TASK_CLOCK};
    return outcome(syscall(SYS_perf_event_open, &attribute, 0, -1, -1, 0));
}

static int fault_descriptor(void)
{
    return outcome(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
}

static int memory_file(void)
{
    return outcome(memfd_create("way-out", 0));
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
    return master < 0 ? ENOTTY : outcome(ioctl(master, TIOCSTI, "x"));
}

/* The command's high half is not looked at by the kernel. */
static int terminal_input_high_bits(void)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    return outcome(syscall(SYS_ioctl, master, 0x100000000L | TIOCSTI, "x"));
}

static struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_fprog allow_program = {1, allow};

static int another_filter(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &allow_program));
}

static int another_filter_by_prctl(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return outcome(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &allow_program, 0, 0));
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
    return outcome(syscall(SYS_swapon, "/tmp/way-out", 0));
}

static int reboot_call(void)
{
    return outcome(syscall(SYS_reboot, 0, 0, 0, NULL));
}

#if defined(__x86_64__)
static int x32_call(void)
{
    return try_call(0x40000000L | SYS_getpid);
}

static int x32_trace(void)
{
    return outcome(syscall(0x40000000L | 521, PTRACE_TRACEME, 0, NULL, NULL));
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
    for (int i = 3; i < 1024; i++)
        if (fcntl(i, F_GETFD) >= 0)
            return 0;
    return EBADF;
}

static int more_processes(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    return outcome(setrlimit(RLIMIT_NPROC, &limit));
}

enum { CONTROL = 1, MAY_BE_MISSING = 2, ALONE = 4, ANY = -1 };

static const struct attempt {
    const char *name;
    int (*attempt)(void);
    int expected;      /* errno */
    int expected_user; /* where the sandbox is an ordinary user's; 0: the same, ANY: whatever */
    int flags;         /* CONTROL: succeeds for root without a sandbox; MAY_BE_MISSING: ENOENT will
                          do; ALONE: not in the list */
} ATTEMPTS[] = {
    {"host-file", host_file, ENOENT, 0, CONTROL},
    {"host-file-by-own-root", host_file_by_own_root, ENOENT, 0, CONTROL},
    {"host-file-by-root-of-1", host_file_by_root_of_1, EACCES, 0, CONTROL},
    {"host-file-by-dots", host_file_by_dots, ENOENT, 0, 0},
    {"withheld-by-own-root", withheld_by_own_root, EACCES, 0, CONTROL},
    {"withheld-by-link", withheld_by_link, EACCES, 0, CONTROL},
    {"withheld-by-working-directory", withheld_by_working_directory, EACCES, 0, CONTROL},
    {"password-hashes", password_hashes, ENODATA, 0, 0},
    {"write-usr", write_usr, EROFS, 0, 0},
    {"write-usr-file", write_usr_file, EROFS, 0, 0},
    {"write-etc", write_etc, EROFS, 0, 0},
    {"write-root", write_root, EROFS, 0, 0},
    {"write-dev", write_dev, EROFS, 0, 0},
    {"change-mode-of-usr", change_mode_of_usr, EROFS, 0, 0},
    {"link-out-of-usr", link_out_of_usr, EXDEV, 0, 0},
    {"handle-of-a-file", handle_of_a_file, EPERM, 0, CONTROL},
    {"block-device", block_device, EPERM, 0, CONTROL},
    {"memory-device", memory_device, EPERM, 0, CONTROL},
    {"host-devices", host_devices, ENOENT, 0, CONTROL},
    {"system-directory", system_directory, ENOENT, 0, CONTROL},
    {"host-socket", host_socket, ENOENT, 0, CONTROL},
    {"host-abstract-socket", host_abstract_socket, ECONNREFUSED, 0, CONTROL},
    {"host-usr-socket", host_usr_socket, ECONNREFUSED, 0, CONTROL},
    {"system-bus", system_bus, ENOENT, 0, 0},
    {"host-loopback", host_loopback, ECONNREFUSED, 0, CONTROL},
    {"internet", internet, ENETUNREACH, 0, 0},
    {"raw-socket", raw_socket, EPERM, 0, CONTROL},
    {"raw-socket-6", raw_socket_6, EPERM, 0, CONTROL},
    {"packet-socket", packet_socket, EPERM, 0, CONTROL},
    {"packet-socket-high-bits", packet_socket_high_bits, EPERM, 0, CONTROL},
    {"vsock-socket", vsock_socket, EPERM, 0, 0},
    {"bluetooth-socket", bluetooth_socket, EPERM, 0, 0},
    {"crypto-socket", crypto_socket, EAFNOSUPPORT, 0, 0},
    {"audit-netlink", audit_netlink, EPERM, 0, 0},
    {"netfilter-netlink", netfilter_netlink, EPERM, 0, CONTROL},
    {"uevent-netlink", uevent_netlink, EPERM, 0, CONTROL},
    {"new-interface", new_interface, EPERM, 0, 0},
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
    /* Last of a run: an ordinary user's workload can end its own session so (decision P8). */
    {"stop-reaper", stop_reaper, EPERM, ANY, ALONE},
    {"kill-reaper", kill_reaper, EPERM, ANY, ALONE},
    {"new-user-namespace", new_user_namespace, EPERM, 0, CONTROL},
    {"new-mount-namespace", new_mount_namespace, EPERM, 0, CONTROL},
    {"new-network-namespace", new_network_namespace, EPERM, 0, CONTROL},
    {"new-pid-namespace", new_pid_namespace, EPERM, 0, CONTROL},
    {"new-time-namespace", new_time_namespace, EPERM, 0, CONTROL},
    {"clone-user-namespace", clone_user_namespace, EPERM, 0, CONTROL},
    {"clone3", clone3_call, ENOSYS, 0, CONTROL},
    {"enter-namespace", enter_namespace_of_1, EPERM, 0, CONTROL},
    {"mount", mount_call, EPERM, 0, CONTROL},
    {"mount-control-groups", mount_control_groups, EPERM, 0, 0},
    {"remount-usr", remount_usr, EPERM, 0, 0},
    {"unmount-proc", unmount_proc, EPERM, 0, 0},
    {"new-file-system", new_file_system, EPERM, 0, CONTROL},
    {"copy-mount", copy_mount, EPERM, 0, CONTROL},
    {"move-mount", move_a_mount, EPERM, 0, 0},
    {"change-mount", change_a_mount, EPERM, 0, 0},
    {"change-root", change_root, EPERM, 0, CONTROL},
    {"pivot-root", pivot_root_call, EPERM, 0, 0},
    {"set-user-0", set_user_0, EPERM, EINVAL, CONTROL},
    {"set-groups", set_groups, EPERM, 0, CONTROL},
    {"gain-capability", gain_capability, EPERM, 0, CONTROL},
    {"bounding-set", bounding_set, EPERM, 0, CONTROL},
    {"new-privileges", new_privileges, EPERM, 0, CONTROL},
    {"set-user-id-mounts", set_user_id_mounts, EPERM, 0, CONTROL},
    {"host-name", host_name, EPERM, 0, CONTROL},
    {"core-limit", core_limit, EPERM, 0, CONTROL},
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
};

static const char *name_of(int result)
{
    return result == 0 ? "success" : strerrorname_np(result);
}

static void list(bool control)
{
    for (size_t i = 0; i < sizeof(ATTEMPTS) / sizeof(ATTEMPTS[0]); i++)
        if (control ? (ATTEMPTS[i].flags & CONTROL) != 0 : (ATTEMPTS[i].flags & ALONE) == 0)
            puts(ATTEMPTS[i].name);
}

/* Tries one in a child, so that what it does to this process does not matter to the next. */
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
        /* The answer keeps a descriptor open that is none of those looked at. */
        int high = fcntl(answer[1], F_DUPFD_CLOEXEC, 2000 < sysconf(_SC_OPEN_MAX) ? 2000 : 1023);
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

static const struct attempt *find(const char *name)
{
    for (size_t i = 0; i < sizeof(ATTEMPTS) / sizeof(ATTEMPTS[0]); i++)
        if (strcmp(ATTEMPTS[i].name, name) == 0)
            return &ATTEMPTS[i];
    fprintf(stderr, "no such attempt: %s\n", name);
    exit(2);
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
    int result = try_in_child(attempt);
    if (result == expected || expected == ANY ||
        (result == ENOENT && (attempt->flags & MAY_BE_MISSING) != 0))
        return true;
    printf("FAILED %s: %s, expected %s\n", attempt->name,
           result < 0 ? "no outcome" : name_of(result), name_of(expected));
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list(false);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--control") == 0) {
        list(true);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--raw") == 0) {
        int result = try_in_child(find(argv[2]));
        puts(result < 0 ? "no outcome" : name_of(result));
        return 0;
    }
    bool held = true;
    for (int i = 1; i < argc; i++)
        held = check(find(argv[i])) && held;
    return held && argc > 1 ? 0 : 1;
}
