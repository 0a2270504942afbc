#include "base/paths.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#ifndef PKGLIBEXECDIR
#define PKGLIBEXECDIR "/usr/libexec/openshell"
#endif

/* An environment variable that holds an absolute path, or NULL. */
static const char *absolute(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] == '/' ? value : NULL;
}

static char *made_private(char *path, struct error *error)
{
    if (!file_make_private_directory(path, error)) {
        free(path);
        return NULL;
    }
    return path;
}

/* $VARIABLE/openshell or ~/FALLBACK/openshell, not yet made; NULL without a home. */
static char *under_home(const char *variable, const char *fallback, struct error *error)
{
    const char *root = absolute(variable);
    if (root != NULL)
        return memory_printf("%s/openshell", root);
    const char *home = absolute("HOME");
    if (home == NULL) {
        error_set(error, ERROR_FAILED_PRECONDITION,
                  "neither %s nor HOME is set; set one of them to an absolute path", variable);
        return NULL;
    }
    return memory_printf("%s/%s/openshell", home, fallback);
}

char *paths_run_directory(struct error *error)
{
    const char *chosen = absolute("OPENSHELL_RUN_DIR");
    if (chosen != NULL)
        return made_private(memory_strdup(chosen), error);
    if (geteuid() == 0)
        return made_private(memory_strdup("/run/openshell"), error);
    const char *runtime = absolute("XDG_RUNTIME_DIR");
    if (runtime != NULL)
        return made_private(memory_printf("%s/openshell", runtime), error);
    CLEANUP_FREE char *user = memory_printf("/run/user/%u", geteuid());
    struct stat status;
    if (lstat(user, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid())
        return made_private(memory_printf("%s/openshell", user), error);
    CLEANUP_FREE char *state = under_home("XDG_STATE_HOME", ".local/state", error);
    return state == NULL ? NULL : made_private(memory_printf("%s/run", state), error);
}

char *paths_state_directory(struct error *error)
{
    if (geteuid() == 0 && absolute("XDG_STATE_HOME") == NULL)
        return made_private(memory_strdup("/var/lib/openshell"), error);
    char *path = under_home("XDG_STATE_HOME", ".local/state", error);
    return path == NULL ? NULL : made_private(path, error);
}

char *paths_config_location(struct error *error)
{
    return under_home("XDG_CONFIG_HOME", ".config", error);
}

char *paths_config_directory(struct error *error)
{
    char *path = paths_config_location(error);
    return path == NULL ? NULL : made_private(path, error);
}

char *paths_libexec(const char *name)
{
    const char *directory = getenv("OPENSHELL_EXEC_PATH");
    if (directory == NULL || directory[0] == '\0')
        directory = PKGLIBEXECDIR;
    return memory_printf("%s/%s", directory, name);
}
