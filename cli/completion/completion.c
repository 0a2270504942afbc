#include "cli/completion/completion.h"

#include <string.h>

static const char *const live_kinds[] = {"sandboxes", "gateways", "workspaces"};

/* What a metavar or a word of a usage stands for, where nothing else says it. */
static const struct {
    const char *name;
    const char *kind;
} named_kinds[] = {
    {"DIR", "directories"},       {"FILE", "files"},       {"PATH", "files"},
    {"SANDBOX", "sandboxes"},     {"GATEWAY", "gateways"}, {"WORKSPACE", "workspaces"},
    {"DIRECTORY", "directories"},
};

static const char *kind_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof(named_kinds) / sizeof(named_kinds[0]); i++)
        if (strcmp(named_kinds[i].name, name) == 0)
            return named_kinds[i].kind;
    return "nothing";
}

bool completion_option_kind(const struct option *option, char kind[COMPLETION_KIND_MAX])
{
    if (option->metavar == NULL)
        return false;
    if (option->completes != NULL)
        snprintf(kind, COMPLETION_KIND_MAX, "%s", option->completes);
    else if (option->choices != NULL)
        snprintf(kind, COMPLETION_KIND_MAX, "words %s", option->choices);
    else
        snprintf(kind, COMPLETION_KIND_MAX, "%s", kind_of_name(option->metavar));
    return true;
}

/* NAME is what the group is about; a command of a single word is about a sandbox. */
static const char *kind_in_group(const struct command_entry *entry, const char *name)
{
    if (strcmp(name, "NAME") != 0)
        return kind_of_name(name);
    if (entry->group[0] == '\0' || strcmp(entry->group, "sandbox") == 0)
        return "sandboxes";
    return strcmp(entry->group, "gateway") == 0 ? "gateways" : "nothing";
}

static void add_word(const struct command_entry *entry, const char *text, size_t length,
                     struct completion_words *words)
{
    char name[sizeof(words->words[0].name)];
    struct completion_word *word = &words->words[words->count++];
    words->repeats = length > 3 && memcmp(text + length - 3, "...", 3) == 0;
    snprintf(name, sizeof(name), "%.*s", (int)(words->repeats ? length - 3 : length), text);
    memcpy(word->name, name, sizeof(name));
    if (strchr(name, '|') == NULL) {
        snprintf(word->kind, sizeof(word->kind), "%s", kind_in_group(entry, name));
        return;
    }
    for (char *at = name; *at != '\0'; at++)
        if (*at == '|')
            *at = ' ';
    snprintf(word->kind, sizeof(word->kind), "words %s", name);
}

/* The words of a usage as "[OPTIONS] NAME [PATH] -- PROGRAM", up to the "--". */
static void read_usage(const struct command_entry *entry, const char *usage,
                       struct completion_words *words)
{
    while (*usage != '\0' && words->count < COMPLETION_WORDS_MAX) {
        usage += strspn(usage, " []");
        size_t length = strcspn(usage, " []");
        if (length == 2 && memcmp(usage, "--", 2) == 0)
            return;
        if (length > 0 && usage[0] != '-' && strncmp(usage, "OPTIONS", length) != 0)
            add_word(entry, usage, length, words);
        usage += length;
    }
}

void completion_command_words(const struct command_entry *entry, const struct command *command,
                              struct completion_words *ret_words)
{
    *ret_words = (struct completion_words){0};
    read_usage(entry, command->usage, ret_words);
    const char *at = command->completes != NULL ? command->completes : "";
    for (size_t i = 0; i < ret_words->count && *at != '\0'; i++) {
        size_t length = strcspn(at, " ");
        snprintf(ret_words->words[i].kind, COMPLETION_KIND_MAX, "%.*s", (int)length, at);
        at += length;
        at += *at == ' ';
    }
}

bool completion_is_live(const char *kind)
{
    for (size_t i = 0; i < sizeof(live_kinds) / sizeof(live_kinds[0]); i++)
        if (strcmp(live_kinds[i], kind) == 0)
            return true;
    return false;
}

const char *completion_fixed_words(const char *kind)
{
    static const char prefix[] = "words ";
    return strncmp(kind, prefix, sizeof(prefix) - 1) == 0 ? kind + sizeof(prefix) - 1 : NULL;
}

void completion_print_name(const struct command_entry *entry, FILE *stream)
{
    fprintf(stream, "%s%s%s", entry->group, entry->group[0] != '\0' ? " " : "", entry->verb);
}

void completion_print_quoted(const char *text, FILE *stream)
{
    fputc('\'', stream);
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stream);
        else
            fputc(*text, stream);
    fputc('\'', stream);
}

void completion_print_quoted_fish(const char *text, FILE *stream)
{
    fputc('\'', stream);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', stream);
        fputc(*text, stream);
    }
    fputc('\'', stream);
}
