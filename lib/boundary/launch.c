#include "boundary/launch.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/memory.h"
#include "base/text.h"

/* How a member of a bundle looks in JSON. Text that is not UTF-8 is {"base64url": "..."}. */
enum kind {
    KIND_TEXT,
    KIND_SECRET,        /* as text, wiped when freed */
    KIND_OPTIONAL_TEXT, /* NULL is null */
    KIND_NUMBER_32,
    KIND_NUMBER_64,
    KIND_BOOLEAN,
    KIND_LIST, /* NULL-terminated; NULL is written as the empty list */
    KIND_MAIN, /* struct launch_main */
};

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
};

struct format {
    const char *name; /* for messages */
    const struct field *fields;
    size_t count;
};

#define MEMBER(type, member, kind)                                                                 \
    {                                                                                              \
#member, kind, offsetof(struct type, member)                                               \
    }
#define FORMAT(text, fields)                                                                       \
    {                                                                                              \
        text, fields, sizeof(fields) / sizeof((fields)[0])                                         \
    }

static const struct field MAIN_FIELDS[] = {
    MEMBER(launch_main, command, KIND_LIST),
    MEMBER(launch_main, environment, KIND_LIST),
    MEMBER(launch_main, terminal, KIND_BOOLEAN),
    MEMBER(launch_main, columns, KIND_NUMBER_32),
    MEMBER(launch_main, rows, KIND_NUMBER_32),
    MEMBER(launch_main, await_attachment, KIND_BOOLEAN),
};
static const struct format MAIN_FORMAT = FORMAT("main process", MAIN_FIELDS);

static const struct field SUPERVISOR_FIELDS[] = {
    MEMBER(launch_supervisor, sandbox_id, KIND_TEXT),
    MEMBER(launch_supervisor, sandbox_name, KIND_TEXT),
    MEMBER(launch_supervisor, generation, KIND_TEXT),
    MEMBER(launch_supervisor, auth_epoch, KIND_NUMBER_64),
    MEMBER(launch_supervisor, gateway_id, KIND_TEXT),
    MEMBER(launch_supervisor, gateway_socket, KIND_TEXT),
    MEMBER(launch_supervisor, gateway_token, KIND_SECRET),
    MEMBER(launch_supervisor, sandbox_token, KIND_SECRET),
    MEMBER(launch_supervisor, runtime_pin, KIND_TEXT),
    MEMBER(launch_supervisor, backend_name, KIND_TEXT),
    MEMBER(launch_supervisor, driver_descriptor, KIND_TEXT),
    MEMBER(launch_supervisor, main, KIND_MAIN),
    MEMBER(launch_supervisor, stop_grace_milliseconds, KIND_NUMBER_32),
};
static const struct format SUPERVISOR_FORMAT = FORMAT("supervisor bundle", SUPERVISOR_FIELDS);

static const struct field RUNTIME_FIELDS[] = {
    MEMBER(launch_runtime, sandbox_id, KIND_TEXT),
    MEMBER(launch_runtime, sandbox_name, KIND_TEXT),
    MEMBER(launch_runtime, generation, KIND_TEXT),
    MEMBER(launch_runtime, auth_epoch, KIND_NUMBER_64),
    MEMBER(launch_runtime, gateway_id, KIND_TEXT),
    MEMBER(launch_runtime, supervisor_socket, KIND_TEXT),
    MEMBER(launch_runtime, verification_key_id, KIND_TEXT),
    MEMBER(launch_runtime, verification_key_pem, KIND_TEXT),
    MEMBER(launch_runtime, driver_descriptor, KIND_TEXT),
    MEMBER(launch_runtime, state_directory, KIND_TEXT),
    MEMBER(launch_runtime, cache_directory, KIND_TEXT),
    MEMBER(launch_runtime, from_directory, KIND_OPTIONAL_TEXT),
    MEMBER(launch_runtime, host_id_base, KIND_NUMBER_32),
    MEMBER(launch_runtime, process_limit, KIND_NUMBER_32),
};
static const struct format RUNTIME_FORMAT = FORMAT("runtime bundle", RUNTIME_FIELDS);

static const struct field SECRET_FIELDS[] = {
    MEMBER(launch_runtime_secret, certificate_pem, KIND_TEXT),
    MEMBER(launch_runtime_secret, key_pem, KIND_SECRET),
};
static const struct format SECRET_FORMAT = FORMAT("runtime secret", SECRET_FIELDS);

/* JSON values hold tokens and keys, so from the first bundle on every freed one is wiped. What was
 * allocated before comes from malloc too. */
static void free_wiping(void *pointer)
{
    if (pointer != NULL)
        memory_wipe(pointer, malloc_usable_size(pointer));
    free(pointer);
}

static void wipe_json_memory(void)
{
    json_set_alloc_funcs(malloc, free_wiping);
}

static void free_secret(char *text)
{
    if (text != NULL)
        memory_wipe(text, strlen(text));
    free(text);
}

static void free_list(char **list)
{
    for (char **entry = list; list != NULL && *entry != NULL; entry++)
        free_secret(*entry); /* an environment may hold secrets */
    free(list);
}

static void format_free(const struct format *format, void *object)
{
    for (size_t i = 0; i < format->count; i++) {
        void *member = (char *)object + format->fields[i].offset;
        switch (format->fields[i].kind) {
        case KIND_TEXT:
        case KIND_SECRET:
        case KIND_OPTIONAL_TEXT:
            free_secret(*(char **)member);
            *(char **)member = NULL;
            break;
        case KIND_LIST:
            free_list(*(char ***)member);
            *(char ***)member = NULL;
            break;
        case KIND_MAIN:
            format_free(&MAIN_FORMAT, member);
            break;
        case KIND_NUMBER_32:
        case KIND_NUMBER_64:
        case KIND_BOOLEAN:
            break;
        }
    }
}

/* ---- encoding ---- */

static json_t *encode_text(const char *text)
{
    size_t length = strlen(text);
    if (text_is_utf8(text, length))
        return json_stringn_nocheck(text, length);
    char *encoded = base64url_encode(text, length);
    json_t *value = json_pack("{s:s}", "base64url", encoded);
    free_secret(encoded);
    return value;
}

static json_t *encode_list(char *const *list)
{
    json_t *array = json_array();
    for (; list != NULL && *list != NULL; list++)
        if (json_array_append_new(array, encode_text(*list)) != 0)
            memory_exhausted();
    return array;
}

static json_t *format_encode(const struct format *format, const void *object, struct error *error);

static json_t *encode_member(const struct field *field, const void *member, struct error *error)
{
    switch (field->kind) {
    case KIND_TEXT:
    case KIND_SECRET:
        if (*(char *const *)member == NULL) {
            error_set(error, ERROR_INVALID_ARGUMENT, "'%s' is missing", field->key);
            return NULL;
        }
        return encode_text(*(char *const *)member);
    case KIND_OPTIONAL_TEXT:
        return *(char *const *)member == NULL ? json_null() : encode_text(*(char *const *)member);
    case KIND_NUMBER_32:
        return json_integer(*(const uint32_t *)member);
    case KIND_NUMBER_64:
        if (*(const uint64_t *)member > INT64_MAX) {
            error_set(error, ERROR_INVALID_ARGUMENT, "'%s' is too large", field->key);
            return NULL;
        }
        return json_integer((json_int_t) * (const uint64_t *)member);
    case KIND_BOOLEAN:
        return json_boolean(*(const bool *)member);
    case KIND_LIST:
        return encode_list(*(char **const *)member);
    case KIND_MAIN:
        return format_encode(&MAIN_FORMAT, member, error);
    }
    return NULL;
}

static json_t *format_encode(const struct format *format, const void *object, struct error *error)
{
    json_t *json = json_object();
    for (size_t i = 0; i < format->count; i++) {
        const struct field *field = &format->fields[i];
        json_t *value = encode_member(field, (const char *)object + field->offset, error);
        if (value == NULL) {
            error_prefix(error, "%s", format->name);
            json_decref(json);
            return NULL;
        }
        if (json_object_set_new_nocheck(json, field->key, value) != 0)
            memory_exhausted();
    }
    return json;
}

static bool encode(const struct format *format, const void *object, struct buffer *buffer,
                   struct error *error)
{
    wipe_json_memory();
    json_t *json = format_encode(format, object, error);
    if (json == NULL)
        return false;
    size_t length = json_dumpb(json, NULL, 0, JSON_COMPACT);
    bool done = length > 0 && length <= LAUNCH_BUNDLE_LIMIT;
    if (done) {
        char *text = memory_allocate(length); /* whole, so that growing leaves no copies */
        json_dumpb(json, text, length, JSON_COMPACT);
        done = buffer_append(buffer, text, length);
        memory_wipe(text, length);
        free(text);
    }
    json_decref(json);
    return done || error_set(error, ERROR_RESOURCE_EXHAUSTED, "%s: larger than %d bytes",
                             format->name, LAUNCH_BUNDLE_LIMIT);
}

/* ---- decoding ---- */

static char *decode_text(const json_t *value)
{
    if (json_is_string(value))
        return memory_strdup(json_string_value(value));
    const json_t *encoded = json_object_get(value, "base64url");
    if (json_object_size(value) != 1 || !json_is_string(encoded))
        return NULL;
    size_t length = 0;
    char *text =
        (char *)base64url_decode(json_string_value(encoded), json_string_length(encoded), &length);
    if (text != NULL && strlen(text) != length) {
        free_secret(text);
        return NULL;
    }
    return text;
}

static char **decode_list(const json_t *value)
{
    if (!json_is_array(value))
        return NULL;
    size_t count = json_array_size(value);
    char **list = memory_new((count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i] = decode_text(json_array_get(value, i));
        if (list[i] == NULL) {
            free_list(list);
            return NULL;
        }
    }
    return list;
}

static bool decode_number(const json_t *value, json_int_t maximum, json_int_t *ret_number)
{
    if (!json_is_integer(value))
        return false;
    *ret_number = json_integer_value(value);
    return *ret_number >= 0 && *ret_number <= maximum;
}

static bool format_decode(const struct format *format, json_t *json, void *object,
                          struct error *error);

static bool decode_member(const struct field *field, json_t *value, void *member,
                          struct error *error)
{
    bool valid = false;
    json_int_t number = 0;
    switch (field->kind) {
    case KIND_TEXT:
    case KIND_SECRET:
        *(char **)member = decode_text(value);
        valid = *(char **)member != NULL;
        break;
    case KIND_OPTIONAL_TEXT:
        *(char **)member = json_is_null(value) ? NULL : decode_text(value);
        valid = json_is_null(value) || *(char **)member != NULL;
        break;
    case KIND_NUMBER_32:
        valid = decode_number(value, UINT32_MAX, &number);
        *(uint32_t *)member = (uint32_t)number;
        break;
    case KIND_NUMBER_64:
        valid = decode_number(value, INT64_MAX, &number);
        *(uint64_t *)member = (uint64_t)number;
        break;
    case KIND_BOOLEAN:
        valid = json_is_boolean(value);
        *(bool *)member = json_is_true(value);
        break;
    case KIND_LIST:
        *(char ***)member = decode_list(value);
        valid = *(char ***)member != NULL;
        break;
    case KIND_MAIN:
        return format_decode(&MAIN_FORMAT, value, member, error);
    }
    return valid || error_set(error, ERROR_INVALID_ARGUMENT, "'%s' has a wrong value", field->key);
}

static bool check_keys(const struct format *format, json_t *json, struct error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < format->count && !known; i++)
            known = strcmp(format->fields[i].key, key) == 0;
        if (!known)
            return error_set(error, ERROR_INVALID_ARGUMENT, "unknown key '%s'", key);
    }
    return true;
}

static bool format_decode(const struct format *format, json_t *json, void *object,
                          struct error *error)
{
    bool valid =
        json_is_object(json) || error_set(error, ERROR_INVALID_ARGUMENT, "not a JSON object");
    valid = valid && check_keys(format, json, error);
    for (size_t i = 0; i < format->count && valid; i++) {
        const struct field *field = &format->fields[i];
        json_t *value = json_object_get(json, field->key);
        if (value == NULL)
            valid = error_set(error, ERROR_INVALID_ARGUMENT, "'%s' is missing", field->key);
        else
            valid = decode_member(field, value, (char *)object + field->offset, error);
    }
    if (!valid)
        error_prefix(error, "%s", format->name);
    return valid;
}

static bool decode(const struct format *format, const char *text, size_t length, void *object,
                   struct error *error)
{
    wipe_json_memory();
    if (length > LAUNCH_BUNDLE_LIMIT)
        return error_set(error, ERROR_RESOURCE_EXHAUSTED, "%s: larger than %d bytes", format->name,
                         LAUNCH_BUNDLE_LIMIT);
    json_error_t where;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (json == NULL) /* without the parser's words, which quote the input */
        return error_set(error, ERROR_INVALID_ARGUMENT, "%s: not JSON (line %d, column %d)",
                         format->name, where.line, where.column);
    bool valid = format_decode(format, json, object, error);
    json_decref(json);
    if (!valid)
        format_free(format, object);
    return valid;
}

bool launch_read(int descriptor, struct buffer *ret_bundle, struct error *error)
{
    size_t capacity = 64 * 1024, length = 0;
    char *text = memory_allocate(capacity);
    for (;;) {
        ssize_t got = read(descriptor, text + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            bool done = got == 0 || error_set_errno(error, ERROR_INTERNAL, errno,
                                                    "cannot read the launch bundle");
            *ret_bundle = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
            if (done && !buffer_append(ret_bundle, text, length))
                done = error_set(error, ERROR_RESOURCE_EXHAUSTED,
                                 "the launch bundle is larger than %d bytes", LAUNCH_BUNDLE_LIMIT);
            memory_wipe(text, length);
            free(text);
            return done;
        }
        length += (size_t)got;
        if (length == capacity && capacity <= LAUNCH_BUNDLE_LIMIT) {
            char *larger = memory_allocate(capacity * 2);
            memcpy(larger, text, length);
            memory_wipe(text, length);
            free(text);
            text = larger;
            capacity *= 2;
        } else if (length == capacity) {
            length--; /* more than the limit already: only the end is still of interest */
        }
    }
}

/* ---- the three bundles ---- */

bool launch_supervisor_encode(const struct launch_supervisor *launch, struct buffer *buffer,
                              struct error *error)
{
    return encode(&SUPERVISOR_FORMAT, launch, buffer, error);
}

bool launch_supervisor_decode(const char *json, size_t length, struct launch_supervisor *ret_launch,
                              struct error *error)
{
    struct launch_supervisor launch = {0};
    if (!decode(&SUPERVISOR_FORMAT, json, length, &launch, error))
        return false;
    *ret_launch = launch;
    return true;
}

void launch_supervisor_free(struct launch_supervisor *launch)
{
    format_free(&SUPERVISOR_FORMAT, launch);
}

bool launch_runtime_encode(const struct launch_runtime *launch, struct buffer *buffer,
                           struct error *error)
{
    return encode(&RUNTIME_FORMAT, launch, buffer, error);
}

bool launch_runtime_decode(const char *json, size_t length, struct launch_runtime *ret_launch,
                           struct error *error)
{
    struct launch_runtime launch = {0};
    if (!decode(&RUNTIME_FORMAT, json, length, &launch, error))
        return false;
    *ret_launch = launch;
    return true;
}

void launch_runtime_free(struct launch_runtime *launch)
{
    format_free(&RUNTIME_FORMAT, launch);
}

bool launch_runtime_secret_encode(const struct launch_runtime_secret *secret, struct buffer *buffer,
                                  struct error *error)
{
    return encode(&SECRET_FORMAT, secret, buffer, error);
}

bool launch_runtime_secret_decode(const char *json, size_t length,
                                  struct launch_runtime_secret *ret_secret, struct error *error)
{
    struct launch_runtime_secret secret = {0};
    if (!decode(&SECRET_FORMAT, json, length, &secret, error))
        return false;
    *ret_secret = secret;
    return true;
}

void launch_runtime_secret_free(struct launch_runtime_secret *secret)
{
    format_free(&SECRET_FORMAT, secret);
}
