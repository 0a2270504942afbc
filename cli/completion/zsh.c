/* What completions/template.zsh finds in its tables: specifications of _arguments. */
#include <string.h>

#include "cli/command_table.h"
#include "cli/completion/completion.h"
#include "client/settings.h"

/* Inside single quotes, and inside a specification, where some characters mean something. */
static void print_text(const char *text, FILE *stream)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stream);
            continue;
        }
        if (strchr("[]:\\", *text) != NULL)
            fputc('\\', stream);
        fputc(*text, stream);
    }
}

static void print_action(const char *name, const char *kind, FILE *stream)
{
    fputc(':', stream);
    print_text(name, stream);
    const char *words = completion_fixed_words(kind);
    if (words != NULL)
        fprintf(stream, ":(%s)", words);
    else if (strcmp(kind, "files") == 0)
        fputs(":_files", stream);
    else if (strcmp(kind, "directories") == 0)
        fputs(":_files -/", stream);
    else if (completion_is_live(kind))
        fprintf(stream, ": _openshell_names %s", kind);
    else
        fputs(": ", stream);
}

/* What is not offered any more when the option was given. */
static void print_exclusions(const struct option *option, FILE *stream)
{
    fputc('(', stream);
    if (option->letter != 0)
        fprintf(stream, "-%c ", option->letter);
    fprintf(stream, "--%s", option->name);
    const char *at = option->conflicts != NULL ? option->conflicts : "";
    while (*at != '\0') {
        size_t length = strcspn(at, " ");
        if (length != 2 || memcmp(at, "--", 2) != 0)
            fprintf(stream, " --%.*s", (int)length, at);
        at += length;
        at += *at == ' ';
    }
    fputc(')', stream);
}

static void print_option(const struct option *option, bool letter, FILE *stream)
{
    char kind[COMPLETION_KIND_MAX];
    bool value = completion_option_kind(option, kind);
    fputs("    '", stream);
    if (option->type == OPTION_LIST || option->type == OPTION_COUNT)
        fputc('*', stream);
    else
        print_exclusions(option, stream);
    if (letter)
        fprintf(stream, "-%c%s[", option->letter, value ? "+" : "");
    else
        fprintf(stream, "--%s%s[", option->name, value ? "=" : "");
    print_text(option->help, stream);
    fputc(']', stream);
    if (value)
        print_action(option->metavar, kind, stream);
    fputs("'\n", stream);
}

static void print_options(const struct option *table, FILE *stream)
{
    for (const struct option *option = table; option->type != OPTION_END; option++) {
        if (option->hidden)
            continue;
        if (option->letter != 0)
            print_option(option, true, stream);
        print_option(option, false, stream);
    }
}

static void print_entry(const char *word, const char *summary, FILE *stream)
{
    fprintf(stream, "    '%s:", word);
    print_text(summary, stream);
    fputs("'\n", stream);
}

static void print_verbs(const char *group, FILE *stream)
{
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (strcmp(entry->group, group) == 0 && entry->class != COMMAND_HIDDEN)
            print_entry(entry->verb, entry->summary, stream);
}

static void print_groups(FILE *stream)
{
    fputs("_openshell_first=(\n", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++)
        print_entry(group->name, group->summary, stream);
    print_verbs("", stream);
    fputs("    'help:Show help'\n)\n", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++) {
        fprintf(stream, "_openshell_groups[%s]=%s\n", group->name, group->name);
        fprintf(stream, "_openshell_groups[%s]=%s\n", group->alias, group->name);
        fprintf(stream, "typeset -ga _openshell_verbs_%s=(\n", group->name);
        print_verbs(group->name, stream);
        fputs(")\n", stream);
    }
}

static void print_command(const struct command_entry *entry, const struct command *command,
                          FILE *stream)
{
    struct completion_words words;
    completion_command_words(entry, command, &words);
    fprintf(stream, "_%s()\n{\n    local -a specifications=(\n", entry->executable);
    print_options(command->options, stream);
    for (size_t i = 0; i < words.count; i++) {
        if (i + 1 == words.count && words.repeats)
            fputs("    '*", stream);
        else
            fprintf(stream, "    '%zu", i + 1);
        print_action(words.words[i].name, words.words[i].kind, stream);
        fputs("'\n", stream);
    }
    fputs("    )\n    _openshell_arguments \"${specifications[@]}\"\n}\n", stream);
}

void completion_print_zsh(FILE *stream)
{
    fputs("# The commands and their options.\n"
          "typeset -gA _openshell_groups\n"
          "typeset -ga _openshell_first _openshell_global\n",
          stream);
    print_groups(stream);
    fputs("_openshell_global=(\n", stream);
    print_options(global_options, stream);
    fputs(")\n", stream);
    for (size_t i = 0; command_entries[i].verb != NULL; i++)
        if (command_entries[i].class != COMMAND_HIDDEN)
            print_command(&command_entries[i], command_table[i], stream);
}
