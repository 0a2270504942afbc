/* The front-end: finds the executable of a subcommand and becomes it, as git does. It knows the
 * list of commands and the global options, and nothing about what a command does. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/paths.h"
#include "base/text.h"
#include "cli/command_list.h"
#include "client/failure.h"
#include "client/options.h"
#include "client/pager.h"
#include "client/settings.h"
#include "config.h"

enum { SHOWN_MAX = 256 }; /* bytes of a user's word in a message */

/* Whether -o json stands somewhere in the arguments: errors are one JSON object then. */
static bool as_json;

static void print_member(const char *key, const char *value, const char *end)
{
    fprintf(stderr, "\"%s\":\"", key);
    for (const char *at = value; *at != '\0'; at++)
        fprintf(stderr, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    fprintf(stderr, "\"%s", end);
}

/* Every text of it was escaped when it was made, but for quotes and backslashes. */
static void print_json(const struct error *error, const char *hint)
{
    fputc('{', stderr);
    print_member("code", error_code_name(error->code), ",");
    print_member("reason", error->reason, ",");
    print_member("message", error->message, ",");
    print_member("hint", hint != NULL ? hint : "", "}\n");
}

static int fail(const struct error *error)
{
    const char *hint = error_get_metadata(error, "hint");
    if (as_json) {
        print_json(error, hint);
        return failure_exit_code(error);
    }
    fprintf(stderr, "openshell: %s%s%s\n", error->message, hint != NULL ? "; " : "",
            hint != NULL ? hint : "");
    return failure_exit_code(error);
}

/* ---- help ---- */

static void print_entries(const char *group, enum command_class class)
{
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (strcmp(entry->group, group) == 0 && entry->class == class)
            printf("  %-12s %s\n", entry->verb, entry->summary);
}

static void print_global_options(void)
{
    printf("\nglobal options, before or after the command:\n");
    options_print_help(global_options, stdout);
}

static int print_help(void)
{
    pager_start();
    printf("usage: openshell [OPTIONS] GROUP VERB ...\n\n"
           "Runs untrusted programs in sandboxes.\n");
    for (const struct command_group *group = command_groups; group->name != NULL; group++) {
        printf("\n%s: %s\n", group->name, group->summary);
        print_entries(group->name, COMMAND_MAIN);
        print_entries(group->name, COMMAND_MORE);
    }
    printf("\nby themselves:\n");
    print_entries("", COMMAND_MAIN);
    print_entries("", COMMAND_MORE);
    printf("  %-12s %s\n", "help", "Show help: openshell help GROUP VERB");
    print_global_options();
    printf("\nA first sandbox: openshell sandbox create --name demo --detach\n");
    pager_finish();
    return EXIT_SUCCESS;
}

static int print_group_help(const struct command_group *group)
{
    pager_start();
    printf("usage: openshell %s VERB ...\n\n%s.", group->name, group->summary);
    printf(" Also as: openshell %s\n\nverbs:\n", group->alias);
    print_entries(group->name, COMMAND_MAIN);
    print_entries(group->name, COMMAND_MORE);
    print_global_options();
    printf("\nMore about a verb: openshell help %s VERB\n", group->name);
    pager_finish();
    return EXIT_SUCCESS;
}

/* ---- what a word means ---- */

static const struct command_group *find_group(const char *word)
{
    for (const struct command_group *group = command_groups; group->name != NULL; group++)
        if (strcmp(group->name, word) == 0 || strcmp(group->alias, word) == 0)
            return group;
    return NULL;
}

static const struct command_entry *find_entry(const char *group, const char *verb)
{
    for (const struct command_alias *alias = command_aliases;
         group[0] == '\0' && alias->name != NULL; alias++)
        if (strcmp(alias->name, verb) == 0)
            verb = alias->verb;
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (strcmp(entry->group, group) == 0 && strcmp(entry->verb, verb) == 0)
            return entry;
    return NULL;
}

static void consider(const char *word, const char *candidate, const char **nearest, size_t *least)
{
    size_t distance = text_distance(word, candidate);
    if (distance < *least && distance < strlen(candidate)) {
        *least = distance;
        *nearest = candidate;
    }
}

/* "did you mean": of the groups and single words, or of one group's verbs. */
static int unknown_word(const struct command_group *group, const char *word)
{
    char shown[SHOWN_MAX];
    text_escape(word, shown, sizeof(shown));
    const char *nearest = NULL, *name = group != NULL ? group->name : "";
    size_t least = 4;
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (strcmp(entry->group, name) == 0 && entry->class != COMMAND_HIDDEN)
            consider(word, entry->verb, &nearest, &least);
    for (const struct command_group *each = command_groups; group == NULL && each->name != NULL;
         each++)
        consider(word, each->name, &nearest, &least);

    const char *space = group != NULL ? " " : "";
    struct error error = {0};
    failure_usage(&error, "'%s%s%s' is not an openshell command", name, space, shown);
    if (nearest != NULL)
        failure_hint(&error, "did you mean: openshell %s%s%s", name, space, nearest);
    else
        failure_hint(&error, "see: openshell help%s%s", space, name);
    return fail(&error);
}

/* ---- becoming the command ---- */

static int become(const char *path, const char *name, char **arguments, const char *only_argument)
{
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    char **vector = memory_new((count + 3) * sizeof(*vector));
    vector[0] = (char *)name;
    if (only_argument != NULL)
        vector[1] = (char *)only_argument;
    else
        memcpy(vector + 1, arguments, count * sizeof(*vector));
    execv(path, vector);

    int reason = errno;
    struct error error = {0};
    error_set_errno(&error, ERROR_INTERNAL, reason, "cannot run '%s'", path);
    if (reason == ENOENT)
        failure_hint(&error, "the installation is not complete; OPENSHELL_EXEC_PATH names the "
                             "directory of the commands where they stand elsewhere");
    return fail(&error);
}

static int run_entry(const struct command_entry *entry, char **arguments, const char *only_argument)
{
    char *path = paths_libexec(entry->executable);
    return become(path, entry->executable, arguments, only_argument);
}

/* The first executable file of that name on PATH, or NULL. */
static char *find_on_path(const char *name)
{
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        size_t size = strcspn(at, ":");
        char *path = size > 0 ? memory_printf("%.*s/%s", (int)size, at, name) : NULL;
        struct stat status;
        if (path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
            access(path, X_OK) == 0)
            return path;
        free(path);
        at += size;
        at += *at == ':';
    }
    return NULL;
}

/* Words that may be part of the name of somebody else's executable. */
static bool is_plain(const char *word)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    return word[0] != '-' && word[0] != '\0' && strspn(word, allowed) == strlen(word);
}

/* Commands that are not ours: openshell-GROUP-VERB, then openshell-GROUP. Returns only when there
 * is none. */
static void try_foreign(const char *group, bool ours, char **arguments)
{
    if (!is_plain(group))
        return;
    if (arguments[0] != NULL && is_plain(arguments[0])) {
        char *name = memory_printf("openshell-%s-%s", group, arguments[0]);
        char *path = find_on_path(name);
        if (path != NULL)
            exit(become(path, name, arguments + 1, NULL));
        free(name);
    }
    if (ours)
        return; /* openshell-gateway and openshell-sandbox are programs of another kind */
    char *name = memory_printf("openshell-%s", group);
    char *path = find_on_path(name);
    if (path != NULL)
        exit(become(path, name, arguments, NULL));
    free(name);
}

/* ---- the manual ---- */

/* Whether DIRECTORY has the page, as it was installed or compressed since. */
static bool has_page(const char *directory, const char *section, const char *page)
{
    static const char *const suffixes[] = {"", ".gz", ".xz", ".bz2", ".zst"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        CLEANUP_FREE char *path =
            memory_printf("%s/man%s/%s.%s%s", directory, section, page, section, suffixes[i]);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* Where the manual is: OPENSHELL_MAN_PATH; beside the commands in the build tree; else where it
 * was installed. */
static char *manual_directory(void)
{
    const char *chosen = getenv("OPENSHELL_MAN_PATH");
    if (chosen != NULL && chosen[0] != '\0')
        return memory_strdup(chosen);
    char *beside = paths_libexec("manual");
    if (access(beside, X_OK) == 0)
        return beside;
    free(beside);
    return memory_strdup(MANDIR);
}

/* Becomes man with the page of that name. Returns when there is no such page, or no man. */
static void open_page(const char *page)
{
    static const char *const sections[] = {"1", "5", "8"};
    CLEANUP_FREE char *directory = manual_directory();
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (!has_page(directory, sections[i], page))
            continue;
        /* Ours, then the system's. */
        CLEANUP_FREE char *path = memory_printf("%s:", directory);
        setenv("MANPATH", path, 1);
        execlp("man", "man", sections[i], page, (char *)NULL);
        return;
    }
}

/* What is no command may have a page: "config" is openshell-config(5). */
static void open_other_page(char **words)
{
    if (words[1] != NULL || !is_plain(words[0]))
        return;
    CLEANUP_FREE char *page = memory_printf("openshell-%s", words[0]);
    open_page(strcmp(words[0], "openshell") == 0 ? words[0] : page);
}

/* openshell help [GROUP] [VERB] */
static int help_about(char **words)
{
    if (words[0] == NULL)
        return print_help();
    const struct command_group *group = find_group(words[0]);
    if (group != NULL && words[1] == NULL)
        return print_group_help(group);
    const struct command_entry *entry =
        group != NULL ? find_entry(group->name, words[1]) : find_entry("", words[0]);
    if (entry == NULL && group == NULL && strcmp(words[0], "help") == 0)
        return print_help();
    if (entry == NULL) {
        open_other_page(words);
        return unknown_word(group, group != NULL ? words[1] : words[0]);
    }
    open_page(entry->executable);
    return run_entry(entry, words, "--help");
}

static int print_version(void)
{
    printf("openshell %s\n", PACKAGE_VERSION);
    return EXIT_SUCCESS;
}

static int dispatch_verb(const struct command_group *group, struct option_parser *parser)
{
    struct error error = {0};
    if (!options_parse(parser, &error))
        return fail(&error);
    if (settings.version)
        return print_version();
    if (settings.help || *parser->arguments == NULL)
        return print_group_help(group);
    options_export(parser);
    const char *verb = *parser->arguments;
    const struct command_entry *entry = find_entry(group->name, verb);
    if (entry != NULL)
        return run_entry(entry, parser->arguments + 1, NULL);
    if (strcmp(verb, "help") == 0) {
        char *words[] = {(char *)group->name, parser->arguments[1], NULL};
        return help_about(words);
    }
    try_foreign(group->name, true, parser->arguments);
    return unknown_word(group, verb);
}

static int dispatch(char **arguments)
{
    struct option_parser parser = {
        .tables = {global_options}, .stop_at_word = true, .arguments = arguments};
    struct error error = {0};
    if (!options_parse(&parser, &error)) {
        if (error_get_metadata(&error, "hint") == NULL)
            failure_hint(&error, "see: openshell --help");
        return fail(&error);
    }
    if (settings.help || (*parser.arguments == NULL && !settings.version))
        return print_help();
    if (settings.version)
        return print_version();
    const char *word = *parser.arguments++;
    const struct command_group *group = find_group(word);
    if (group != NULL)
        return dispatch_verb(group, &parser);
    options_export(&parser);
    const struct command_entry *entry = find_entry("", word);
    if (entry != NULL)
        return run_entry(entry, parser.arguments, NULL);
    if (strcmp(word, "help") == 0)
        return help_about(parser.arguments);
    try_foreign(word, false, parser.arguments);
    return unknown_word(NULL, word);
}

static bool reader_is_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

int main(int argc, char **argv)
{
    static char *none[] = {NULL};
    char **arguments = argc > 0 ? argv + 1 : none;
    const char *output = options_peek(arguments, 'o', "output");
    as_json = output != NULL && strcmp(output, "json") == 0;
    int code = dispatch(arguments);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (reader_is_gone())
            return EXIT_SIGNALLED + SIGPIPE;
        fprintf(stderr, "openshell: cannot write to standard output: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    return code;
}
