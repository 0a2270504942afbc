#include "boundary/spawner.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * SPAWNER_DESCRIPTORS)];
};

bool spawner_send(int socket, const void *data, size_t size, const int *descriptors, size_t count)
{
    union control control = {0};
    struct iovec vector = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    if (count > 0) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *entry = CMSG_FIRSTHDR(&header);
        entry->cmsg_level = SOL_SOCKET;
        entry->cmsg_type = SCM_RIGHTS;
        entry->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(entry), descriptors, sizeof(int) * count);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* Returns how many descriptors came. */
static size_t take_descriptors(struct msghdr *header, int descriptors[SPAWNER_DESCRIPTORS])
{
    struct cmsghdr *entry = CMSG_FIRSTHDR(header);
    if (entry == NULL || entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t size = entry->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors, CMSG_DATA(entry), size);
    return size / sizeof(int);
}

bool spawner_receive(int socket, void *ret_data, size_t size, int *ret_descriptors, size_t count)
{
    union control control;
    struct iovec vector = {.iov_base = ret_data, .iov_len = size};
    struct msghdr header = {.msg_iov = &vector,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    ssize_t got;
    do
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0) {
        errno = got < 0 ? errno : 0;
        return false;
    }
    int descriptors[SPAWNER_DESCRIPTORS];
    size_t came = take_descriptors(&header, descriptors);
    bool expected = got == (ssize_t)size && (came == count || came == 0) &&
                    (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    for (size_t i = 0; i < count; i++)
        ret_descriptors[i] = expected && came != 0 ? descriptors[i] : -1;
    for (size_t i = 0; i < came && !expected; i++)
        close(descriptors[i]);
    errno = expected ? 0 : EPROTO;
    return expected;
}
