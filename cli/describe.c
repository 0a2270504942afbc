#include "cli/describe.h"

#include <string.h>

#include "cli/command_list.h"
#include "cli/command_table.h"
#include "client/settings.h"

static const char *or_dash(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : "-";
}

static const char *yes_or_no(bool value)
{
    return value ? "yes" : "no";
}

static const char *class_word(enum command_class class)
{
    return class == COMMAND_MAIN ? "main" : class == COMMAND_MORE ? "more" : "hidden";
}

static void describe_option(const char *group, const char *verb, const struct option *option,
                            FILE *stream)
{
    char letter[2] = {option->letter, '\0'}, range[64] = "";
    if (option->type == OPTION_NUMBER)
        snprintf(range, sizeof(range), "%lld %lld", option->minimum, option->maximum);
    bool repeated = option->type == OPTION_LIST || option->type == OPTION_COUNT;
    fprintf(stream, "option\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", or_dash(group), or_dash(verb),
            option->name, or_dash(letter), or_dash(option->metavar), yes_or_no(repeated),
            yes_or_no(option->hidden));
    fprintf(stream, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", or_dash(option->fallback),
            or_dash(option->environment), or_dash(option->choices), or_dash(range),
            or_dash(option->conflicts), or_dash(option->requires), or_dash(option->help));
}

static void describe_options(const char *group, const char *verb, const struct option *table,
                             FILE *stream)
{
    for (const struct option *option = table; option->type != OPTION_END; option++)
        describe_option(group, verb, option, stream);
}

static void describe_examples(const struct command_entry *entry, const char *text, FILE *stream)
{
    while (text != NULL && *text != '\0') {
        text += strspn(text, " \n");
        size_t length = strcspn(text, "\n");
        if (length > 0)
            fprintf(stream, "example\t%s\t%s\t%.*s\n", or_dash(entry->group), entry->verb,
                    (int)length, text);
        text += length;
    }
}

static void describe_command(const struct command_entry *entry, const struct command *command,
                             FILE *stream)
{
    char most[32] = "many";
    if (command->most_words != WORDS_ANY)
        snprintf(most, sizeof(most), "%zu", command->most_words);
    fprintf(stream, "command\t%s\t%s\t%s\t%s\t%zu\t%s\t%s\t%s\n", or_dash(entry->group),
            entry->verb, class_word(entry->class), or_dash(command->usage), command->least_words,
            most, yes_or_no(command->trailing), entry->summary);
    describe_options(entry->group, entry->verb, command->options, stream);
    describe_examples(entry, command->examples, stream);
}

void describe_commands(FILE *stream)
{
    for (const struct command_group *group = command_groups; group->name != NULL; group++)
        fprintf(stream, "group\t%s\t%s\t%s\n", group->name, group->alias, group->summary);
    describe_options("", "", global_options, stream);
    for (size_t i = 0; command_entries[i].verb != NULL; i++)
        describe_command(&command_entries[i], command_table[i], stream);
}
