/* The parts of the process-maker that can be tried without a sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/descriptors.h"
#include "runtime/maker_protocol.h"
#include "runtime/process_tree.h"
#include "runtime/seccomp.h"

static char *make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    char *path = memory_printf("%s/parts-XXXXXX", parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static void write_text(const char *directory, const char *name, const char *text)
{
    CLEANUP_FREE char *path = memory_printf("%s/%s", directory, name);
    CLEANUP_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_true(file_write_all(file, text, strlen(text), NULL));
}

/* ---- protocol ---- */

static void test_blob(void **state)
{
    (void)state;
    const struct spec_header header = {.argument_count = 2, .environment_count = 1, .columns = 80};
    const char *const workdir[] = {""};
    const char *const arguments[] = {"name", "two\nlines \xff"};
    const char *const environment[] = {"A=b"};
    const struct blob_string_list lists[] = {{workdir, 1}, {arguments, 2}, {environment, 1}};
    struct error error = {0};
    int descriptor = blob_create(&header, sizeof(header), lists, 3, &error);
    assert_true(descriptor >= 0);
    /* Nobody can change it any more. */
    assert_int_equal(-1, pwrite(descriptor, "x", 1, 0));

    struct spec_header read;
    struct blob blob;
    assert_true(blob_open(descriptor, &read, sizeof(read), &blob, &error));
    assert_memory_equal(&header, &read, sizeof(header));
    assert_string_equal("", blob_next(&blob));
    const char **words = blob_next_array(&blob, read.argument_count);
    assert_non_null(words);
    assert_string_equal(arguments[1], words[1]);
    assert_null(words[2]);
    assert_string_equal("A=b", blob_next(&blob));
    assert_null(blob_next(&blob));
    assert_null(blob_next_array(&blob, 1));
    free(words);
    close(descriptor);
}

static void test_blob_malformed(void **state)
{
    (void)state;
    struct spec_header header;
    struct blob blob;
    struct error error = {0};
    CLEANUP_FREE char *directory = make_directory();
    write_text(directory, "short", "x");
    CLEANUP_FREE char *path = memory_printf("%s/short", directory);
    CLEANUP_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_false(blob_open(file, &header, sizeof(header), &blob, &error));
    assert_false(blob_open(-1, &header, sizeof(header), &blob, &error));
    assert_true(file_remove_tree(directory, NULL));

    /* More strings promised than there are. */
    const char *const one[] = {"only"};
    const struct blob_string_list list = {one, 1};
    CLEANUP_CLOSE int descriptor = blob_create(&header, sizeof(header), &list, 1, &error);
    assert_true(blob_open(descriptor, &header, sizeof(header), &blob, &error));
    assert_null(blob_next_array(&blob, 2));
    assert_null(blob_next_array(&blob, SIZE_MAX));
}

static void test_blob_too_large(void **state)
{
    (void)state;
    struct spec_header header = {0};
    struct error error = {0};
    char *large = memory_allocate(BLOB_MAX + 1);
    memset(large, 'x', BLOB_MAX);
    large[BLOB_MAX] = '\0';
    const char *const strings[] = {large};
    const struct blob_string_list list = {strings, 1};
    assert_int_equal(-1, blob_create(&header, sizeof(header), &list, 1, &error));
    assert_int_equal(ERROR_INVALID_ARGUMENT, error.code);
    free(large);
}

static void test_messages(void **state)
{
    (void)state;
    int ends[2], descriptors[MESSAGE_DESCRIPTORS_MAX], pair[2];
    struct error error = {0};
    assert_true(message_socketpair(ends, &error));
    assert_true(message_want_sender(ends[0]));
    assert_int_equal(0, pipe2(pair, O_CLOEXEC));
    struct message message = {.type = MESSAGE_STARTED, .value = 7};
    assert_true(message_send(ends[1], &message, pair, 2, &error));
    close(pair[0]);
    close(pair[1]);

    struct message got;
    struct message_sender sender;
    assert_int_equal(MESSAGE_GOT, message_receive(ends[0], &got, descriptors, &sender));
    assert_int_equal(MESSAGE_STARTED, got.type);
    assert_int_equal(7, got.value);
    assert_int_equal(getpid(), sender.process);
    assert_int_equal(getuid(), sender.user_id);
    assert_int_equal(1, write(descriptors[1], "x", 1));
    assert_true((fcntl(descriptors[0], F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(-1, descriptors[2]);
    close(descriptors[0]);
    close(descriptors[1]);

    error_set(&error, ERROR_FAILED_PRECONDITION, "why");
    assert_true(message_send_error(ends[1], MESSAGE_READY, 0, &error));
    assert_int_equal(MESSAGE_GOT, message_receive(ends[0], &got, descriptors, NULL));
    struct error received = {0};
    assert_true(message_get_error(&got, &received));
    assert_int_equal(ERROR_FAILED_PRECONDITION, received.code);
    assert_string_equal("why", received.message);

    assert_int_equal(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    assert_int_equal(MESSAGE_NONE, message_receive(ends[0], &got, descriptors, NULL));
    close(ends[1]);
    assert_int_equal(MESSAGE_END, message_receive(ends[0], &got, descriptors, NULL));
    assert_false(message_send_simple(ends[0], MESSAGE_PING, 0));
    close(ends[0]);
}

/* A packet of another size is the end, and what came with it does not stay open. */
static void test_foreign_message(void **state)
{
    (void)state;
    int ends[2], descriptors[MESSAGE_DESCRIPTORS_MAX];
    struct message got;
    assert_true(message_socketpair(ends, NULL));
    assert_int_equal(3, send(ends[1], "abc", 3, 0));
    assert_int_equal(MESSAGE_END, message_receive(ends[0], &got, descriptors, NULL));
    close(ends[0]);
    close(ends[1]);
}

/* ---- the filter, run by a small interpreter ---- */

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;
    assert_true(offset % 4 == 0 && offset + sizeof(word) <= sizeof(*data));
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

static uint32_t run_filter(const struct seccomp_data *data)
{
    const struct sock_fprog *program = seccomp_program();
    uint32_t accumulator = 0;
    for (size_t i = 0; i < program->len; i++) {
        const struct sock_filter *instruction = &program->filter[i];
        switch (instruction->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            accumulator = load(data, instruction->k);
            break;
        case BPF_RET | BPF_K:
            return instruction->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            i += accumulator == instruction->k ? instruction->jt : instruction->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            i += (accumulator & instruction->k) != 0 ? instruction->jt : instruction->jf;
            break;
        default:
            fail_msg("instruction %zu is unknown", i);
        }
    }
    fail_msg("the filter ends without an answer");
    return 0;
}

#if defined(__x86_64__)
enum { ALLOW = 0 };

static void check_call(int number, uint64_t first, uint64_t second, uint64_t third, uint64_t fifth,
                       int expected)
{
    struct seccomp_data data = {
        .nr = number,
        .arch = AUDIT_ARCH_X86_64,
        .args = {first, second, third, 0, fifth, 0},
    };
    uint32_t wanted =
        expected == ALLOW ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (uint32_t)expected;
    uint32_t answer = run_filter(&data);
    if (answer != wanted)
        fail_msg("call %d (%#lx, %#lx, %#lx, .., %#lx): %#x, expected %#x", number, first, second,
                 third, fifth, answer, wanted);
}

static void test_filter_numbers(void **state)
{
    (void)state;
    static const int blocked[] = {
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
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_open_by_handle_at,
        SYS_mount_setattr,
        SYS_kexec_load,
        SYS_init_module,
    };
    for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
        check_call(blocked[i], 0, 0, 0, 0, EPERM);
    static const int allowed[] = {
        SYS_read,
        SYS_write,
        SYS_openat,
        SYS_execve,
        SYS_fork,
        SYS_vfork,
        SYS_socketpair,
        SYS_connect,
        SYS_sendto,
        SYS_sendmsg,
        SYS_recvmsg,
        SYS_kill,
        SYS_futex,
        SYS_landlock_create_ruleset,
        SYS_name_to_handle_at,
        SYS_close_range,
        SYS_epoll_wait,
        SYS_statx,
        SYS_rseq,
    };
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        check_call(allowed[i], 0, 0, 0, 0, ALLOW);
    check_call(SYS_clone3, 0, 0, 0, 0, ENOSYS);
}

static void test_filter_arguments(void **state)
{
    (void)state;
    static const unsigned long namespaces[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                               CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                               CLONE_NEWNET};
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
        check_call(SYS_clone, namespaces[i] | SIGCHLD, 0, 0, 0, EPERM);
        check_call(SYS_unshare, namespaces[i] | CLONE_FILES, 0, 0, 0, EPERM);
    }
    check_call(SYS_unshare, 0x80 /* CLONE_NEWTIME */, 0, 0, 0, EPERM);
    check_call(SYS_unshare, CLONE_FILES | CLONE_FS, 0, 0, 0, ALLOW);
    check_call(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0, ALLOW);
    check_call(SYS_clone, SIGCHLD, 0, 0, 0, ALLOW);

    check_call(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, ALLOW);
    check_call(SYS_socket, AF_INET, SOCK_RAW, 0, 0, ALLOW); /* the capability is missing */
    check_call(SYS_socket, AF_INET6, SOCK_STREAM, 6, 0, ALLOW);
    check_call(SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, ALLOW);
    for (unsigned protocol = 1; protocol < 32; protocol++)
        check_call(SYS_socket, AF_NETLINK, SOCK_RAW, protocol, 0, EPERM);
    check_call(SYS_socket, AF_NETLINK, SOCK_RAW, 0x100000000UL, 0, ALLOW); /* as the kernel cuts */
    check_call(SYS_socket, AF_PACKET, SOCK_RAW, 0, 0, EPERM);
    check_call(SYS_socket, 0x100000000UL | AF_PACKET, SOCK_RAW, 0, 0, EPERM);
    check_call(SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0, EPERM);
    check_call(SYS_socket, AF_BLUETOOTH, SOCK_RAW, 0, 0, EPERM);
    for (unsigned family = 0; family < 64; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK &&
            family != AF_PACKET && family != AF_VSOCK && family != AF_BLUETOOTH)
            check_call(SYS_socket, family, SOCK_STREAM, 0, 0, EAFNOSUPPORT);

    check_call(SYS_execveat, 3, 0, 0, AT_EMPTY_PATH, EPERM);
    check_call(SYS_execveat, 3, 0, 0, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, EPERM);
    check_call(SYS_execveat, 3, 0, 0, 0, ALLOW);
    check_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, 0, EPERM);
    check_call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 0, 0, ALLOW);
    check_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, 0, EPERM);
    check_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, ALLOW);
    check_call(SYS_prctl, PR_SET_NAME, SECCOMP_MODE_FILTER, 0, 0, ALLOW);
    check_call(SYS_ioctl, 0, TIOCSTI, 0, 0, EPERM);
    check_call(SYS_ioctl, 0, 0xF00000000UL | TIOCSTI, 0, 0, EPERM);
    check_call(SYS_ioctl, 0, TIOCLINUX, 0, 0, EPERM);
    check_call(SYS_ioctl, 0, TIOCGWINSZ, 0, 0, ALLOW);
}

static void test_filter_other_interfaces(void **state)
{
    (void)state;
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, 0};
    for (size_t i = 0; i < 3; i++)
        for (int number = 0; number < 500; number++) {
            struct seccomp_data data = {.nr = number, .arch = foreign[i]};
            assert_int_equal(SECCOMP_RET_ERRNO | EPERM, run_filter(&data));
        }
    for (int number = 0; number < 600; number++)
        check_call(0x40000000 | number, 0, 0, 0, 0, EPERM);
    check_call(-1, 0, 0, 0, 0, ALLOW); /* the kernel says ENOSYS */
}
#endif

/* ---- processes and descriptors ---- */

static void test_keep_only(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        int high = fcntl(0, F_DUPFD, 200);
        int middle = fcntl(0, F_DUPFD, 50);
        int lost = fcntl(0, F_DUPFD, 100);
        bool kept = descriptors_keep_only((int[]){high, -1, 2, middle, middle}, 5);
        bool right = kept && fcntl(high, F_GETFD) >= 0 && fcntl(middle, F_GETFD) >= 0 &&
                     fcntl(2, F_GETFD) >= 0 && fcntl(lost, F_GETFD) < 0 && fcntl(0, F_GETFD) < 0 &&
                     fcntl(1, F_GETFD) < 0 && fcntl(high + 1, F_GETFD) < 0;
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
}

/* Starts a process with two more below it; the last says that it is there. */
static pid_t start_tree(void)
{
    int ready[2];
    assert_int_equal(0, pipe2(ready, O_CLOEXEC));
    pid_t top = fork();
    if (top == 0) {
        /* A name that could be mistaken for the end of one. */
        prctl(PR_SET_NAME, "x) S 1 (");
        if (fork() == 0 && fork() == 0 && write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    assert_int_equal(1, read(ready[0], &byte, 1));
    close(ready[0]);
    close(ready[1]);
    return top;
}

static void test_tree(void **state)
{
    (void)state;
    CLEANUP_CLOSE int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    pid_t spared = start_tree();
    pid_t top = start_tree();
    struct process_tree tree = process_tree_list(proc, top, NULL, 0);
    assert_int_equal(2, tree.count);
    process_tree_free(&tree);
    tree = process_tree_list(proc, getpid(), NULL, 0);
    assert_int_equal(6, tree.count);
    process_tree_free(&tree);
    tree = process_tree_list(proc, getpid(), &spared, 1);
    assert_int_equal(3, tree.count);
    process_tree_free(&tree);

    /* Without descriptors nothing is seen, and that is no answer. */
    struct rlimit before;
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
    struct rlimit none = {0, before.rlim_max};
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &none));
    enum process_tree_result blind = process_tree_kill(proc, getpid(), NULL, 0);
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
    assert_int_equal(PROCESS_TREE_BLIND, blind);
    assert_int_equal(0, kill(spared, 0));

    assert_int_equal(PROCESS_TREE_KILLED, process_tree_kill(proc, getpid(), &spared, 1));
    int status;
    assert_int_equal(top, waitpid(top, &status, 0));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(0, kill(spared, 0));
    process_tree_kill(proc, getpid(), NULL, 0);
    assert_int_equal(spared, waitpid(spared, &status, 0));
    assert_int_equal(PROCESS_TREE_EMPTY, process_tree_kill(proc, getpid(), NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blob),
        cmocka_unit_test(test_blob_malformed),
        cmocka_unit_test(test_blob_too_large),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_foreign_message),
#if defined(__x86_64__)
        cmocka_unit_test(test_filter_numbers),
        cmocka_unit_test(test_filter_arguments),
        cmocka_unit_test(test_filter_other_interfaces),
#endif
        cmocka_unit_test(test_keep_only),
        cmocka_unit_test(test_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
