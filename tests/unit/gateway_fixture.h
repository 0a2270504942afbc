/* What the gateway's unit tests share: a directory of their own and records made by hand. */
#ifndef TESTS_UNIT_GATEWAY_FIXTURE_H
#define TESTS_UNIT_GATEWAY_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "openshell.pb-c.h"

/* A new directory below TMPDIR; owned by the caller. */
static inline char *fixture_directory(void)
{
    const char *base = getenv("TMPDIR");
    char *path = memory_printf("%s/openshell-test-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline void fixture_remove(char *path)
{
    struct error error = {0};
    if (!file_remove_tree(path, &error))
        fail_msg("%s", error.message);
    free(path);
}

/* A sandbox as CreateSandbox would put it together. */
static inline Openshell__V1__Sandbox *fixture_sandbox(struct arena *arena, const char *id,
                                                      const char *name)
{
    Openshell__V1__Sandbox *sandbox = arena_new_of(arena, Openshell__V1__Sandbox);
    openshell__v1__sandbox__init(sandbox);
    sandbox->metadata = arena_new_of(arena, Openshell__Datamodel__V1__ObjectMeta);
    openshell__datamodel__v1__object_meta__init(sandbox->metadata);
    sandbox->metadata->id = arena_strdup(arena, id);
    sandbox->metadata->name = arena_strdup(arena, name);
    sandbox->metadata->workspace = arena_strdup(arena, "default");
    sandbox->spec = arena_new_of(arena, Openshell__V1__SandboxSpec);
    openshell__v1__sandbox_spec__init(sandbox->spec);
    return sandbox;
}

/* The error is about this field, among others. */
static inline bool fixture_has_violation(const struct error *error, const char *field)
{
    for (size_t i = 0; i < error->violation_count; i++)
        if (strcmp(error->violations[i].field, field) == 0)
            return true;
    return false;
}

#endif
