/* What the attempts look for on the host. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempts.h"

static int listen_unix(const char *name, bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    if (length + 2 > sizeof(address.sun_path))
        return -1;
    memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
    int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    if (!abstract)
        unlink(name);
    if (bind(handle, (struct sockaddr *)&address, size) != 0 || listen(handle, 16) != 0 ||
        (!abstract && chmod(name, 0777) != 0)) {
        close(handle);
        return -1;
    }
    return handle;
}

static int listen_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(handle, (struct sockaddr *)&address, size) != 0 || listen(handle, 16) != 0 ||
        getsockname(handle, (struct sockaddr *)&address, &size) != 0)
        return -1;
    return ntohs(address.sin_port);
}

/* A process that does nothing until it is killed, or its parent ends. */
static pid_t start_process(void)
{
    int held[2];
    if (pipe2(held, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(held[1]);
        while (read(held[0], &byte, 1) < 0 && errno == EINTR)
            ;
        _exit(0);
    }
    close(held[0]);
    return child;
}

int attempts_host(const char *directory, bool usr)
{
    char path[512], usr_path[128], byte;
    snprintf(path, sizeof(path), "%s/secret", directory);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || write(file, "secret\n", 7) != 7 || fchmod(file, 0644) != 0)
        return 3;
    printf("HOST_FILE=%s\n", path);
    snprintf(path, sizeof(path), "%s/socket", directory);
    if (listen_unix(path, false) < 0)
        return 3;
    printf("HOST_SOCKET=%s\n", path);
    snprintf(path, sizeof(path), "isolation-attempts-%d", getpid());
    if (listen_unix(path, true) < 0)
        return 3;
    printf("HOST_ABSTRACT=%s\n", path);
    snprintf(usr_path, sizeof(usr_path), "/usr/local/share/isolation-attempts-%d", getpid());
    if (usr && listen_unix(usr_path, false) >= 0)
        printf("HOST_USR_SOCKET=%s\n", usr_path);
    printf("HOST_PORT=%d\n", listen_loopback());
    printf("HOST_PROCESS=%d\n", start_process());
    int memory = shmget(0x05000000 + getpid(), 4096, IPC_CREAT | 0666);
    printf("HOST_SHM=%#x\n", 0x05000000 + getpid());
    printf("ready\n");
    fflush(stdout);
    signal(SIGCHLD, SIG_IGN);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    shmctl(memory, IPC_RMID, NULL);
    if (usr)
        unlink(usr_path);
    return 0;
}

int attempts_deny(char **arguments)
{
    if (arguments[0] == NULL || arguments[1] == NULL || arguments[2] == NULL)
        return 2;
    uint32_t number = (uint32_t)atoi(arguments[0]);
    uint32_t answer = SECCOMP_RET_ERRNO | ((uint32_t)atoi(arguments[1]) & SECCOMP_RET_DATA);
    struct sock_filter filter[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number},
        {BPF_RET | BPF_K, 0, 0, answer},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        return 3;
    execvp(arguments[2], arguments + 2);
    return 3;
}
