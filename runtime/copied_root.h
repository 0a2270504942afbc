/* The copy of a directory that becomes the root of a sandbox (`--from DIR`), made once. */
#ifndef RUNTIME_COPIED_ROOT_H
#define RUNTIME_COPIED_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct copied_root_request {
    const char *from;         /* absolute */
    const char *state;        /* the state directory; the copy is STATE/rootfs */
    const char *sandbox_name; /* for a hosts and hostname file, where the copy has none */
    uid_t host_id_base;       /* added to owners; 0: everything belongs to the caller */
    int link;                 /* its end of file ends the copying */
};

/* Whether the copy is there already. */
bool copied_root_exists(const char *state);

/* Copies: regular files (holes and hard links kept), directories and links, with modes and times.
 * Left out, with a warning: devices, sockets, pipes, files that cannot be read, pseudo file
 * systems. Dropped: set-user-id and set-group-id bits and extended attributes, which mean nothing
 * inside. The copy is whole or not there. May take minutes: run it in a process of its own.
 * `on_warning` gets one text for each kind of thing left out. */
bool copied_root_make(const struct copied_root_request *request,
                      void (*on_warning)(const char *text, void *user), void *user,
                      struct error *error);

#endif
