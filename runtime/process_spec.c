#include "runtime/process_spec.h"

#include <string.h>

#include "boundary/failure.h"

static const char *copy_text(const ProtobufCBinaryData *data, struct arena *arena)
{
    if (data->len > 0 && memchr(data->data, '\0', data->len) != NULL)
        return NULL;
    char *text = arena_alloc(arena, data->len + 1);
    if (data->len > 0)
        memcpy(text, data->data, data->len);
    return text;
}

static const char *const *copy_list(const ProtobufCBinaryData *list, size_t count,
                                    struct arena *arena)
{
    const char **copies = arena_array_of(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        copies[i] = copy_text(&list[i], arena);
        if (copies[i] == NULL)
            return NULL;
    }
    return copies;
}

/* NAME=VALUE with an identifier for a name. */
static bool entry_valid(const char *entry)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t first = strspn(entry, LETTERS);
    if (first == 0)
        return false;
    const char *rest = entry;
    while (*rest != '\0' && (strchr(LETTERS, *rest) != NULL || (*rest >= '0' && *rest <= '9')))
        rest++;
    return *rest == '=';
}

static bool check(const struct process_request *request, const struct maker_session_spec *spec,
                  struct error *error)
{
    if (spec->argv == NULL)
        return failure_set(error, FAILURE_INVALID, "an argument has a NUL in it");
    if (spec->argc > 0 && spec->argv[0][0] == '\0')
        return failure_set(error, FAILURE_INVALID, "the program's name is empty");
    if (spec->environment == NULL)
        return failure_set(error, FAILURE_INVALID, "an environment value has a NUL in it");
    for (size_t i = 0; i < spec->environment_count; i++)
        if (!entry_valid(spec->environment[i]))
            return failure_set(error, FAILURE_INVALID,
                               "the name of an environment variable is not an identifier");
    if (request->workdir[0] != '\0' && request->workdir[0] != '/')
        return failure_set(error, FAILURE_INVALID, "the working directory is not absolute");
    if (request->helper > COPY_SEND)
        return failure_set(error, FAILURE_INVALID, "%u is no helper", request->helper);
    if (request->helper != COPY_NONE && (request->terminal || spec->argc == 0))
        return failure_set(error, FAILURE_INVALID, "a copy has no terminal, and it has a path");
    if (request->columns > PROCESS_SPEC_TERMINAL_LIMIT ||
        request->rows > PROCESS_SPEC_TERMINAL_LIMIT)
        return failure_set(error, FAILURE_INVALID, "the terminal is larger than %d by %d",
                           PROCESS_SPEC_TERMINAL_LIMIT, PROCESS_SPEC_TERMINAL_LIMIT);
    return true;
}

bool process_spec_make(const struct process_request *request, struct arena *arena,
                       struct maker_session_spec *ret_spec, struct error *error)
{
    if (request->command_count > PROCESS_SPEC_ENTRIES_LIMIT ||
        request->environment_count > PROCESS_SPEC_ENTRIES_LIMIT)
        return failure_set(error, FAILURE_INVALID,
                           "more than %d arguments or environment variables",
                           PROCESS_SPEC_ENTRIES_LIMIT);
    struct maker_session_spec spec = {
        .argv = copy_list(request->command, request->command_count, arena),
        .argc = request->command_count,
        .environment = copy_list(request->environment, request->environment_count, arena),
        .environment_count = request->environment_count,
        .workdir = arena_strdup(arena, request->workdir),
        .terminal = request->terminal,
        .columns = request->columns,
        .rows = request->rows,
        .login_shell = request->login_shell,
        .helper = (enum copy_helper)request->helper,
    };
    if (!check(request, &spec, error))
        return false;
    *ret_spec = spec;
    return true;
}
