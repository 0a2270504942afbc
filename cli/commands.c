/* The multi-call binary: becomes the command by whose name it was started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/command_table.h"
#include "cli/describe.h"
#include "client/failure.h"
#include "client/interrupt.h"
#include "client/options.h"
#include "client/pager.h"
#include "client/report.h"
#include "client/settings.h"
#include "config.h"

/* A missing standard descriptor would be taken by the first file or socket that is opened. What is
 * put there fails as the missing one would: reading ends, writing is an error. gRPC opens
 * descriptors before main, so this comes first of all that runs before it. */
__attribute__((constructor(101))) static void fill_standard_descriptors(void)
{
    for (int i = 0; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != i)
            _exit(EXIT_FAILURE);
}

static const struct command_entry *find_entry(const char *name)
{
    for (const struct command_entry *entry = command_entries; entry->verb != NULL; entry++)
        if (strcmp(entry->executable, name) == 0)
            return entry;
    return NULL;
}

static void print_words(const struct command_entry *entry, FILE *stream)
{
    fprintf(stream, "openshell %s%s%s", entry->group, entry->group[0] != '\0' ? " " : "",
            entry->verb);
}

static void print_help(const struct command_entry *entry, const struct command *command)
{
    printf("usage: ");
    print_words(entry, stdout);
    printf("%s%s\n\n%s.\n", command->usage[0] != '\0' ? " " : "", command->usage, entry->summary);
    if (command->description != NULL)
        printf("\n%s\n", command->description);
    if (command->options[0].type != OPTION_END) {
        printf("\noptions:\n");
        options_print_help(command->options, stdout);
    }
    printf("\nglobal options, before or after the command:\n");
    options_print_help(global_options, stdout);
    if (command->examples != NULL)
        printf("\nexamples:\n%s\n", command->examples);
}

static bool check_words(const struct command *command, const struct option_parser *parser,
                        struct error *error)
{
    if (parser->word_count > command->most_words) {
        char shown[256];
        text_escape(parser->words[command->most_words], shown, sizeof(shown));
        failure_usage(error, "'%s' is one word too many", shown);
        if (command->trailing && parser->command == NULL)
            failure_hint(error, "put -- before the program to run");
        return false;
    }
    if (parser->word_count < command->least_words)
        return failure_usage(error, "too few words are given");
    return true;
}

/* An error wants to be shown as was asked for even where that could not be parsed any more. */
static void peek_settings(const struct command *command, char *const *arguments)
{
    long long number;
    for (const struct option *option = command->options; option->type != OPTION_END; option++) {
        if (option->value != &settings.output && option->value != &settings.own_exit_code)
            continue;
        const char *value = options_peek(arguments, option->letter, option->name);
        if (value == NULL)
            continue;
        if (option->value == &settings.output && strcmp(value, "json") == 0)
            settings.output = OUTPUT_JSON;
        if (option->value == &settings.own_exit_code &&
            text_parse_integer(value, option->minimum, option->maximum, &number))
            settings.own_exit_code = number;
    }
}

static int fail(const struct error *error)
{
    report_error(error);
    if (failure_is(error, CLIENT_REASON_INTERRUPTED) && interrupt_number() != 0)
        return EXIT_SIGNALLED + interrupt_number();
    return settings.own_exit_code >= 0 ? (int)settings.own_exit_code : failure_exit_code(error);
}

static int fail_usage(const struct command_entry *entry, struct error *error)
{
    if (error_get_metadata(error, "hint") == NULL)
        failure_hint(error, "see: openshell help %s%s%s", entry->group,
                     entry->group[0] != '\0' ? " " : "", entry->verb);
    return fail(error);
}

static void start_log(void)
{
    static const enum log_level levels[] = {LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG,
                                            LOG_LEVEL_TRACE};
    log_init("openshell", levels[settings.verbosity > 3 ? 3 : settings.verbosity]);
}

static int run(const struct command_entry *entry, const struct command *command, char **arguments)
{
    struct error error = {0};
    struct option_parser parser = {.tables = {command->options, global_options},
                                   .trailing = command->trailing,
                                   .arguments = arguments};
    if (!options_parse(&parser, &error)) {
        peek_settings(command, arguments);
        return fail_usage(entry, &error);
    }
    if (settings.help) {
        pager_start();
        print_help(entry, command);
        pager_finish();
        return EXIT_SUCCESS;
    }
    if (settings.version) {
        printf("openshell %s\n", PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    if (!check_words(command, &parser, &error))
        return fail_usage(entry, &error);
    start_log();
    const struct invocation invocation = {.words = parser.words,
                                          .word_count = parser.word_count,
                                          .trailing = parser.command,
                                          .trailing_count = parser.command_count,
                                          .parser = &parser};
    int code = command->run(&invocation, &error);
    if (code >= 0)
        return code;
    return failure_is(&error, CLIENT_REASON_USAGE) ? fail_usage(entry, &error) : fail(&error);
}

/* What could not be printed is a failure, except to a reader that has seen enough. */
static int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (report_reader_gone())
        return code != 0 ? code : EXIT_SIGNALLED + SIGPIPE;
    struct error error = {0};
    failure_set(&error, CLIENT_REASON_OUTPUT_FAILED, "cannot write to standard output: %s",
                strerror(errno));
    return code != 0 ? code : fail(&error);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int main(int argc, char **argv)
{
    const struct command_entry *entry = argc > 0 ? find_entry(base_name(argv[0])) : NULL;
    char **arguments = argv + 1;
    if (entry == NULL && argc > 1) {
        entry = find_entry(argv[1]);
        arguments = argv + 2;
    }
    if (entry == NULL && argc == 2 && strcmp(argv[1], "--describe") == 0) {
        describe_commands(stdout);
        _exit(finish(EXIT_SUCCESS));
    }
    if (entry == NULL) {
        fprintf(stderr, "openshell: this program is started by openshell, under the name of a "
                        "command\n");
        _exit(EXIT_USAGE);
    }
    int code = finish(run(entry, command_table[entry - command_entries], arguments));
    /* gRPC's threads are not waited for: everything that matters has been written. */
    _exit(code);
}
