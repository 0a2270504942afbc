/* The commands there are; the tables are made from command-list.txt. */
#ifndef CLI_COMMAND_LIST_H
#define CLI_COMMAND_LIST_H

#include <stddef.h>

struct command_group {
    const char *name;
    const char *alias;
    const char *summary;
};

struct command_alias {
    const char *name;
    const char *verb; /* of a command of a single word */
};

enum command_class { COMMAND_MAIN, COMMAND_MORE, COMMAND_HIDDEN };

struct command_entry {
    const char *group; /* "" for a command of a single word */
    const char *verb;
    const char *executable; /* "openshell-sandbox-create" */
    enum command_class class;
    const char *summary;
};

/* All end with an entry of NULLs, and keep the order of the list. */
extern const struct command_group command_groups[];
extern const struct command_alias command_aliases[];
extern const struct command_entry command_entries[];

#endif
