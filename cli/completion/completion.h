/* The completions of bash, zsh and fish: a script written by hand (completions/), and tables that
 * are printed from the list of commands and the option tables.
 *
 * A kind says what a value or a word is: "nothing", "files", "directories"; "sandboxes",
 * "gateways", "workspaces", whose names "openshell __complete" prints; or "words" and the words
 * themselves, after spaces. */
#ifndef CLI_COMPLETION_COMPLETION_H
#define CLI_COMPLETION_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/command_list.h"
#include "client/command.h"
#include "client/options.h"

enum {
    COMPLETION_KIND_MAX = 256,
    COMPLETION_WORDS_MAX = 8, /* words of one command that have a place of their own */
};

struct completion_word {
    char kind[COMPLETION_KIND_MAX];
    char name[64]; /* as it stands in the command's usage */
};

struct completion_words {
    struct completion_word words[COMPLETION_WORDS_MAX];
    size_t count;
    bool repeats; /* the last one may be given again */
};

/* Whether the option takes a value; its kind then goes into `kind`. */
bool completion_option_kind(const struct option *option, char kind[COMPLETION_KIND_MAX]);

void completion_command_words(const struct command_entry *entry, const struct command *command,
                              struct completion_words *ret_words);

/* Whether names of this kind come from "openshell __complete". */
bool completion_is_live(const char *kind);

/* The words of a kind that begins with "words ", or NULL. */
const char *completion_fixed_words(const char *kind);

/* The name of a command as typed: "sandbox create". */
void completion_print_name(const struct command_entry *entry, FILE *stream);

/* Prints `text` in single quotes, for the shells that know them as sh does, and for fish. */
void completion_print_quoted(const char *text, FILE *stream);
void completion_print_quoted_fish(const char *text, FILE *stream);

/* The tables of each shell, which follow or precede its script. */
void completion_print_bash(FILE *stream);
void completion_print_zsh(FILE *stream);
void completion_print_fish(FILE *stream);

/* The scripts, made from completions/ at build time. */
extern const char *const completion_script_bash[];
extern const char *const completion_script_zsh[];
extern const char *const completion_script_fish[];

#endif
