/* openshell gateway select */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/failure.h"
#include "client/gateway_store.h"
#include "client/report.h"

enum { ANSWER_MAX = 512 };

static const struct option options[] = {{0}};

static int use(const char *name, struct error *error)
{
    CLEANUP_FREE char *shown = text_escaped(name);
    if (!gateway_name_valid(name) ||
        (gateway_find(name) == GATEWAY_SOURCE_NONE && strcmp(name, GATEWAY_LOCAL_NAME) != 0)) {
        failure_set(error, CLIENT_REASON_GATEWAY_UNKNOWN, "there is no gateway '%s'", shown);
        return -1;
    }
    if (!gateway_store_activate(name, error))
        return -1;
    report_notice("gateway '%s' is used from now on", name);
    const char *variable = getenv("OPENSHELL_GATEWAY");
    if (variable != NULL && variable[0] != '\0' && strcmp(variable, name) != 0)
        report_notice("OPENSHELL_GATEWAY still chooses '%s' here", variable);
    return EXIT_SUCCESS;
}

static void print_choices(const struct gateway *gateways, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *endpoint = text_escaped(gateways[i].endpoint);
        printf("%zu%s %s  %s\n", i + 1, gateways[i].active ? "*" : " ", gateways[i].name, endpoint);
    }
}

/* The answer's gateway: by its number, or by its name. */
static int ask(const struct gateway *gateways, size_t count, struct error *error)
{
    char answer[ANSWER_MAX];
    printf("Which one? ");
    fflush(stdout);
    if (fgets(answer, sizeof(answer), stdin) == NULL) {
        failure_set(error, CLIENT_REASON_INTERRUPTED, "nothing was chosen");
        return -1;
    }
    answer[strcspn(answer, "\n")] = '\0';
    long long number;
    if (text_parse_integer(answer, 1, (long long)count, &number))
        return use(gateways[number - 1].name, error);
    return use(answer, error);
}

static int run(const struct invocation *invocation, struct error *error)
{
    if (invocation->word_count > 0)
        return use(invocation->words[0], error);
    struct gateway *gateways;
    size_t count;
    if (!gateway_list(&gateways, &count, error))
        return -1;
    if (count == 0) {
        report_notice("no gateway is configured; add one with: openshell gateway add");
        return EXIT_SUCCESS;
    }
    print_choices(gateways, count);
    int code = EXIT_SUCCESS;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        code = ask(gateways, count, error);
    else
        report_notice("choose one with: openshell gateway select NAME");
    gateway_list_free(gateways, count);
    return code;
}

const struct command command_gateway_select = {
    .usage = "[OPTIONS] [NAME]",
    .description = "Uses another gateway from now on. Without NAME it shows which there are, and "
                   "asks\non a terminal.",
    .examples = "  openshell gateway select openshell",
    .options = options,
    .completes = "gateways",
    .most_words = 1,
    .run = run,
};
