/* What the local driver and its spawner say to each other.
 *
 * The spawner is one process beside the gateway in which OpenSSL is warm already and that holds no
 * secret and no thread. It forks a supervisor or a runtime for each request: that costs neither the
 * start of a program nor the 4 ms in which OpenSSL finds its algorithms, and what OpenSSL holds is
 * shared memory. The gateway, which has threads, never forks (decision B19).
 *
 * They speak over a socket of sequenced packets: a request with four descriptors, a reply with a
 * pidfd. The end of the socket ends the spawner, not what it started. */
#ifndef BOUNDARY_SPAWNER_H
#define BOUNDARY_SPAWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPAWNER_SOCKET_DESCRIPTOR = 3 };

/* argv[1] of openshell-daemons. */
#define SPAWNER_ARGUMENT "spawner"

enum spawner_program { SPAWNER_RUNTIME = 1, SPAWNER_SUPERVISOR };

/* The descriptors that go with a request. */
enum {
    SPAWNER_LOG,
    SPAWNER_CONFIG, /* these three: boundary/launch.h */
    SPAWNER_SECRET,
    SPAWNER_LOCK,
    SPAWNER_DESCRIPTORS
};

struct spawner_request {
    uint32_t program; /* enum spawner_program */
};

struct spawner_reply {
    int32_t process;      /* 0: not started */
    int32_t error_number; /* errno when it was not */
};

/* One packet, with `count` descriptors. False with errno. */
bool spawner_send(int socket, const void *data, size_t size, const int *descriptors, size_t count);
/* One packet of exactly `size` bytes and `count` descriptors, close-on-exec, or none, each -1 then.
 * False at the end, with errno 0, and when the packet is another one. */
bool spawner_receive(int socket, void *ret_data, size_t size, int *ret_descriptors, size_t count);

#endif
