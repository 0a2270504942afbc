/* What completions/template.bash finds in its tables. */
#include <string.h>

#include "cli/command_table.h"
#include "cli/completion/completion.h"
#include "client/settings.h"

static void print_groups(FILE *stream)
{
    fputs("_openshell_first='", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++)
        fprintf(stream, "%s ", group->name);
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (entry->group[0] == '\0' && entry->class != COMMAND_HIDDEN)
            fprintf(stream, "%s ", entry->verb);
    fputs("help'\n\n_openshell_group()\n{\n    case $1 in\n", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++) {
        fprintf(stream, "    %s | %s) group=%s verbs='", group->name, group->alias, group->name);
        for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
            if (strcmp(entry->group, group->name) == 0 && entry->class != COMMAND_HIDDEN)
                fprintf(stream, "%s ", entry->verb);
        fputs("help' ;;\n", stream);
    }
    fputs("    *) return 1 ;;\n    esac\n}\n\n", stream);
}

static void print_options(const struct option *table, FILE *stream)
{
    bool first = true;
    for (const struct option *option = table; option->type != OPTION_END; option++) {
        if (option->hidden)
            continue;
        fprintf(stream, "%s--%s", first ? "" : " ", option->name);
        first = false;
    }
}

static void print_words(const struct command_entry *entry, const struct command *command,
                        FILE *stream)
{
    struct completion_words words;
    completion_command_words(entry, command, &words);
    for (size_t i = 0; i < words.count; i++) {
        fputs(i > 0 ? " " : "", stream);
        completion_print_quoted(words.words[i].kind, stream);
    }
    if (words.repeats)
        fputs(" again", stream);
}

static void print_commands(FILE *stream)
{
    fputs("_openshell_global='", stream);
    print_options(global_options, stream);
    fputs("'\n\n_openshell_command()\n{\n    case $1 in\n", stream);
    for (size_t i = 0; command_entries[i].verb != NULL; i++) {
        fputs("    '", stream);
        completion_print_name(&command_entries[i], stream);
        fputs("')\n        options='", stream);
        print_options(command_table[i]->options, stream);
        fprintf(stream, "' trailing=%s\n        places=(", command_table[i]->trailing ? "yes" : "");
        print_words(&command_entries[i], command_table[i], stream);
        fputs(")\n        ;;\n", stream);
    }
    fputs("    *) return 1 ;;\n    esac\n}\n\n", stream);
}

/* Hidden options too: their values are no words. */
static void print_values(const struct command_entry *entry, const struct option *table,
                         FILE *stream)
{
    char kind[COMPLETION_KIND_MAX];
    for (const struct option *option = table; option->type != OPTION_END; option++) {
        if (!completion_option_kind(option, kind))
            continue;
        for (int letter = option->letter == 0; letter <= 1; letter++) {
            fputs(letter == 0 || option->letter == 0 ? "    " : "", stream);
            if (entry == NULL) {
                fputs("*'", stream);
            } else {
                fputc('\'', stream);
                completion_print_name(entry, stream);
            }
            if (letter == 0)
                fprintf(stream, " -%c'", option->letter);
            else
                fprintf(stream, " --%s'", option->name);
            fputs(letter == 0 ? " | " : ") kind=", stream);
        }
        completion_print_quoted(kind, stream);
        fputs(" ;;\n", stream);
    }
}

void completion_print_bash(FILE *stream)
{
    fputs("# The commands and their options.\n", stream);
    print_groups(stream);
    print_commands(stream);
    fputs("_openshell_value()\n{\n    case \"$1 $2\" in\n", stream);
    for (size_t i = 0; command_entries[i].verb != NULL; i++)
        print_values(&command_entries[i], command_table[i]->options, stream);
    print_values(NULL, global_options, stream);
    fputs("    *) return 1 ;;\n    esac\n}\n", stream);
}
