/* The daemons' one file: becomes the daemon by whose name it was started.
 *
 * One static file for all three: each starts without a dynamic linker, runs in any root, and shares
 * its pages with the others, of which there are two for each sandbox. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boundary/spawner.h"
#include "daemons/spawner.h"
#include "gateway/main.h"
#include "runtime/main.h"
#include "supervisor/main.h"

struct program {
    const char *name;
    int (*main)(int argc, char **argv);
};

static const struct program PROGRAMS[] = {
    {"openshell-gateway", gateway_main},
    {"openshell-supervisor", supervisor_main},
    {"openshell-sandbox", runtime_main},
};

static const struct program *find_program(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(PROGRAMS) / sizeof(PROGRAMS[0]); i++)
        if (strcmp(PROGRAMS[i].name, name) == 0)
            return &PROGRAMS[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct program *program = argc > 0 ? find_program(argv[0]) : NULL;
    if (program != NULL)
        return program->main(argc, argv);
    if (argc == 2 && strcmp(argv[1], SPAWNER_ARGUMENT) == 0)
        return spawner_main(argc, argv);
    fputs("openshell-daemons: this file is started under the name of a daemon, such as "
          "openshell-gateway\n",
          stderr);
    return 2;
}
