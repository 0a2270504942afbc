#include "runtime/maker_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

bool message_socketpair(int ret_ends[2], struct error *error)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ends) != 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a socket pair");
    return true;
}

bool message_send(int socket, const struct message *message, const int *descriptors, size_t count,
                  struct error *error)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_DESCRIPTORS_MAX)];
    } control = {0};
    struct iovec vector = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
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
    if (sent >= 0)
        return true;
    return error_set_errno(error, errno == EPIPE ? ERROR_UNAVAILABLE : ERROR_RESOURCE_EXHAUSTED,
                           errno, "cannot send to a process of the sandbox");
}

bool message_send_simple(int socket, enum message_type type, int32_t value)
{
    struct message message = {.type = type, .value = value};
    return message_send(socket, &message, NULL, 0, NULL);
}

bool message_send_error(int socket, enum message_type type, int32_t value,
                        const struct error *error)
{
    struct message message = {.type = type, .value = value, .code = error->code};
    snprintf(message.text, sizeof(message.text), "%.*s", MESSAGE_TEXT_MAX - 1, error->message);
    return message_send(socket, &message, NULL, 0, NULL);
}

bool message_want_sender(int socket)
{
    return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) == 0;
}

/* Takes descriptors and credentials out of the control data. */
static void take_control(struct msghdr *header, int *descriptors, struct message_sender *sender)
{
    for (struct cmsghdr *entry = CMSG_FIRSTHDR(header); entry != NULL;
         entry = CMSG_NXTHDR(header, entry)) {
        if (entry->cmsg_level != SOL_SOCKET)
            continue;
        if (entry->cmsg_type == SCM_RIGHTS) {
            size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            if (count > MESSAGE_DESCRIPTORS_MAX)
                count = MESSAGE_DESCRIPTORS_MAX;
            memcpy(descriptors, CMSG_DATA(entry), count * sizeof(int));
        } else if (entry->cmsg_type == SCM_CREDENTIALS && sender != NULL) {
            struct ucred credentials;
            memcpy(&credentials, CMSG_DATA(entry), sizeof(credentials));
            sender->process = credentials.pid;
            sender->user_id = credentials.uid;
            sender->group_id = credentials.gid;
        }
    }
}

enum message_result message_receive(int socket, struct message *ret_message,
                                    int ret_descriptors[MESSAGE_DESCRIPTORS_MAX],
                                    struct message_sender *ret_sender)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_DESCRIPTORS_MAX) +
                   CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec vector = {.iov_base = ret_message, .iov_len = sizeof(*ret_message)};
    struct msghdr header = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    for (size_t i = 0; i < MESSAGE_DESCRIPTORS_MAX; i++)
        ret_descriptors[i] = -1;
    ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? MESSAGE_NONE : MESSAGE_END;
    take_control(&header, ret_descriptors, ret_sender);
    if ((size_t)got == sizeof(*ret_message) && (header.msg_flags & MSG_CTRUNC) == 0)
        return MESSAGE_GOT;
    for (size_t i = 0; i < MESSAGE_DESCRIPTORS_MAX; i++) {
        if (ret_descriptors[i] >= 0)
            close(ret_descriptors[i]);
        ret_descriptors[i] = -1;
    }
    return MESSAGE_END;
}

bool message_get_error(const struct message *message, struct error *error)
{
    if (message->code == ERROR_OK)
        return false;
    error_set(error, (enum error_code)message->code, "%.*s", (int)sizeof(message->text),
              message->text);
    return true;
}

static bool write_blob(int descriptor, const void *header, size_t header_size,
                       const struct blob_string_list *lists, size_t list_count, struct error *error)
{
    struct buffer buffer = BUFFER_INIT(BLOB_MAX);
    bool fits = buffer_append(&buffer, header, header_size);
    for (size_t i = 0; i < list_count; i++)
        for (size_t j = 0; fits && j < lists[i].count; j++)
            fits = buffer_append(&buffer, lists[i].strings[j], strlen(lists[i].strings[j]) + 1);
    bool written =
        fits ? file_write_all(descriptor, buffer.data, buffer.length, error)
             : error_set(error, ERROR_INVALID_ARGUMENT,
                         "the command and its environment are larger than %d bytes", BLOB_MAX);
    buffer_free(&buffer);
    return written;
}

int blob_create(const void *header, size_t header_size, const struct blob_string_list *lists,
                size_t list_count, struct error *error)
{
    int descriptor = memfd_create("openshell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) {
        error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a memory file");
        return -1;
    }
    if (!write_blob(descriptor, header, header_size, lists, list_count, error)) {
        close(descriptor);
        return -1;
    }
    fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return descriptor;
}

bool blob_open(int descriptor, void *ret_header, size_t header_size, struct blob *ret_blob,
               struct error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot look at a request");
    size_t size = (size_t)status.st_size;
    if (size < header_size || size > BLOB_MAX)
        return error_set(error, ERROR_INTERNAL, "a request of %zu bytes is malformed", size);
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot read a request");
    memcpy(ret_header, data, header_size);
    *ret_blob = (struct blob){.data = data, .size = size, .offset = header_size};
    return true;
}

const char *blob_next(struct blob *blob)
{
    const char *start = blob->data + blob->offset;
    const char *end = memchr(start, '\0', blob->size - blob->offset);
    if (end == NULL)
        return NULL;
    blob->offset += (size_t)(end - start) + 1;
    return start;
}

const char **blob_next_array(struct blob *blob, size_t count)
{
    if (count > blob->size)
        return NULL;
    const char **array = memory_new(sizeof(char *) * (count + 1));
    for (size_t i = 0; i < count; i++) {
        array[i] = blob_next(blob);
        if (array[i] == NULL) {
            free(array);
            return NULL;
        }
    }
    return array;
}
