/* What is asked to run, as frames carry it: checked, and in the form that the process-maker takes.
 */
#ifndef RUNTIME_PROCESS_SPEC_H
#define RUNTIME_PROCESS_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "runtime/maker.h"

enum {
    PROCESS_SPEC_ENTRIES_LIMIT = 65536, /* arguments, and environment entries */
    PROCESS_SPEC_TERMINAL_LIMIT = 4096, /* columns and rows */
};

struct process_request {
    size_t command_count;
    const ProtobufCBinaryData *command;
    size_t environment_count;
    const ProtobufCBinaryData *environment;
    const char *workdir;
    bool terminal;
    unsigned columns;
    unsigned rows;
    bool login_shell;
    unsigned helper; /* enum copy_helper; any other number is refused */
};

/* Copies into `arena`. A failure of kind Invalid names what is wrong: a NUL in a value, an empty
 * program, an environment name that is no identifier (decision P22), a workdir that is not
 * absolute, a terminal without a believable size. */
bool process_spec_make(const struct process_request *request, struct arena *arena,
                       struct maker_session_spec *ret_spec, struct error *error);

#endif
