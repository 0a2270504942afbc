#include "archive/destination.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Cuts slashes off the end; "/" stays. */
static size_t length_without_slashes(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

/* The last component of the first `length` bytes. */
static const char *last_component(const char *path, size_t length, size_t *ret_length)
{
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *ret_length = length - begin;
    return path + begin;
}

static bool is_dots(const char *component, size_t length)
{
    return (length == 1 && component[0] == '.') ||
           (length == 2 && component[0] == '.' && component[1] == '.');
}

bool archive_source_name(const char *path, char *buffer, struct error *error)
{
    if (*path == '\0')
        return error_set(error, ERROR_INVALID_ARGUMENT, "the path of the source is empty");
    size_t length, whole = length_without_slashes(path);
    const char *name = last_component(path, whole, &length);
    if (length > ARCHIVE_COMPONENT_BYTES_MAX)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "the name of the source is longer than %d bytes",
                         ARCHIVE_COMPONENT_BYTES_MAX);
    if (is_dots(name, length))
        length = 0;
    memcpy(buffer, name, length);
    buffer[length] = '\0';
    return true;
}

static bool refuse(struct error *error, const char *dest, const char *why)
{
    CLEANUP_FREE char *shown = text_escaped(dest);
    return error_set(error, ERROR_FAILED_PRECONDITION, "'%s' %s", shown, why);
}

static void into_directory(struct archive_destination *destination, const char *dest,
                           const char *name)
{
    memcpy(destination->directory, dest, strlen(dest) + 1);
    memcpy(destination->final_name, name, strlen(name) + 1);
}

/* DEST is the name itself. */
static bool as_named(struct archive_destination *destination, const char *dest, struct error *error)
{
    size_t length;
    const char *name = last_component(dest, strlen(dest), &length);
    if (length > ARCHIVE_COMPONENT_BYTES_MAX)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "the name of the destination is longer than %d bytes",
                         ARCHIVE_COMPONENT_BYTES_MAX);
    memcpy(destination->final_name, name, length + 1);
    size_t above = (size_t)(name - dest);
    while (above > 1 && dest[above - 1] == '/')
        above--;
    if (above == 0)
        memcpy(destination->directory, ".", 2);
    else {
        memcpy(destination->directory, dest, above);
        destination->directory[above] = '\0';
    }
    return true;
}

static bool decide_file(enum archive_direction direction, const char *name, const char *dest,
                        enum archive_found found, struct archive_destination *destination,
                        struct error *error)
{
    size_t length;
    const char *last = last_component(dest, strlen(dest), &length);
    bool names_directory = length == 0 || is_dots(last, length);
    if (names_directory && found == ARCHIVE_FOUND_OTHER)
        return refuse(error, dest, "is not a directory");
    bool below_root =
        direction == ARCHIVE_UPLOAD && dest[0] == '/' && strspn(dest, "/") == (size_t)(last - dest);
    if (names_directory || found == ARCHIVE_FOUND_DIRECTORY ||
        (found == ARCHIVE_FOUND_NOTHING && below_root)) {
        into_directory(destination, dest, name);
        return true;
    }
    return as_named(destination, dest, error);
}

bool archive_destination_decide(enum archive_direction direction, enum archive_kind kind,
                                const char *name, const char *dest, enum archive_found found,
                                struct archive_destination *ret_destination, struct error *error)
{
    if (*dest == '\0')
        return error_set(error, ERROR_INVALID_ARGUMENT, "the path of the destination is empty");
    if (strlen(dest) > ARCHIVE_NAME_BYTES_MAX || strlen(name) > ARCHIVE_COMPONENT_BYTES_MAX)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "the path of the destination is longer than %d bytes",
                         ARCHIVE_NAME_BYTES_MAX);
    if (kind == ARCHIVE_KIND_LINK && direction == ARCHIVE_DOWNLOAD) {
        CLEANUP_FREE char *shown = text_escaped(name);
        return error_set(error, ERROR_FAILED_PRECONDITION, "'%s' is a link; name what it leads to",
                         shown);
    }
    if (kind == ARCHIVE_KIND_FILE || kind == ARCHIVE_KIND_LINK)
        return decide_file(direction, name, dest, found, ret_destination, error);
    if (found == ARCHIVE_FOUND_OTHER)
        return refuse(error, dest, "is not a directory");
    into_directory(ret_destination, dest, "");
    return true;
}
