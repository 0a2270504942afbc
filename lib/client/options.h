/* Option tables. A command's options stand in one table, one entry each: parsing, --help, the
 * OPTIONS of its man page and the completions all come from it, so they cannot drift.
 *
 * A value given on the command line wins over the option's environment variable, which wins over
 * what the variable held before. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

enum option_type {
    OPTION_END = 0,
    OPTION_FLAG,     /* bool: becomes true */
    OPTION_CONSTANT, /* int: becomes .constant; of a group that shares a variable the last wins */
    OPTION_COUNT,    /* int: how often it was given */
    OPTION_TEXT,     /* const char *: points into argv or the environment */
    OPTION_LIST,     /* struct option_list: every value, in order */
    OPTION_NUMBER,   /* long long, from .minimum to .maximum */
    OPTION_CHOICE,   /* int: the index of the word in .choices */
};

enum {
    OPTION_TABLE_MAX = 48, /* entries in one table */
    OPTION_LIST_MAX = 1024 /* values of one OPTION_LIST */
};

struct option_list {
    const char **values;
    size_t count;
};

struct option {
    enum option_type type;
    char letter;             /* 0: has only a long name */
    const char *name;        /* without the dashes */
    void *value;             /* what .type says */
    const char *metavar;     /* "NAME"; NULL for an option without a value */
    const char *help;        /* one sentence without its full stop */
    const char *fallback;    /* the default as help shows it; NULL: none worth showing */
    const char *environment; /* variable used when the option is not given; blank counts as unset */
    const char *choices;     /* "table yaml json" */
    const char *completes;   /* what a value is, for completions: one of the kinds of
                              * completion_kind; NULL: what .choices and .metavar say */
    const char *conflicts;   /* long names that cannot be given too; "--" is a trailing command */
    const char *requires;    /* a long name that must be given too */
    long long minimum;
    long long maximum;
    int constant;
    bool may_be_empty; /* OPTION_TEXT: "" is a value */
    bool hidden;       /* works, and is not shown */
};

/* The option that prints help ends parsing; these two are in the table of global options. */
#define OPTION_HELP_NAME "help"

enum { OPTION_TABLES_MAX = 2 };

struct option_parser {
    const struct option *tables[OPTION_TABLES_MAX + 1]; /* searched in order; NULL-terminated */
    bool stop_at_word;  /* end at the first word that is no option (the front-end) */
    bool trailing;      /* "--" starts a command instead of further words */
    char **arguments;   /* what is left to read; NULL-terminated */
    const char **words; /* what was no option; owned, NULL-terminated */
    size_t word_count;
    char **command; /* after "--", when .trailing; NULL when there was no "--" */
    size_t command_count;
    bool given[OPTION_TABLES_MAX][OPTION_TABLE_MAX];
};

/* Reads arguments and then environment variables into the tables' variables. False, with reason
 * CLIENT_REASON_USAGE, names the offending word. After the option named "help" nothing further is
 * read or checked. With .stop_at_word the rest stays in .arguments and it may be called again;
 * variables and conflicts are then left to the command. */
bool options_parse(struct option_parser *parser, struct error *error);

/* Whether the option was given on the command line. */
bool options_given(const struct option_parser *parser, const char *name);

/* Puts each given option that has an environment variable into the environment, for the command
 * that the front-end starts. */
void options_export(const struct option_parser *parser);

void options_free(struct option_parser *parser);

/* The value an option has in arguments that could not be parsed, up to "--", or NULL: an error
 * wants to be shown the way that was asked for. */
const char *options_peek(char *const *arguments, char letter, const char *name);

/* The lines of --help for a table. */
void options_print_help(const struct option *table, FILE *stream);

#endif
