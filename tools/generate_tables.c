/* Makes the method table and the redaction table from a descriptor set (decision W6).
 *
 * usage: generate_tables DESCRIPTOR_SET DIRECTORY
 *
 * protoc-c drops custom options and the streaming flags of methods. Both are in the descriptor set;
 * the options arrive here as unknown fields of MethodOptions and FieldOptions. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/protobuf/descriptor.pb-c.h"
#include "options.pb-c.h"

enum {
    OPTION_AUTHORIZATION = 50000,
    OPTION_SECRET = 50001,
    WIRE_TYPE_VARINT = 0,
    WIRE_TYPE_LENGTH = 2,
    NAME_MAX_LENGTH = 512,
};

struct method {
    char path[NAME_MAX_LENGTH];
    char symbol[NAME_MAX_LENGTH];
    char service[NAME_MAX_LENGTH];
    const Google__Protobuf__MethodDescriptorProto *descriptor;
    Openshell__Options__V1__AuthorizationRule *rule; /* NULL without the option */
};

struct service {
    char name[NAME_MAX_LENGTH];
    size_t first_method; /* in declaration order */
    size_t method_count;
};

/* One secret field. */
struct secret {
    char message[NAME_MAX_LENGTH];
    unsigned field;
};

struct tables {
    struct method *methods;
    size_t method_count;
    struct service *services;
    size_t service_count;
    struct secret *secrets;
    size_t secret_count;
};

_Noreturn static void fail(const char *what, const char *name)
{
    fprintf(stderr, "generate_tables: %s: %s\n", what, name);
    exit(1);
}

static void *grow(void *array, size_t count, size_t size)
{
    void *grown = realloc(array, (count + 1) * size);
    if (grown == NULL)
        fail("out of memory", "tables");
    memset((char *)grown + count * size, 0, size);
    return grown;
}

static void join(char *to, const char *prefix, const char *separator, const char *name)
{
    int length =
        snprintf(to, NAME_MAX_LENGTH, "%s%s%s", prefix, *prefix == '\0' ? "" : separator, name);
    if (length < 0 || length >= NAME_MAX_LENGTH)
        fail("name too long", name);
}

static void *read_file(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "rbe");
    char *data = NULL;
    size_t length = 0, capacity = 0;

    if (file == NULL)
        fail(strerror(errno), path);
    while (!feof(file) && !ferror(file)) {
        if (length == capacity) {
            capacity = capacity == 0 ? 65536 : capacity * 2;
            data = realloc(data, capacity);
            if (data == NULL)
                fail("out of memory", path);
        }
        length += fread(data + length, 1, capacity - length, file);
    }
    if (ferror(file))
        fail("cannot read", path);
    fclose(file);
    *ret_length = length;
    return data;
}

/* The unknown field with this number, or NULL. */
static const ProtobufCMessageUnknownField *find_option(const ProtobufCMessage *options,
                                                       unsigned number, unsigned wire_type)
{
    if (options == NULL)
        return NULL;
    for (unsigned i = 0; i < options->n_unknown_fields; i++)
        if (options->unknown_fields[i].tag == number &&
            (unsigned)options->unknown_fields[i].wire_type == wire_type)
            return &options->unknown_fields[i];
    return NULL;
}

static Openshell__Options__V1__AuthorizationRule *
read_rule(const Google__Protobuf__MethodDescriptorProto *method)
{
    const ProtobufCMessageUnknownField *option = find_option(
        (const ProtobufCMessage *)method->options, OPTION_AUTHORIZATION, WIRE_TYPE_LENGTH);
    if (option == NULL)
        return NULL;
    /* The data begins with its own length as a varint. */
    size_t skip = 0;
    while (skip < option->len && (option->data[skip] & 0x80) != 0)
        skip++;
    if (skip == option->len)
        fail("unreadable authorization option", method->name);
    skip++;
    Openshell__Options__V1__AuthorizationRule *rule =
        openshell__options__v1__authorization_rule__unpack(NULL, option->len - skip,
                                                           option->data + skip);
    if (rule == NULL)
        fail("unreadable authorization option", method->name);
    return rule;
}

static void collect_service(struct tables *tables, const char *package,
                            const Google__Protobuf__ServiceDescriptorProto *descriptor)
{
    tables->services = grow(tables->services, tables->service_count, sizeof(struct service));
    struct service *service = &tables->services[tables->service_count++];
    join(service->name, package, ".", descriptor->name);
    service->first_method = tables->method_count;
    service->method_count = descriptor->n_method;
    for (size_t i = 0; i < descriptor->n_method; i++) {
        tables->methods = grow(tables->methods, tables->method_count, sizeof(struct method));
        struct method *method = &tables->methods[tables->method_count++];
        method->descriptor = descriptor->method[i];
        method->rule = read_rule(method->descriptor);
        join(method->service, "", "", service->name);
        join(method->path, service->name, "/", method->descriptor->name);
        join(method->symbol, service->name, "_", method->descriptor->name);
        for (char *at = method->symbol; *at != '\0'; at++)
            if (*at == '.')
                *at = '_';
    }
}

static void collect_message(struct tables *tables, const char *scope,
                            const Google__Protobuf__DescriptorProto *message)
{
    char name[NAME_MAX_LENGTH];
    join(name, scope, ".", message->name);
    for (size_t i = 0; i < message->n_field; i++) {
        const ProtobufCMessageUnknownField *option = find_option(
            (const ProtobufCMessage *)message->field[i]->options, OPTION_SECRET, WIRE_TYPE_VARINT);
        if (option == NULL || option->len == 0 || option->data[0] == 0)
            continue;
        tables->secrets = grow(tables->secrets, tables->secret_count, sizeof(struct secret));
        struct secret *secret = &tables->secrets[tables->secret_count++];
        join(secret->message, "", "", name);
        secret->field = (unsigned)message->field[i]->number;
    }
    for (size_t i = 0; i < message->n_nested_type; i++)
        collect_message(tables, name, message->nested_type[i]);
}

static int compare_method(const void *left, const void *right)
{
    return strcmp((*(struct method *const *)left)->path, (*(struct method *const *)right)->path);
}

static int compare_service(const void *left, const void *right)
{
    return strcmp(((const struct service *)left)->name, ((const struct service *)right)->name);
}

static int compare_secret(const void *left, const void *right)
{
    const struct secret *one = left, *other = right;
    int order = strcmp(one->message, other->message);
    if (order != 0)
        return order;
    return one->field < other->field ? -1 : one->field > other->field;
}

/* protoc-c's own rule for the symbol of ".package.Message": pieces joined by "__", a capital after
 * a small letter or digit preceded by "_". */
static void print_descriptor_symbol(FILE *out, const char *type_name)
{
    bool was_upper = true;

    for (const char *at = type_name + (*type_name == '.'); *at != '\0'; at++) {
        if (*at == '.') {
            fputs("__", out);
            was_upper = true;
            continue;
        }
        bool upper = isupper((unsigned char)*at);
        if (upper && !was_upper)
            fputc('_', out);
        fputc(tolower((unsigned char)*at), out);
        was_upper = upper;
    }
    fputs("__descriptor", out);
}

static const char *auth_mode_symbol(const struct method *method)
{
    static const struct {
        const char *name, *symbol;
    } modes[] = {
        {"unauthenticated", "RPC_AUTH_UNAUTHENTICATED"},
        {"bearer", "RPC_AUTH_BEARER"},
        {"sandbox", "RPC_AUTH_SANDBOX"},
        {"dual", "RPC_AUTH_DUAL"},
        {"peer", "RPC_AUTH_PEER"},
        {"operator", "RPC_AUTH_OPERATOR"},
    };
    if (method->rule == NULL)
        return "RPC_AUTH_NONE_DECLARED";
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(modes[i].name, method->rule->auth_mode) == 0)
            return modes[i].symbol;
    fail("unknown auth_mode", method->path);
}

/* Roles and scopes are words of the .proto sources; anything that would need escaping is refused.
 */
static const char *word(const struct method *method, const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("_:-.", *at) == NULL)
            fail("odd character in the authorization of", method->path);
    return text;
}

static void print_method(FILE *out, const struct method *method)
{
    const Google__Protobuf__MethodDescriptorProto *descriptor = method->descriptor;
    const Openshell__Options__V1__AuthorizationRule *rule = method->rule;

    fprintf(out, "const struct rpc_method rpc_%s = {\n", method->symbol);
    fprintf(out, "    .path = \"/%s\",\n", method->path);
    fprintf(out, "    .service = \"%s\",\n", method->service);
    fprintf(out, "    .name = \"%s\",\n", descriptor->name);
    fputs("    .request = &", out);
    print_descriptor_symbol(out, descriptor->input_type);
    fputs(",\n    .response = &", out);
    print_descriptor_symbol(out, descriptor->output_type);
    fprintf(out, ",\n    .client_streaming = %s,\n",
            descriptor->client_streaming ? "true" : "false");
    fprintf(out, "    .server_streaming = %s,\n", descriptor->server_streaming ? "true" : "false");
    fprintf(out, "    .auth_mode = %s,\n", auth_mode_symbol(method));
    fprintf(out, "    .workspace_role = \"%s\",\n",
            rule == NULL ? "" : word(method, rule->workspace_role));
    fprintf(out, "    .global_role = \"%s\",\n",
            rule == NULL ? "" : word(method, rule->global_role));
    fprintf(out, "    .scope = \"%s\",\n};\n\n", rule == NULL ? "" : word(method, rule->scope));
}

/* The name of a service as part of a symbol; a static buffer. */
static const char *service_symbol(const struct service *service)
{
    static char symbol[NAME_MAX_LENGTH];

    join(symbol, "", "", service->name);
    for (char *at = symbol; *at != '\0'; at++)
        if (*at == '.')
            *at = '_';
    return symbol;
}

static FILE *open_output(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *out = fopen(path, "we");
    if (out == NULL)
        fail(strerror(errno), path);
    fputs("/* Made by tools/generate_tables from the .proto sources. */\n", out);
    return out;
}

static void close_output(FILE *out, const char *name)
{
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed)
        fail("cannot write", name);
}

static void write_method_header(const struct tables *tables, const char *directory)
{
    FILE *out = open_output(directory, "method_table.h");
    fputs("#ifndef PROTO_METHOD_TABLE_H\n#define PROTO_METHOD_TABLE_H\n\n"
          "#include \"rpc/method.h\"\n\n",
          out);
    for (size_t i = 0; i < tables->method_count; i++)
        fprintf(out, "extern const struct rpc_method rpc_%s;\n", tables->methods[i].symbol);
    fputc('\n', out);
    for (size_t i = 0; i < tables->service_count; i++)
        fprintf(out, "extern const struct rpc_service rpc_service_%s;\n",
                service_symbol(&tables->services[i]));
    fputs("\n#endif\n", out);
    close_output(out, "method_table.h");
}

static void print_service(FILE *out, const struct tables *tables, const struct service *service)
{
    const char *symbol = service_symbol(service);

    fprintf(out, "static const struct rpc_method *const methods_of_%s[] = {\n", symbol);
    for (size_t i = 0; i < service->method_count; i++)
        fprintf(out, "    &rpc_%s,\n", tables->methods[service->first_method + i].symbol);
    fprintf(out,
            "};\n\nconst struct rpc_service rpc_service_%s = {\n    .name = \"%s\",\n"
            "    .methods = methods_of_%s,\n    .method_count = %zu,\n};\n\n",
            symbol, service->name, symbol, service->method_count);
}

static void print_sorted_methods(FILE *out, const struct tables *tables)
{
    const struct method **sorted = calloc(tables->method_count + 1, sizeof(*sorted));
    if (sorted == NULL)
        fail("out of memory", "method table");
    for (size_t i = 0; i < tables->method_count; i++)
        sorted[i] = &tables->methods[i];
    qsort(sorted, tables->method_count, sizeof(*sorted), compare_method);
    fputs("const struct rpc_method *const rpc_methods[] = {\n", out);
    for (size_t i = 0; i < tables->method_count; i++)
        fprintf(out, "    &rpc_%s,\n", sorted[i]->symbol);
    fprintf(out, "    NULL,\n};\nconst size_t rpc_method_count = %zu;\n\n", tables->method_count);
    free(sorted);
}

static void write_method_table(struct tables *tables,
                               const Google__Protobuf__FileDescriptorSet *set,
                               const char *directory)
{
    FILE *out = open_output(directory, "method_table.c");
    fputs("#include \"method_table.h\"\n\n", out);
    for (size_t i = 0; i < set->n_file; i++) {
        const char *name = set->file[i]->name;
        fprintf(out, "#include \"%.*s.pb-c.h\"\n", (int)(strlen(name) - strlen(".proto")), name);
    }
    fputc('\n', out);
    for (size_t i = 0; i < tables->method_count; i++)
        print_method(out, &tables->methods[i]);
    qsort(tables->services, tables->service_count, sizeof(struct service), compare_service);
    for (size_t i = 0; i < tables->service_count; i++)
        print_service(out, tables, &tables->services[i]);
    print_sorted_methods(out, tables);
    fputs("const struct rpc_service *const rpc_services[] = {\n", out);
    for (size_t i = 0; i < tables->service_count; i++)
        fprintf(out, "    &rpc_service_%s,\n", service_symbol(&tables->services[i]));
    fprintf(out, "    NULL,\n};\nconst size_t rpc_service_count = %zu;\n", tables->service_count);
    close_output(out, "method_table.c");
}

static void write_redaction_table(struct tables *tables, const char *directory)
{
    FILE *out = open_output(directory, "redaction_table.h");
    fputs("#ifndef PROTO_REDACTION_TABLE_H\n#define PROTO_REDACTION_TABLE_H\n\n"
          "#include \"rpc/redact.h\"\n\n#endif\n",
          out);
    close_output(out, "redaction_table.h");

    qsort(tables->secrets, tables->secret_count, sizeof(struct secret), compare_secret);
    out = open_output(directory, "redaction_table.c");
    fputs("#include \"redaction_table.h\"\n\nconst struct redact_entry redact_table[] = {\n", out);
    size_t messages = 0;
    for (size_t i = 0; i < tables->secret_count; messages++) {
        const char *message = tables->secrets[i].message;
        size_t count = 0;
        fprintf(out, "    {.message = \"%s\", .fields = (const unsigned[]){", message);
        for (; i < tables->secret_count && strcmp(tables->secrets[i].message, message) == 0; i++)
            fprintf(out, "%s%u", count++ == 0 ? "" : ", ", tables->secrets[i].field);
        fprintf(out, "}, .field_count = %zu},\n", count);
    }
    fprintf(out, "    {.message = NULL},\n};\nconst size_t redact_table_count = %zu;\n", messages);
    close_output(out, "redaction_table.c");
}

static void free_tables(struct tables *tables)
{
    for (size_t i = 0; i < tables->method_count; i++)
        if (tables->methods[i].rule != NULL)
            openshell__options__v1__authorization_rule__free_unpacked(tables->methods[i].rule,
                                                                      NULL);
    free(tables->methods);
    free(tables->services);
    free(tables->secrets);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: generate_tables DESCRIPTOR_SET DIRECTORY\n", stderr);
        return 2;
    }
    size_t length;
    void *data = read_file(argv[1], &length);
    Google__Protobuf__FileDescriptorSet *set =
        google__protobuf__file_descriptor_set__unpack(NULL, length, data);
    free(data);
    if (set == NULL)
        fail("not a descriptor set", argv[1]);

    struct tables tables = {0};
    for (size_t i = 0; i < set->n_file; i++) {
        const Google__Protobuf__FileDescriptorProto *file = set->file[i];
        for (size_t j = 0; j < file->n_service; j++)
            collect_service(&tables, file->package, file->service[j]);
        for (size_t j = 0; j < file->n_message_type; j++)
            collect_message(&tables, file->package, file->message_type[j]);
    }
    write_method_header(&tables, argv[2]);
    write_method_table(&tables, set, argv[2]);
    write_redaction_table(&tables, argv[2]);
    free_tables(&tables);
    google__protobuf__file_descriptor_set__free_unpacked(set, NULL);
    return 0;
}
