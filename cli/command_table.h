/* The implementation of each entry of command_entries, in the same order. */
#ifndef CLI_COMMAND_TABLE_H
#define CLI_COMMAND_TABLE_H

#include "client/command.h"

extern const struct command *const command_table[];

#endif
