/* One subcommand: what its source file gives to the multi-call binary. */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include <stddef.h>

#include "base/error.h"
#include "client/options.h"

/* What was given beside the options. */
struct invocation {
    const char *const *words; /* NULL-terminated */
    size_t word_count;
    char **trailing;       /* after "--", NULL-terminated; NULL when there was no "--" */
    size_t trailing_count; /* 0 where the command takes no program */
    const struct option_parser *parser;
};

struct command {
    const char *usage;       /* what follows the name: "[OPTIONS] NAME..." */
    const char *description; /* a paragraph; lines broken as they are to be shown */
    const char *examples;    /* lines, each a command as typed; NULL: none */
    const struct option *options;
    const char *completes; /* what each word is, for completions: kinds separated by spaces, the
                            * last also for further words; NULL: what .usage says */
    size_t least_words;
    size_t most_words;
    bool trailing; /* takes a program to run after "--" */
    /* Does the work. Returns the exit code, or -1 with `error`: the caller prints it and chooses
     * the code (failure_exit_code). Output is flushed by the caller. */
    int (*run)(const struct invocation *invocation, struct error *error);
};

enum { WORDS_ANY = 1024 };

#endif
