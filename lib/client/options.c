#include "client/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/failure.h"

enum { SHOWN_MAX = 256 }; /* bytes of a user's word in a message */

/* One option of one of the parser's tables. */
struct found {
    const struct option *option;
    bool *given;
};

static bool takes_value(const struct option *option)
{
    return option->type == OPTION_TEXT || option->type == OPTION_LIST ||
           option->type == OPTION_NUMBER || option->type == OPTION_CHOICE;
}

static bool find(const struct option_parser *parser, char letter, const char *name, size_t length,
                 struct found *ret_found)
{
    for (size_t i = 0; parser->tables[i] != NULL; i++) {
        const struct option *table = parser->tables[i];
        for (size_t j = 0; table[j].type != OPTION_END && j < OPTION_TABLE_MAX; j++) {
            bool same = name == NULL ? table[j].letter == letter
                                     : strlen(table[j].name) == length &&
                                           memcmp(table[j].name, name, length) == 0;
            if (!same)
                continue;
            ret_found->option = &table[j];
            ret_found->given = (bool *)&parser->given[i][j];
            return true;
        }
    }
    return false;
}

bool options_given(const struct option_parser *parser, const char *name)
{
    struct found found;
    return find(parser, 0, name, strlen(name), &found) && *found.given;
}

static bool unknown_option(const struct option_parser *parser, const char *word, size_t length,
                           struct error *error)
{
    char name[64], shown[SHOWN_MAX];
    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    text_escape(name, shown, sizeof(shown));
    failure_usage(error, "unknown option '%s'", shown);
    const char *nearest = NULL;
    size_t least = 3;
    for (size_t i = 0; parser->tables[i] != NULL; i++) {
        for (const struct option *entry = parser->tables[i]; entry->type != OPTION_END; entry++) {
            size_t distance = text_distance(name + 2, entry->name);
            if (distance < least && !entry->hidden) {
                least = distance;
                nearest = entry->name;
            }
        }
    }
    if (nearest != NULL && name[1] == '-')
        failure_hint(error, "did you mean '--%s'?", nearest);
    return false;
}

/* The place of `word` in a list of words separated by spaces, or -1. */
static int word_index(const char *list, const char *word)
{
    size_t length = strlen(word);
    int index = 0;
    for (const char *at = list; *at != '\0'; index++) {
        size_t size = strcspn(at, " ");
        if (size == length && memcmp(at, word, size) == 0)
            return index;
        at += size;
        at += *at == ' ';
    }
    return -1;
}

/* Stores one value; `source` names where it came from in messages. */
static bool store(const struct option *option, const char *value, const char *source,
                  struct error *error)
{
    char shown[SHOWN_MAX];
    switch (option->type) {
    case OPTION_END:
        break;
    case OPTION_FLAG:
        *(bool *)option->value = true;
        break;
    case OPTION_CONSTANT:
        *(int *)option->value = option->constant;
        break;
    case OPTION_COUNT:
        ++*(int *)option->value;
        break;
    case OPTION_TEXT:
        if (value[0] == '\0' && !option->may_be_empty)
            return failure_usage(error, "%s needs a value that is not empty", source);
        *(const char **)option->value = value;
        break;
    case OPTION_LIST: {
        struct option_list *list = option->value;
        if (list->count == OPTION_LIST_MAX)
            return failure_usage(error, "%s can be given %d times at most", source,
                                 OPTION_LIST_MAX);
        list->values = memory_resize(list->values, (list->count + 1) * sizeof(*list->values));
        list->values[list->count++] = value;
        break;
    }
    case OPTION_NUMBER:
        if (text_parse_integer(value, option->minimum, option->maximum, option->value))
            break;
        text_escape(value, shown, sizeof(shown));
        return failure_usage(error, "%s needs a whole number from %lld to %lld, not '%s'", source,
                             option->minimum, option->maximum, shown);
    case OPTION_CHOICE: {
        int index = word_index(option->choices, value);
        if (index >= 0 && value[0] != '\0') {
            *(int *)option->value = index;
            break;
        }
        text_escape(value, shown, sizeof(shown));
        failure_usage(error, "%s does not know '%s'", source, shown);
        failure_hint(error, "it takes one of: %s", option->choices);
        return false;
    }
    }
    return true;
}

static bool accept(struct option_parser *parser, struct found found, const char *value,
                   struct error *error)
{
    char source[96];
    snprintf(source, sizeof(source), "option '--%s'", found.option->name);
    if (takes_value(found.option) && value == NULL) {
        if (*parser->arguments == NULL)
            return failure_usage(error, "%s needs a value (%s)", source, found.option->metavar);
        value = *parser->arguments++;
    }
    *found.given = true;
    return store(found.option, value, source, error);
}

static bool parse_long(struct option_parser *parser, const char *word, struct error *error)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    struct found found;
    if (!find(parser, 0, name, length, &found))
        return unknown_option(parser, word, length + 2, error);
    if (equals != NULL && !takes_value(found.option))
        return failure_usage(error, "option '--%s' takes no value", found.option->name);
    return accept(parser, found, equals != NULL ? equals + 1 : NULL, error);
}

static bool parse_letters(struct option_parser *parser, const char *word, struct error *error)
{
    for (const char *at = word + 1; *at != '\0'; at++) {
        struct found found;
        if (!find(parser, *at, NULL, 0, &found)) {
            char letter[8];
            snprintf(letter, sizeof(letter), "-%c", *at);
            return unknown_option(parser, at == word + 1 ? word : letter,
                                  at == word + 1 ? strlen(word) : 2, error);
        }
        bool value = takes_value(found.option);
        if (!accept(parser, found, value && at[1] != '\0' ? at + 1 + (at[1] == '=') : NULL, error))
            return false;
        if (value)
            break;
    }
    return true;
}

static void add_word(struct option_parser *parser, const char *word)
{
    parser->words = memory_resize(parser->words, (parser->word_count + 2) * sizeof(*parser->words));
    parser->words[parser->word_count++] = word;
    parser->words[parser->word_count] = NULL;
}

static void take_command(struct option_parser *parser)
{
    parser->command = parser->arguments;
    for (; *parser->arguments != NULL; parser->arguments++)
        parser->command_count++;
}

/* Options that were not given and have a variable that is set. */
static bool read_environment(struct option_parser *parser, struct error *error)
{
    for (size_t i = 0; parser->tables[i] != NULL; i++) {
        for (size_t j = 0; parser->tables[i][j].type != OPTION_END; j++) {
            const struct option *option = &parser->tables[i][j];
            if (option->environment == NULL || parser->given[i][j])
                continue;
            const char *value = getenv(option->environment);
            if (value == NULL || value[strspn(value, " \t\r\n")] == '\0')
                continue;
            if (option->type == OPTION_FLAG) {
                *(bool *)option->value = strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
                continue;
            }
            if (option->type == OPTION_COUNT) {
                long long count;
                if (text_parse_integer(value, 0, 9, &count))
                    *(int *)option->value = (int)count;
                continue;
            }
            char source[96];
            snprintf(source, sizeof(source), "the environment variable %s", option->environment);
            if (!store(option, value, source, error))
                return false;
        }
    }
    return true;
}

static bool check_together(const struct option_parser *parser, const struct option *option,
                           struct error *error)
{
    const char *at = option->conflicts != NULL ? option->conflicts : "";
    while (*at != '\0') {
        char name[64];
        size_t size = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)size, at);
        at += size;
        at += *at == ' ';
        if (strcmp(name, "--") == 0) {
            if (parser->command != NULL)
                return failure_usage(error,
                                     "option '--%s' and a command after '--' exclude each "
                                     "other",
                                     option->name);
        } else if (options_given(parser, name)) {
            return failure_usage(error, "options '--%s' and '--%s' exclude each other",
                                 option->name, name);
        }
    }
    if (option->requires != NULL && !options_given(parser, option->requires))
        return failure_usage(error, "option '--%s' needs '--%s'", option->name, option->requires);
    return true;
}

static bool check_given(const struct option_parser *parser, struct error *error)
{
    for (size_t i = 0; parser->tables[i] != NULL; i++)
        for (size_t j = 0; parser->tables[i][j].type != OPTION_END; j++)
            if (parser->given[i][j] && !check_together(parser, &parser->tables[i][j], error))
                return false;
    return true;
}

bool options_parse(struct option_parser *parser, struct error *error)
{
    while (*parser->arguments != NULL) {
        char *word = *parser->arguments;
        if (strcmp(word, "--") == 0 && !parser->stop_at_word) {
            parser->arguments++;
            if (parser->trailing) {
                take_command(parser);
                break;
            }
            while (*parser->arguments != NULL)
                add_word(parser, *parser->arguments++);
            break;
        }
        bool is_option = word[0] == '-' && word[1] != '\0';
        if (!is_option && parser->stop_at_word)
            return true;
        parser->arguments++;
        if (!is_option)
            add_word(parser, word);
        else if (!(word[1] == '-' ? parse_long : parse_letters)(parser, word, error))
            return false;
        if (options_given(parser, OPTION_HELP_NAME))
            return true;
    }
    return parser->stop_at_word || (check_given(parser, error) && read_environment(parser, error));
}

void options_export(const struct option_parser *parser)
{
    for (size_t i = 0; parser->tables[i] != NULL; i++) {
        for (size_t j = 0; parser->tables[i][j].type != OPTION_END; j++) {
            const struct option *option = &parser->tables[i][j];
            if (option->environment == NULL || !parser->given[i][j])
                continue;
            char number[16];
            switch (option->type) {
            case OPTION_FLAG:
                setenv(option->environment, "1", 1);
                break;
            case OPTION_COUNT:
                snprintf(number, sizeof(number), "%d", *(int *)option->value);
                setenv(option->environment, number, 1);
                break;
            case OPTION_TEXT:
                setenv(option->environment, *(const char **)option->value, 1);
                break;
            case OPTION_CHOICE: {
                const char *at = option->choices;
                for (int skip = *(int *)option->value; skip > 0; skip--)
                    at += strcspn(at, " ") + 1;
                CLEANUP_FREE char *word = memory_printf("%.*s", (int)strcspn(at, " "), at);
                setenv(option->environment, word, 1);
                break;
            }
            default:
                break;
            }
        }
    }
}

void options_free(struct option_parser *parser)
{
    free(parser->words);
    parser->words = NULL;
    parser->word_count = 0;
    for (size_t i = 0; parser->tables[i] != NULL; i++) {
        for (const struct option *entry = parser->tables[i]; entry->type != OPTION_END; entry++) {
            if (entry->type != OPTION_LIST)
                continue;
            struct option_list *list = entry->value;
            free(list->values);
            *list = (struct option_list){0};
        }
    }
}

const char *options_peek(char *const *arguments, char letter, const char *name)
{
    size_t length = strlen(name);
    for (; *arguments != NULL && strcmp(*arguments, "--") != 0; arguments++) {
        const char *word = *arguments;
        if (word[0] != '-')
            continue;
        if (word[1] == '-' && strncmp(word + 2, name, length) == 0) {
            if (word[2 + length] == '=')
                return word + 3 + length;
            if (word[2 + length] == '\0')
                return arguments[1];
        }
        if (letter != 0 && word[1] == letter)
            return word[2] == '\0' ? arguments[1] : word + 2 + (word[2] == '=');
    }
    return NULL;
}

/* Prints `text` from column `indent` on, broken at spaces to 79 columns; the first line starts at
 * column `column`. */
static void print_wrapped(const char *text, size_t column, size_t indent, FILE *stream)
{
    enum { RIGHT_EDGE = 79 };
    if (column > indent) {
        fputc('\n', stream);
        column = 0;
    }
    fprintf(stream, "%*s", (int)(indent - column), "");
    column = indent;
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        if (column > indent && column + 1 + size > RIGHT_EDGE) {
            fprintf(stream, "\n%*s", (int)indent, "");
            column = indent;
        }
        bool first = column == indent;
        fprintf(stream, "%s%.*s", first ? "" : " ", (int)size, text);
        column += size + !first;
        text += size;
        text += *text == ' ';
    }
    fputc('\n', stream);
}

void options_print_help(const struct option *table, FILE *stream)
{
    enum { HELP_COLUMN = 30 };
    for (const struct option *entry = table; entry->type != OPTION_END; entry++) {
        if (entry->hidden)
            continue;
        char left[96];
        int used = entry->letter != 0
                       ? snprintf(left, sizeof(left), "  -%c, --%s", entry->letter, entry->name)
                       : snprintf(left, sizeof(left), "      --%s", entry->name);
        if (entry->metavar != NULL && used > 0 && (size_t)used < sizeof(left))
            used += snprintf(left + used, sizeof(left) - (size_t)used, " %s", entry->metavar);
        CLEANUP_FREE char *choices =
            entry->choices != NULL ? memory_printf("; one of: %s", entry->choices) : NULL;
        CLEANUP_FREE char *fallback =
            entry->fallback != NULL ? memory_printf(" (default: %s)", entry->fallback) : NULL;
        CLEANUP_FREE char *environment =
            entry->environment != NULL ? memory_printf(" [$%s]", entry->environment) : NULL;
        CLEANUP_FREE char *text =
            memory_printf("%s%s%s%s%s", entry->help, choices != NULL ? choices : "",
                          entry->type == OPTION_LIST ? "; may be repeated" : "",
                          fallback != NULL ? fallback : "", environment != NULL ? environment : "");
        fputs(left, stream);
        /* Two spaces at least stand between an option and its help. */
        print_wrapped(text, (size_t)used + 2 > HELP_COLUMN ? HELP_COLUMN + 1 : (size_t)used,
                      HELP_COLUMN, stream);
    }
}
