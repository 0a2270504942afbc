/* What completions/template.fish finds in its tables: calls of complete. */
#include <string.h>

#include "cli/command_table.h"
#include "cli/completion/completion.h"
#include "client/settings.h"

static void print_groups(FILE *stream)
{
    fputs("# The commands and their options.\nset -g __openshell_groups", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++)
        fprintf(stream, " %s", group->name);
    fputs("\n\nfunction __openshell_group_of\n    switch $argv[1]\n", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++)
        fprintf(stream, "        case %s %s\n            echo %s\n", group->name, group->alias,
                group->name);
    fputs("        case '*'\n            return 1\n    end\nend\n\n", stream);
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
            fputs(entry == NULL ? " '*" : " '", stream);
            if (entry != NULL)
                completion_print_name(entry, stream);
            if (letter == 0)
                fprintf(stream, " -%c'", option->letter);
            else
                fprintf(stream, " --%s'", option->name);
        }
    }
}

static void print_takes_value(FILE *stream)
{
    fputs("function __openshell_takes_value\n    switch \"$argv\"\n        case", stream);
    for (size_t i = 0; command_entries[i].verb != NULL; i++)
        print_values(&command_entries[i], command_table[i]->options, stream);
    print_values(NULL, global_options, stream);
    fputs("\n            return 0\n    end\n    return 1\nend\n\n", stream);
}

/* What complete needs for the kind of a word or value. */
static void print_kind(const char *kind, FILE *stream)
{
    const char *words = completion_fixed_words(kind);
    if (words != NULL)
        fprintf(stream, " -f -a '%s'", words);
    else if (completion_is_live(kind))
        fprintf(stream, " -f -a '(__openshell_names %s)'", kind);
    else if (strcmp(kind, "files") == 0)
        fputs(" -F", stream);
    else if (strcmp(kind, "directories") == 0)
        fputs(" -f -a '(__fish_complete_directories (commandline -ct))'", stream);
    else
        fputs(" -f", stream);
}

static void print_options(const struct command_entry *entry, const struct option *table,
                          FILE *stream)
{
    char kind[COMPLETION_KIND_MAX];
    for (const struct option *option = table; option->type != OPTION_END; option++) {
        if (option->hidden)
            continue;
        fputs("complete -c openshell", stream);
        if (entry != NULL) {
            fputs(" -n \"__openshell_at '", stream);
            completion_print_name(entry, stream);
            fputs("'\"", stream);
        } else {
            fputs(" -n __openshell_before_dashes", stream);
        }
        if (option->letter != 0)
            fprintf(stream, " -s %c", option->letter);
        fprintf(stream, " -l %s", option->name);
        if (completion_option_kind(option, kind)) {
            fputs(" -r", stream);
            print_kind(kind, stream);
        }
        fputs(" -d ", stream);
        completion_print_quoted_fish(option->help, stream);
        fputc('\n', stream);
    }
}

static void print_word(const char *condition, const char *word, const char *summary, FILE *stream)
{
    fprintf(stream, "complete -c openshell -n %s -f -a %s -d ", condition, word);
    completion_print_quoted_fish(summary, stream);
    fputc('\n', stream);
}

static void print_verbs(const char *group, const char *condition, FILE *stream)
{
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (strcmp(entry->group, group) == 0 && entry->class != COMMAND_HIDDEN)
            print_word(condition, entry->verb, entry->summary, stream);
}

static void print_names(FILE *stream)
{
    static const char *const first[] = {"\"__openshell_at '' 0\"", "\"__openshell_at help 0\""};
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        for (const struct command_group *group = command_groups; group->name != NULL; group++)
            print_word(first[i], group->name, group->summary, stream);
        print_verbs("", first[i], stream);
    }
    print_word(first[0], "help", "Show help", stream);
    for (const struct command_group *group = command_groups; group->name != NULL; group++) {
        static const char *const around[][2] = {{"", ""}, {"help ", ""}, {"", " help"}};
        for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
            char condition[128];
            snprintf(condition, sizeof(condition), "\"__openshell_at '%s%s%s' 0\"", around[i][0],
                     group->name, around[i][1]);
            print_verbs(group->name, condition, stream);
            if (i == 0)
                print_word(condition, "help", "Show help", stream);
        }
    }
}

static void print_places(const struct command_entry *entry, const struct command *command,
                         FILE *stream)
{
    struct completion_words words;
    completion_command_words(entry, command, &words);
    for (size_t i = 0; i < words.count; i++) {
        bool again = i + 1 == words.count && words.repeats;
        fprintf(stream, "complete -c openshell -n \"__openshell_%s '", again ? "from" : "at");
        completion_print_name(entry, stream);
        fprintf(stream, "' %zu\"", i);
        print_kind(words.words[i].kind, stream);
        fputc('\n', stream);
    }
}

void completion_print_fish(FILE *stream)
{
    print_groups(stream);
    print_takes_value(stream);
    fputs("complete -c openshell -f\n", stream);
    fputs("complete -c openshell -n __openshell_after_dashes -F\n", stream);
    print_names(stream);
    print_options(NULL, global_options, stream);
    for (size_t i = 0; command_entries[i].verb != NULL; i++) {
        if (command_entries[i].class == COMMAND_HIDDEN)
            continue;
        print_options(&command_entries[i], command_table[i]->options, stream);
        print_places(&command_entries[i], command_table[i], stream);
    }
}
