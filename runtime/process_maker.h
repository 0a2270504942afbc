/* Process 1 of a sandbox. */
#ifndef RUNTIME_PROCESS_MAKER_H
#define RUNTIME_PROCESS_MAKER_H

#include "runtime/maker.h"
#include "runtime/places.h"

/* Runs in the child of namespaces_clone. `control` is its end of the socket pair to the runtime;
 * the end of file there is the end of the sandbox (decision B11). */
_Noreturn void process_maker_run(const struct maker_config *config, const struct places *places,
                                 int control);

#endif
