/* Holds the compiled messages to the published contract, row by row (decision W1).
 *
 * usage: check_contract DESCRIPTOR_SET ADDITIONS TABLE...
 *
 * The tables and the additions are tab-separated: kind, package, container, name, number, label,
 * type, oneof, options. The rows that the descriptor set stands for must be exactly those of the
 * tables and the additions together. A `package` row among the additions says that a whole package
 * is ours and not compared. Since protoc-c knows no optional fields of proto3, a one-member oneof
 * whose row says optional counts as optional. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "google/protobuf/descriptor.pb-c.h"
#include "options.pb-c.h"

typedef Google__Protobuf__DescriptorProto Message;
typedef Google__Protobuf__FieldDescriptorProto Field;
typedef Google__Protobuf__EnumDescriptorProto Enum;
typedef Google__Protobuf__ServiceDescriptorProto Service;
typedef Google__Protobuf__FileDescriptorProto File;

enum { OPTION_AUTHORIZATION = 50000, OPTION_SECRET = 50001, FILE_MAX = 4 * 1024 * 1024 };

/* Rows, each an owned string without trailing tabs. */
struct rows {
    char **items;
    size_t count;
};

static struct rows expected, actual;

static void add_row(struct rows *rows, char *row)
{
    size_t length = strlen(row);
    while (length > 0 && row[length - 1] == '\t')
        row[--length] = '\0';
    rows->items = memory_resize(rows->items, (rows->count + 1) * sizeof(char *));
    rows->items[rows->count++] = row;
}

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i]);
    free(rows->items);
}

static bool has_row(const struct rows *rows, const char *row)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->items[i], row) == 0)
            return true;
    return false;
}

static bool read_file(const char *path, struct buffer *buffer)
{
    struct error error = {0};
    if (file_read(path, buffer, &error) && buffer->length > 0)
        return true;
    fprintf(stderr, "check_contract: %s: %s\n", path,
            error.code == ERROR_OK ? "is empty" : error.message);
    error_clear(&error);
    buffer_free(buffer);
    return false;
}

/* ---- what is expected ---- */

static bool read_rows(const char *path)
{
    struct buffer text = BUFFER_INIT(FILE_MAX);
    if (!read_file(path, &text))
        return false;
    char *rest = (char *)text.data, *line;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0' && line[0] != '#' && strncmp(line, "kind\t", 5) != 0)
            add_row(&expected, memory_strdup(line));
    buffer_free(&text);
    return true;
}

static bool is_compared(const char *package)
{
    CLEANUP_FREE char *ours = memory_printf("package\t%s", package);
    return strncmp(package, "google.", 7) != 0 && !has_row(&expected, ours);
}

/* ---- what there is ---- */

static const char *without_dot(const char *type_name)
{
    return type_name[0] == '.' ? type_name + 1 : type_name;
}

/* The type of a field that is no map, as the tables write it. */
static const char *type_text(const Field *field)
{
    static const char *const names[] = {
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_DOUBLE] = "double",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FLOAT] = "float",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_INT64] = "int64",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_UINT64] = "uint64",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_INT32] = "int32",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FIXED64] = "fixed64",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FIXED32] = "fixed32",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BOOL] = "bool",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING] = "string",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BYTES] = "bytes",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_UINT32] = "uint32",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SFIXED32] = "sfixed32",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SFIXED64] = "sfixed64",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SINT32] = "sint32",
        [GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SINT64] = "sint64",
    };
    if (field->type_name != NULL && field->type_name[0] != '\0')
        return without_dot(field->type_name);
    size_t type = (size_t)field->type;
    return type < sizeof(names) / sizeof(names[0]) && names[type] != NULL ? names[type] : "?";
}

/* The entry type when the field is a map, else NULL. */
static const Message *map_entry(const Message *message, const Field *field)
{
    const char *name = field->type_name == NULL ? NULL : strrchr(field->type_name, '.');
    if (name == NULL ||
        field->label != GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED)
        return NULL;
    for (size_t i = 0; i < message->n_nested_type; i++) {
        const Message *nested = message->nested_type[i];
        if (nested->options != NULL && nested->options->map_entry &&
            strcmp(nested->name, name + 1) == 0)
            return nested;
    }
    return NULL;
}

/* "secret", "", or "?" for options that no row can stand for. */
static const char *field_options(const Field *field)
{
    const ProtobufCMessage *options = (const ProtobufCMessage *)field->options;
    if (options == NULL)
        return "";
    bool secret = options->n_unknown_fields == 1 &&
                  options->unknown_fields[0].tag == OPTION_SECRET &&
                  options->unknown_fields[0].len == 1 && options->unknown_fields[0].data[0] == 1;
    /* The tag takes three bytes. */
    return secret && protobuf_c_message_get_packed_size(options) == 4 ? "secret" : "?";
}

static size_t oneof_members(const Message *message, int32_t index)
{
    size_t count = 0;
    for (size_t i = 0; i < message->n_field; i++)
        count += message->field[i]->has_oneof_index && message->field[i]->oneof_index == index;
    return count;
}

static void add_field(const char *kind, const char *package, const char *container,
                      const Message *message, const Field *field)
{
    bool repeated = field->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED;
    const Message *entry = message == NULL ? NULL : map_entry(message, field);
    CLEANUP_FREE char *type =
        entry == NULL
            ? memory_strdup(type_text(field))
            : memory_printf("map<%s,%s>", type_text(entry->field[0]), type_text(entry->field[1]));
    CLEANUP_FREE char *start = memory_printf("%s\t%s\t%s\t%s\t%" PRId32, kind, package, container,
                                             field->name, field->number);
    CLEANUP_FREE char *optional =
        memory_printf("%s\toptional\t%s\t\t%s", start, type, field_options(field));
    size_t length = strlen(optional);
    while (optional[length - 1] == '\t')
        optional[--length] = '\0';
    bool in_oneof = message != NULL && field->has_oneof_index;
    if (in_oneof && (field->proto3_optional || (oneof_members(message, field->oneof_index) == 1 &&
                                                has_row(&expected, optional)))) {
        add_row(&actual, memory_strdup(optional));
        return;
    }
    add_row(&actual,
            memory_printf("%s\t%s\t%s\t%s\t%s", start, repeated && entry == NULL ? "repeated" : "",
                          type, in_oneof ? message->oneof_decl[field->oneof_index]->name : "",
                          field_options(field)));
}

static void add_enum(const char *package, const char *scope, const Enum *type)
{
    for (size_t i = 0; i < type->n_value; i++)
        add_row(&actual, memory_printf("enum\t%s\t%s%s\t%s\t%" PRId32, package, scope, type->name,
                                       type->value[i]->name, type->value[i]->number));
    for (size_t i = 0; i < type->n_reserved_range; i++)
        add_row(&actual, memory_printf("reserved\t%s\t%s%s\t\t%" PRId32 "-%" PRId32, package, scope,
                                       type->name, type->reserved_range[i]->start,
                                       type->reserved_range[i]->end));
}

static void add_message(const char *package, const char *scope, const Message *message)
{
    CLEANUP_FREE char *name = memory_printf("%s%s", scope, message->name);
    CLEANUP_FREE char *inner = memory_printf("%s.", name);

    if (message->n_field == 0)
        add_row(&actual, memory_printf("message\t%s\t%s", package, name));
    for (size_t i = 0; i < message->n_field; i++)
        add_field("field", package, name, message, message->field[i]);
    for (size_t i = 0; i < message->n_reserved_range; i++)
        add_row(&actual, memory_printf("reserved\t%s\t%s\t\t%" PRId32 "-%" PRId32, package, name,
                                       message->reserved_range[i]->start,
                                       message->reserved_range[i]->end - 1));
    for (size_t i = 0; i < message->n_reserved_name; i++)
        add_row(&actual,
                memory_printf("reserved\t%s\t%s\t%s", package, name, message->reserved_name[i]));
    for (size_t i = 0; i < message->n_enum_type; i++)
        add_enum(package, inner, message->enum_type[i]);
    for (size_t i = 0; i < message->n_nested_type; i++)
        if (message->nested_type[i]->options == NULL ||
            !message->nested_type[i]->options->map_entry)
            add_message(package, inner, message->nested_type[i]);
}

static char *append_option(char *text, const char *name, const char *value)
{
    if (value[0] == '\0')
        return text;
    char *longer = memory_printf("%s%s: \"%s\" ", text, name, value);
    free(text);
    return longer;
}

/* The authorization of a method as the tables write it; owned by the caller. */
static char *authorization_text(const Google__Protobuf__MethodDescriptorProto *method)
{
    const ProtobufCMessage *options = (const ProtobufCMessage *)method->options;
    if (options == NULL)
        return memory_strdup("");
    /* The length of what follows is one byte: the rules are short. */
    if (options->n_unknown_fields != 1 || options->unknown_fields[0].tag != OPTION_AUTHORIZATION ||
        options->unknown_fields[0].len < 1 || options->unknown_fields[0].data[0] > 0x7F)
        return memory_strdup("?");
    Openshell__Options__V1__AuthorizationRule *rule =
        openshell__options__v1__authorization_rule__unpack(NULL, options->unknown_fields[0].len - 1,
                                                           options->unknown_fields[0].data + 1);
    if (rule == NULL)
        return memory_strdup("?");
    char *text = memory_strdup("[openshell.options.v1.authorization] { ");
    text = append_option(text, "auth_mode", rule->auth_mode);
    text = append_option(text, "workspace_role", rule->workspace_role);
    text = append_option(text, "global_role", rule->global_role);
    text = append_option(text, "scope", rule->scope);
    openshell__options__v1__authorization_rule__free_unpacked(rule, NULL);
    char *whole = memory_printf("%s}", text);
    free(text);
    return whole;
}

static void add_service(const char *package, const Service *service)
{
    for (size_t i = 0; i < service->n_method; i++) {
        const Google__Protobuf__MethodDescriptorProto *method = service->method[i];
        CLEANUP_FREE char *authorization = authorization_text(method);
        add_row(&actual,
                memory_printf("rpc\t%s\t%s\t%s\t\t%s/%s\t%s -> %s\t%s", package, service->name,
                              method->name, method->client_streaming ? "stream" : "unary",
                              method->server_streaming ? "stream" : "unary",
                              without_dot(method->input_type), without_dot(method->output_type),
                              authorization));
    }
}

static void add_file(const File *file)
{
    if (!is_compared(file->package))
        return;
    for (size_t i = 0; i < file->n_message_type; i++)
        add_message(file->package, "", file->message_type[i]);
    for (size_t i = 0; i < file->n_enum_type; i++)
        add_enum(file->package, "", file->enum_type[i]);
    for (size_t i = 0; i < file->n_service; i++)
        add_service(file->package, file->service[i]);
    for (size_t i = 0; i < file->n_extension; i++)
        add_field("extension", file->package, without_dot(file->extension[i]->extendee), NULL,
                  file->extension[i]);
}

static bool read_descriptors(const char *path)
{
    struct buffer data = BUFFER_INIT(FILE_MAX);
    if (!read_file(path, &data))
        return false;
    Google__Protobuf__FileDescriptorSet *set =
        google__protobuf__file_descriptor_set__unpack(NULL, data.length, data.data);
    buffer_free(&data);
    if (set == NULL) {
        fprintf(stderr, "check_contract: %s: not a descriptor set\n", path);
        return false;
    }
    for (size_t i = 0; i < set->n_file; i++)
        add_file(set->file[i]);
    google__protobuf__file_descriptor_set__free_unpacked(set, NULL);
    return true;
}

/* ---- the comparison ---- */

static int compare_rows(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void sort_rows(struct rows *rows)
{
    if (rows->count > 0)
        qsort(rows->items, rows->count, sizeof(char *), compare_rows);
}

/* Prints every difference; returns how many. */
static size_t report_differences(void)
{
    size_t i = 0, j = 0, differences = 0;

    sort_rows(&expected);
    sort_rows(&actual);
    while (i < expected.count || j < actual.count) {
        int order = i == expected.count ? 1
                    : j == actual.count ? -1
                                        : strcmp(expected.items[i], actual.items[j]);
        if (order == 0) {
            i++, j++;
        } else if (order > 0) {
            printf("not in the contract: %s\n", actual.items[j++]);
            differences++;
        } else if (strncmp(expected.items[i], "package\t", 8) == 0) {
            i++;
        } else {
            printf("missing: %s\n", expected.items[i++]);
            differences++;
        }
    }
    return differences;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: check_contract DESCRIPTOR_SET ADDITIONS TABLE...\n", stderr);
        return 2;
    }
    bool read = true;
    for (int i = 2; i < argc; i++)
        read = read_rows(argv[i]) && read;
    read = read && read_descriptors(argv[1]);
    size_t differences = read ? report_differences() : 1;
    if (read)
        printf("%zu rows, %zu differences\n", actual.count, differences);
    free_rows(&expected);
    free_rows(&actual);
    return differences == 0 ? 0 : 1;
}
