#include "archive/name.h"

#include <string.h>

static const char *append_component(struct archive_name *name, const char *component, size_t length)
{
    if (length > ARCHIVE_COMPONENT_BYTES_MAX)
        return "a part of the name is longer than 255 bytes";
    if (name->depth == ARCHIVE_DEPTH_MAX)
        return "more than 200 directories deep";
    if (name->length + 1 + length > ARCHIVE_NAME_BYTES_MAX)
        return "the name is longer than 4095 bytes";
    if (name->length > 0)
        name->path[name->length++] = '/';
    name->leaf = name->length;
    memcpy(name->path + name->length, component, length);
    name->length += length;
    name->path[name->length] = '\0';
    name->depth++;
    return NULL;
}

const char *archive_name_parse(const char *name, struct archive_name *ret_name)
{
    ret_name->path[0] = '\0';
    ret_name->length = ret_name->leaf = 0;
    ret_name->depth = 0;
    ret_name->slash = false;
    if (name == NULL || *name == '\0')
        return "the name is empty";
    if (*name == '/')
        return "the name is absolute";
    for (const char *at = name; *at != '\0';) {
        size_t length = strcspn(at, "/");
        bool dot = length == 1 && at[0] == '.';
        if (length == 2 && at[0] == '.' && at[1] == '.')
            return "the name holds '..'";
        if (length > 0 && !dot) {
            const char *reason = append_component(ret_name, at, length);
            if (reason != NULL)
                return reason;
        }
        at += length;
        ret_name->slash = dot || *at == '/';
        at += *at == '/';
    }
    return NULL;
}
