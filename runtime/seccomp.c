#include "runtime/seccomp.h"

#include <asm/termbits.h>
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/syscalls.h"

#if defined(__x86_64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#error "the system call filter does not know this architecture"
#endif

/* Numbers that are the same on every architecture since 5.1, for older headers. */
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* Set in numbers of the x32 interface, which would otherwise pass every comparison. */
#define X32_BIT 0x40000000U

#define NEW_NAMESPACE_FLAGS                                                                        \
    ((uint32_t)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |       \
     CLONE_NEWPID | CLONE_NEWNET)

/* Refused whatever the arguments. */
static const int BLOCKED[] = {
    /* The policy reference's list. */
    SYS_memfd_create,
    SYS_ptrace,
    SYS_bpf,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_io_uring_setup,
    SYS_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_move_mount,
    SYS_open_tree,
    SYS_setns,
    SYS_umount2,
    SYS_pivot_root,
    SYS_userfaultfd,
    SYS_perf_event_open,
    /* Relatives of these. */
    SYS_memfd_secret,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_mount_setattr,
    SYS_open_tree_attr,
    SYS_chroot,
    /* Keyrings are not namespaced. */
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    /* Past path lookup. */
    SYS_open_by_handle_at,
    /* The machine's own; refused without capabilities as well. */
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_syslog,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_vhangup,
    SYS_lookup_dcookie,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
};

enum { PROGRAM_MAX = 320 };

static struct sock_filter instructions[PROGRAM_MAX];
static struct sock_fprog program = {.filter = instructions};

static void emit(uint16_t code, uint32_t operand, uint8_t if_true, uint8_t if_false)
{
    /* The program is made of constants alone; one that does not fit fails every test. */
    if (program.len < PROGRAM_MAX)
        instructions[program.len++] =
            (struct sock_filter){.code = code, .k = operand, .jt = if_true, .jf = if_false};
}

static void emit_answer(int errnum)
{
    emit(BPF_RET | BPF_K,
         errnum == 0 ? SECCOMP_RET_ALLOW
                     : SECCOMP_RET_ERRNO | ((uint32_t)errnum & SECCOMP_RET_DATA),
         0, 0);
}

/* The low half of an argument: all that the kernel looks at in those compared here. */
static void emit_load_argument(unsigned index)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the low half of an argument is elsewhere"
#endif
    emit(BPF_LD | BPF_W | BPF_ABS,
         (uint32_t)(offsetof(struct seccomp_data, args) + index * sizeof(uint64_t)), 0, 0);
}

static void emit_blocked(int number, int errnum)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
    emit_answer(errnum);
}

/* Refuses a call when `operand` compares with an argument (BPF_JEQ: equal, BPF_JSET: shares a
 * bit). */
static void emit_argument(int number, unsigned index, uint16_t comparison, uint32_t operand,
                          int errnum)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
    emit_load_argument(index);
    emit(BPF_JMP | comparison | BPF_K, operand, 0, 1);
    emit_answer(errnum);
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

/* Unix, loopback IP, and netlink for interface lists. Families that the reference names are
 * refused as it says; the others look as if the kernel had not been built with them. */
static void emit_socket(void)
{
    static const uint32_t REFUSED[] = {AF_PACKET, AF_BLUETOOTH, AF_VSOCK};
    static const uint32_t ALLOWED[] = {AF_UNIX, AF_INET, AF_INET6};
    const uint8_t refused = sizeof(REFUSED) / sizeof(REFUSED[0]);
    const uint8_t allowed = sizeof(ALLOWED) / sizeof(ALLOWED[0]);
    uint8_t length = (uint8_t)(1 + 2 * refused + 2 * allowed + 6);
    emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, length);
    emit_load_argument(0);
    for (size_t i = 0; i < refused; i++)
        emit_blocked((int)REFUSED[i], EPERM);
    for (size_t i = 0; i < allowed; i++)
        emit_blocked((int)ALLOWED[i], 0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4);
    emit_load_argument(2);
    emit(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 0, 1);
    emit_answer(0);
    emit_answer(EPERM);
    emit_answer(EAFNOSUPPORT);
}

static void compile(void)
{
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCHITECTURE, 1, 0);
    emit_answer(EPERM);
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
#if defined(__x86_64__)
    /* -1 is no x32 call; the kernel answers it with ENOSYS. */
    emit(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 2, 0);
    emit(BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1);
    emit_answer(EPERM);
#endif
    /* So that the C library falls back to clone, whose flags are in a register (EPERM would stop
     * it). */
    emit_blocked(SYS_clone3, ENOSYS);
    for (size_t i = 0; i < sizeof(BLOCKED) / sizeof(BLOCKED[0]); i++)
        emit_blocked(BLOCKED[i], EPERM);
    emit_argument(SYS_clone, 0, BPF_JSET, NEW_NAMESPACE_FLAGS, EPERM);
    emit_argument(SYS_unshare, 0, BPF_JSET, NEW_NAMESPACE_FLAGS | CLONE_NEWTIME, EPERM);
    emit_argument(SYS_execveat, 4, BPF_JSET, AT_EMPTY_PATH, EPERM);
    /* A filter with a listener could answer calls in place of the kernel. */
    emit_argument(SYS_seccomp, 0, BPF_JEQ, SECCOMP_SET_MODE_FILTER, EPERM);
    emit_argument(SYS_ioctl, 1, BPF_JEQ, TIOCSTI, EPERM);
    emit_argument(SYS_ioctl, 1, BPF_JEQ, TIOCLINUX, EPERM);
    /* The same operation as seccomp(SECCOMP_SET_MODE_FILTER). */
    emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 6);
    emit_load_argument(0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 3);
    emit_load_argument(1);
    emit(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_MODE_FILTER, 0, 1);
    emit_answer(EPERM);
    emit_answer(0);
    emit_socket();
    emit_answer(0);
}

const struct sock_fprog *seccomp_program(void)
{
    if (program.len == 0)
        compile();
    return &program;
}

bool seccomp_enforce(struct error *error)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot forbid new privileges");
    if (syscall_seccomp_install(seccomp_program()) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot install the system call filter");
    return true;
}

bool seccomp_is_enforced(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
           prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

bool seccomp_probe(void)
{
    /* Without the filter: clone3 answers EINVAL to an empty argument, keyctl(-1) EOPNOTSUPP, an
     * unknown netlink protocol EPROTONOSUPPORT. */
    if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
        return false;
    if (syscall(SYS_keyctl, -1, 0, 0, 0, 0) != -1 || errno != EPERM)
        return false;
    int handle = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 31);
    if (handle >= 0)
        close(handle);
    return handle < 0 && errno == EPERM;
}
