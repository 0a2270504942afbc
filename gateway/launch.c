#include "gateway/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "gateway/host_ids.h"
#include "gateway/lifecycle.h"
#include "gateway/records.h"

#define FROM_DIRECTORY "dir:"

enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24, TERMINAL_SIZE_MAX = 65535 };

const char *launch_from_directory(const Openshell__V1__Sandbox *sandbox)
{
    const Openshell__V1__SandboxTemplate *template =
        sandbox->spec != NULL ? sandbox->spec->template_ : NULL;
    if (template == NULL || !text_has_prefix(template->image, FROM_DIRECTORY))
        return NULL;
    return template->image + strlen(FROM_DIRECTORY);
}

const char *launch_generation(const Openshell__V1__Sandbox *sandbox)
{
    const char *value = record_annotation(sandbox, ANNOTATION_GENERATION);
    return value != NULL ? value : "";
}

uint64_t launch_auth_epoch(const Openshell__V1__Sandbox *sandbox)
{
    const char *value = record_annotation(sandbox, ANNOTATION_AUTH_EPOCH);
    return value != NULL ? strtoull(value, NULL, 10) : 0;
}

/* ---- the main process ---- */

static bool overridden(const Openshell__V1__SandboxSpec *spec, const char *key)
{
    for (size_t i = 0; i < spec->n_environment; i++)
        if (strcmp(spec->environment[i]->key, key) == 0)
            return true;
    return false;
}

/* NAME=VALUE of the template, then of the sandbox, which wins; NULL-terminated, in the arena. */
static char **main_environment(const Openshell__V1__SandboxSpec *spec, struct arena *arena)
{
    const Openshell__V1__SandboxTemplate *template = spec->template_;
    size_t inherited = template != NULL ? template->n_environment : 0;
    char **environment = arena_array_of(arena, char *, inherited + spec->n_environment + 1);
    size_t count = 0;
    for (size_t i = 0; i < inherited; i++)
        if (!overridden(spec, template->environment[i]->key))
            environment[count++] = arena_printf(arena, "%s=%s", template->environment[i]->key,
                                                template->environment[i]->value);
    for (size_t i = 0; i < spec->n_environment; i++)
        environment[count++] =
            arena_printf(arena, "%s=%s", spec->environment[i]->key, spec->environment[i]->value);
    return environment;
}

bool launch_parse_terminal_size(const char *text, uint32_t *ret_columns, uint32_t *ret_rows)
{
    long long columns, rows;
    char first[8] = "";
    const char *cross = text != NULL ? strchr(text, 'x') : NULL;
    if (cross == NULL || (size_t)(cross - text) >= sizeof(first))
        return false;
    memcpy(first, text, (size_t)(cross - text));
    if (!text_parse_integer(first, 1, TERMINAL_SIZE_MAX, &columns) ||
        !text_parse_integer(cross + 1, 1, TERMINAL_SIZE_MAX, &rows))
        return false;
    *ret_columns = (uint32_t)columns;
    *ret_rows = (uint32_t)rows;
    return true;
}

static void describe_main(const Openshell__V1__Sandbox *sandbox, struct arena *arena,
                          struct launch_main *main)
{
    const Openshell__V1__SandboxSpec *spec = sandbox->spec;
    main->command = arena_array_of(arena, char *, spec->n_command + 1);
    for (size_t i = 0; i < spec->n_command; i++)
        main->command[i] = spec->command[i];
    main->environment = main_environment(spec, arena);
    main->terminal = spec->tty;
    main->columns = DEFAULT_COLUMNS;
    main->rows = DEFAULT_ROWS;
    launch_parse_terminal_size(record_annotation(sandbox, ANNOTATION_TERMINAL_SIZE), &main->columns,
                               &main->rows);
    main->await_attachment = record_annotation(sandbox, ANNOTATION_AWAIT_ATTACHMENT) != NULL;
}

/* ---- tokens ---- */

static char *sign(struct gateway *gateway, const struct driver_launch *launch,
                  enum session_token_kind kind, struct error *error)
{
    struct session_token_claims claims = {.auth_epoch = launch->auth_epoch};
    snprintf(claims.sandbox_id, sizeof(claims.sandbox_id), "%s", launch->sandbox_id);
    snprintf(claims.generation, sizeof(claims.generation), "%s", launch->generation);
    return session_token_sign(gateway->key, kind, GATEWAY_NAME, &claims, error);
}

static void wipe(char *secret)
{
    if (secret != NULL)
        memory_wipe(secret, strlen(secret));
    free(secret);
}

void launch_start(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox, driver_done done,
                  void *user)
{
    struct arena *arena = arena_new(0);
    struct driver_launch launch = {
        .sandbox_id = sandbox->metadata->id,
        .sandbox_name = sandbox->metadata->name,
        .generation = launch_generation(sandbox),
        .auth_epoch = launch_auth_epoch(sandbox),
        .from_directory = launch_from_directory(sandbox),
        .host_id_base = host_ids_of(sandbox),
    };
    describe_main(sandbox, arena, &launch.main);
    struct error error = {0};
    char *gateway_token = sign(gateway, &launch, SESSION_TOKEN_GATEWAY, &error);
    char *sandbox_token =
        gateway_token != NULL ? sign(gateway, &launch, SESSION_TOKEN_SANDBOX, &error) : NULL;
    launch.gateway_token = gateway_token;
    launch.sandbox_token = sandbox_token;
    if (sandbox_token != NULL)
        gateway->driver->class->start(gateway->driver, &launch, done, user);
    else
        done(&error, user);
    wipe(gateway_token);
    wipe(sandbox_token);
    error_clear(&error);
    arena_free(arena);
}
