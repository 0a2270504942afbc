/* A file copy between this machine and a sandbox: a child process at this end, the runtime's helper
 * at the other, and one exec session between them (decision W3). It is whole only when both ends
 * said so. */
#ifndef CLIENT_COPY_H
#define CLIENT_COPY_H

#include "client/connection.h"
#include "client/copy_child.h"

struct copy {
    enum archive_direction direction;
    const char *sandbox;     /* NULL: the one used last */
    const char *path;        /* in the sandbox: DEST of an upload, source of a download */
    const char *shown;       /* what is copied, for the person */
    uint64_t total_bytes;    /* 0: not known */
    struct copy_child child; /* started before the connection was made */
};

/* Connects, copies, and says on a terminal what was done. Returns the exit code, or -1 with the
 * error. The child has ended in every case. */
int copy_run(struct copy *copy, struct error *error);

/* The same on a connection that is there, to a sandbox that is named. */
int copy_run_on(struct copy *copy, struct connection *connection, struct error *error);

#endif
