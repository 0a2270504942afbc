/* What the runtime, the process-maker and the reapers say to each other. Private to runtime/.
 *
 * All of it travels over SOCK_SEQPACKET socket pairs, one `struct message` a packet, descriptors
 * beside it. Both ends are the same build of the same program, so the layout is the compiler's. */
#ifndef RUNTIME_MAKER_PROTOCOL_H
#define RUNTIME_MAKER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "runtime/maker.h"
#include "runtime/namespaces.h"

enum {
    /* Sessions that are not closed yet (decision P8). */
    MAKER_SESSIONS_MAX = 64,
    MESSAGE_TEXT_MAX = 768,
    MESSAGE_DESCRIPTORS_MAX = 5,
    /* A session's command line, environment and working directory; the kernel's own limit for
     * execve is lower on a default stack. */
    BLOB_MAX = 8 * 1024 * 1024,
};

enum message_type {
    /* Runtime to process-maker. */
    MESSAGE_BUILD = 1, /* ids are mapped; value: RLIMIT_NPROC */
    MESSAGE_PING,
    MESSAGE_ATTACH,      /* blob of the policy, main's session socket */
    MESSAGE_EXEC,        /* blob of the spec, session socket, then as MESSAGE_START */
    MESSAGE_END_SESSION, /* value: process number of a reaper that no longer answers */

    /* Process-maker to runtime. */
    MESSAGE_READY, /* error, or root facts */
    MESSAGE_PONG,
    MESSAGE_WARNING,  /* text */
    MESSAGE_ATTACHED, /* error, or controls */

    /* Runtime to a reaper, over the session's socket. */
    MESSAGE_START,   /* blob of the spec and, without a terminal, input, output, error */
    MESSAGE_SIGNAL,  /* value: number */
    MESSAGE_KILL,    /* value: grace in milliseconds */
    MESSAGE_MEASURE, /* to the waiting main process */

    /* A reaper to the runtime. */
    MESSAGE_REAPER,       /* value: the reaper's number */
    MESSAGE_PREPARED,     /* from the child itself: every control is applied */
    MESSAGE_STARTED,      /* value: process number; with a terminal, its master */
    MESSAGE_START_FAILED, /* error; value: the exit code that follows */
    MESSAGE_EXITED,       /* value: wait status */
    MESSAGE_EMPTY,        /* nothing of the tree is left */
    MESSAGE_MEASURED,     /* facts */
};

/* What the process-maker knows about the root it built. */
struct root_facts {
    char root_kind[16];
    char usr_mechanism[16];
};

/* What the process-maker knows about the controls it prepared. */
struct control_facts {
    int landlock_abi;
    bool landlock_installed;
};

/* What the waiting main process, and probes that it forked, measured on themselves. */
struct main_facts {
    struct namespace_identities namespaces;
    bool landlock_denies;
    bool seccomp_denies;
    bool loopback_only;
    uid_t user_id;
    gid_t group_id;
};

struct message {
    uint32_t type;
    uint32_t code; /* enum error_code; 0: no error */
    int32_t value;
    union {
        char text[MESSAGE_TEXT_MAX]; /* of the error, of a warning */
        struct root_facts root;
        struct control_facts controls;
        struct main_facts main;
    };
};

/* A pair of sockets, both close-on-exec. */
bool message_socketpair(int ret_ends[2], struct error *error);

/* Sends, with copies of `count` descriptors. Waits for room unless the socket is non-blocking.
 * UNAVAILABLE when the other end is closed, RESOURCE_EXHAUSTED when there is no room. */
bool message_send(int socket, const struct message *message, const int *descriptors, size_t count,
                  struct error *error);
/* A message without a body or descriptors; false when it could not be sent. */
bool message_send_simple(int socket, enum message_type type, int32_t value);
/* A message that carries an error. */
bool message_send_error(int socket, enum message_type type, int32_t value,
                        const struct error *error);

enum message_result { MESSAGE_GOT, MESSAGE_NONE, MESSAGE_END };

/* Who sent a message, by the kernel's word; only where message_want_sender was called. */
struct message_sender {
    pid_t process;
    uid_t user_id;
    gid_t group_id;
};

/* Takes one message. Descriptors that came with it are close-on-exec and the caller's; those not
 * sent are -1. NONE: nothing there (non-blocking) or interrupted. END: the other end is closed, or
 * what came was no message of ours. `ret_sender` may be NULL. */
enum message_result message_receive(int socket, struct message *ret_message,
                                    int ret_descriptors[MESSAGE_DESCRIPTORS_MAX],
                                    struct message_sender *ret_sender);
bool message_want_sender(int socket);

/* The error that a message carries. Returns whether there is one. */
bool message_get_error(const struct message *message, struct error *error);

/* Blobs: lists of strings in a memory file, since a command line does not fit into a packet. The
 * writer's layout: a header structure, then NUL-terminated strings. */
struct blob {
    const char *data;
    size_t size;
    size_t offset; /* of the next string */
};

struct blob_string_list {
    const char *const *strings;
    size_t count;
};

/* A sealed memory file with `header` and then the strings of each list. Returns a close-on-exec
 * descriptor or -1. */
int blob_create(const void *header, size_t header_size, const struct blob_string_list *lists,
                size_t list_count, struct error *error);
/* Maps a blob for reading; the mapping stays for the life of the process. `ret_header` receives the
 * header. */
bool blob_open(int descriptor, void *ret_header, size_t header_size, struct blob *ret_blob,
               struct error *error);
/* The next string, or NULL at the end. */
const char *blob_next(struct blob *blob);
/* A newly allocated NULL-terminated array of the next `count` strings, or NULL. */
const char **blob_next_array(struct blob *blob, size_t count);

struct policy_header {
    uint32_t read_only_count;
    uint32_t read_write_count;
    bool include_workdir;
    bool landlock_required;
    bool has_filesystem;
}; /* strings: run_as_user, run_as_group, read_only, read_write */

struct spec_header {
    uint32_t argument_count;
    uint32_t environment_count;
    uint16_t columns, rows;
    bool terminal;
    bool login_shell;
    uint8_t helper; /* enum copy_helper */
};                  /* strings: workdir, arguments, environment */

#endif
