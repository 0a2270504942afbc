#include "gateway/auth/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

enum { KEY_FILE_LIMIT = 16384 };

struct key_paths {
    char *signing;
    char *public;
    char *kid;
};

static void free_paths(struct key_paths *paths)
{
    free(paths->signing);
    free(paths->public);
    free(paths->kid);
}

static char *read_text(const char *path, struct error *error)
{
    struct buffer buffer = BUFFER_INIT(KEY_FILE_LIMIT);
    char *text = NULL;
    if (file_read(path, &buffer, error))
        text = memory_strdup(buffer_text(&buffer));
    buffer_wipe(&buffer);
    return text;
}

static void wipe(char *secret)
{
    if (secret != NULL)
        memory_wipe(secret, strlen(secret));
    free(secret);
}

static bool check_mode(const char *path, struct error *error)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return error_set(error, ERROR_FAILED_PRECONDITION, "cannot look at '%s'", path);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "'%s' must be a file that only its owner can read; fix it with: chmod "
                         "600 '%s'",
                         path, path);
    return true;
}

static struct session_token_key *load(const struct key_paths *paths, struct error *error)
{
    if (!check_mode(paths->signing, error))
        return NULL;
    char *pem = read_text(paths->signing, error);
    char *kid = pem != NULL ? read_text(paths->kid, error) : NULL;
    char *public = kid != NULL ? read_text(paths->public, error) : NULL;
    struct session_token_key *key = NULL;
    if (public != NULL) {
        kid[strcspn(kid, "\r\n")] = '\0';
        key = session_token_key_parse_private(pem, kid, error);
    }
    if (key != NULL) {
        CLEANUP_FREE char *expected = session_token_key_public_pem(key);
        if (strcmp(expected, public) != 0) {
            error_set(error, ERROR_FAILED_PRECONDITION, "'%s' is not the public half of '%s'",
                      paths->public, paths->signing);
            session_token_key_free(key);
            key = NULL;
        }
    }
    wipe(pem);
    free(kid);
    free(public);
    return key;
}

static bool write_text(const char *path, const char *text, struct error *error)
{
    return file_write_atomic(path, text, strlen(text), 0600, error);
}

/* The private half comes last: without it the key does not exist yet. */
static struct session_token_key *make(const struct key_paths *paths, struct error *error)
{
    struct session_token_key *key = session_token_key_generate(error);
    if (key == NULL)
        return NULL;
    CLEANUP_FREE char *public = session_token_key_public_pem(key);
    char *private = session_token_key_private_pem(key);
    bool written = write_text(paths->kid, session_token_key_id(key), error) &&
                   write_text(paths->public, public, error) &&
                   write_text(paths->signing, private, error);
    wipe(private);
    if (written)
        return key;
    session_token_key_free(key);
    return NULL;
}

struct session_token_key *keys_load(const char *directory, struct error *error)
{
    if (!file_make_private_directory(directory, error))
        return NULL;
    struct key_paths paths = {
        .signing = memory_printf("%s/signing.pem", directory),
        .public = memory_printf("%s/public.pem", directory),
        .kid = memory_printf("%s/kid", directory),
    };
    /* Without the signing key the other two are the rest of a start that was cut short. */
    bool present = access(paths.signing, F_OK) == 0;
    struct session_token_key *key = present ? load(&paths, error) : make(&paths, error);
    if (key == NULL)
        error_prefix(error, "the gateway's signing key");
    free_paths(&paths);
    return key;
}
