#include "rpc/redact.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { DEPTH_MAX = 64 };

/* Text of at most REDACT_TEXT_MAX bytes; what does not fit is dropped and remembered. */
struct sink {
    char text[REDACT_TEXT_MAX];
    size_t length;
    bool full;
};

static int compare_entry(const void *name, const void *entry)
{
    return strcmp(name, ((const struct redact_entry *)entry)->message);
}

bool redact_is_secret(const ProtobufCMessageDescriptor *descriptor, unsigned field_number)
{
    const struct redact_entry *entry = bsearch(descriptor->name, redact_table, redact_table_count,
                                               sizeof(redact_table[0]), compare_entry);
    for (size_t i = 0; entry != NULL && i < entry->field_count; i++)
        if (entry->fields[i] == field_number)
            return true;
    return false;
}

static void put(struct sink *sink, const char *text)
{
    /* Room for the dots and the NUL stays free. */
    size_t room = sizeof(sink->text) - 4 - sink->length;
    size_t length = strlen(text);

    if (sink->full)
        return;
    if (length > room) {
        sink->full = true;
        length = room;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(sink->text + sink->length, text, length);
    sink->length += length;
    if (sink->full) {
        memcpy(sink->text + sink->length, "...", 3);
        sink->length += 3;
    }
}

__attribute__((format(printf, 2, 3))) static void put_format(struct sink *sink, const char *format,
                                                             ...)
{
    char piece[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(piece, sizeof(piece), format, arguments);
    va_end(arguments);
    put(sink, piece);
}

static void put_string(struct sink *sink, const char *text)
{
    char escaped[REDACT_TEXT_MAX];

    text_escape(text == NULL ? "" : text, escaped, sizeof(escaped));
    put(sink, "\"");
    put(sink, escaped);
    put(sink, "\"");
}

static void put_message(struct sink *sink, const ProtobufCMessage *message, unsigned depth);

static void put_enum(struct sink *sink, const ProtobufCEnumDescriptor *descriptor, int value)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(descriptor, value);

    if (known != NULL)
        put(sink, known->name);
    else
        put_format(sink, "%d", value);
}

static size_t element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static void put_value(struct sink *sink, const ProtobufCFieldDescriptor *field, const void *value,
                      unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        put_format(sink, "%" PRId32, *(const int32_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        put_format(sink, "%" PRIu32, *(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_format(sink, "%" PRId64, *(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        put_format(sink, "%" PRIu64, *(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        put_format(sink, "%g", (double)*(const float *)value);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        put_format(sink, "%g", *(const double *)value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        put(sink, *(const protobuf_c_boolean *)value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(sink, field->descriptor, *(const int *)value);
        break;
    case PROTOBUF_C_TYPE_STRING:
        put_string(sink, *(char *const *)value);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        put_format(sink, "<%zu bytes>", ((const ProtobufCBinaryData *)value)->len);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(sink, *(ProtobufCMessage *const *)value, depth + 1);
        break;
    }
}

/* Whether the field has a value that is worth showing. */
static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    const void *value = base + field->offset;

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)(base + field->quantifier_offset) > 0;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return *(const uint32_t *)(base + field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(ProtobufCMessage *const *)value != NULL;
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(char *const *)value;
        return text != NULL && *text != '\0';
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)value)->len > 0;
    static const char zero[8];
    return memcmp(value, zero, element_size(field->type)) != 0;
}

static void put_field(struct sink *sink, const ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, unsigned depth)
{
    const char *base = (const char *)message;

    put(sink, field->name);
    put(sink, ": ");
    if (redact_is_secret(message->descriptor, field->id)) {
        put(sink, "<secret>");
        return;
    }
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        put_value(sink, field, base + field->offset, depth);
        return;
    }
    size_t count = *(const size_t *)(base + field->quantifier_offset);
    if (strcmp(field->name, "environment") == 0) {
        /* Not marked as secret, but where people put their keys. */
        put_format(sink, "<%zu variables>", count);
        return;
    }
    const char *elements = *(char *const *)(base + field->offset);
    put(sink, "[");
    for (size_t i = 0; i < count && !sink->full; i++) {
        put(sink, i == 0 ? "" : ", ");
        put_value(sink, field, elements + i * element_size(field->type), depth);
    }
    put(sink, "]");
}

static void put_message(struct sink *sink, const ProtobufCMessage *message, unsigned depth)
{
    bool first = true;

    if (message == NULL || depth > DEPTH_MAX) {
        put(sink, "...");
        return;
    }
    put(sink, "{");
    for (unsigned i = 0; i < message->descriptor->n_fields && !sink->full; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!is_set(message, field))
            continue;
        put(sink, first ? "" : ", ");
        first = false;
        put_field(sink, message, field, depth);
    }
    put(sink, "}");
}

char *redact_text(const ProtobufCMessage *message)
{
    struct sink *sink = memory_new_of(struct sink);

    put_message(sink, message, 0);
    char *text = memory_strdup(sink->text);
    free(sink);
    return text;
}
