#include "client/policy_document.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/document.h"

typedef Openshell__Sandbox__V1__NetworkEndpoint network_endpoint;
typedef Openshell__Sandbox__V1__L7Allow matcher; /* L7DenyRule has the same fields */
typedef Openshell__Sandbox__V1__L7DenyRule deny_matcher;

/* ---- members that are left out when they say nothing ---- */

static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_size(value) + json_array_size(value) > 0)
        json_object_set_new(object, key, value);
    else
        json_decref(value);
}

static void put_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_object_set_new(object, key, document_text(text));
}

static void put_flag(json_t *object, const char *key, bool value)
{
    if (value)
        json_object_set_new(object, key, json_true());
}

static void put_number(json_t *object, const char *key, int64_t value)
{
    if (value != 0)
        json_object_set_new(object, key, json_integer(value));
}

static void put_texts(json_t *object, const char *key, char *const *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, document_text(texts[i]));
    put(object, key, list);
}

static void put_word(json_t *object, const char *key, const char *const *words, size_t count,
                     unsigned value)
{
    if (value < count)
        put_text(object, key, words[value]);
}

#define PUT_WORD(object, key, words, value)                                                        \
    put_word(object, key, words, sizeof(words) / sizeof((words)[0]), value)

/* ---- google.protobuf.Struct ---- */

enum { STRUCT_DEPTH_MAX = 64 /* as deep as a message may be (decision W5) */ };

static json_t *struct_document(const Google__Protobuf__Struct *from, int depth);

static json_t *value_document(const Google__Protobuf__Value *value, int depth)
{
    if (value == NULL || depth > STRUCT_DEPTH_MAX)
        return json_null();
    switch (value->kind_case) {
    case GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE: {
        double number = value->number_value;
        bool whole = number >= -9007199254740992.0 && number <= 9007199254740992.0 &&
                     (double)(json_int_t)number == number;
        json_t *real = whole ? json_integer((json_int_t)number) : json_real(number);
        return real != NULL ? real : json_null();
    }
    case GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE:
        return document_text(value->string_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE:
        return json_boolean(value->bool_value);
    case GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE:
        return struct_document(value->struct_value, depth + 1);
    case GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE: {
        json_t *list = json_array();
        for (size_t i = 0; i < value->list_value->n_values; i++)
            json_array_append_new(list, value_document(value->list_value->values[i], depth + 1));
        return list;
    }
    default:
        return json_null();
    }
}

static json_t *struct_document(const Google__Protobuf__Struct *from, int depth)
{
    json_t *object = json_object();
    for (size_t i = 0; from != NULL && i < from->n_fields; i++)
        json_object_set_new(object, from->fields[i]->key,
                            value_document(from->fields[i]->value, depth + 1));
    return object;
}

/* ---- matchers ---- */

static json_t *query_value(const Openshell__Sandbox__V1__L7QueryMatcher *value)
{
    if (value == NULL)
        return json_null();
    if (value->n_any == 0)
        return document_text(value->glob);
    json_t *object = json_object();
    put_texts(object, "any", value->any, value->n_any);
    return object;
}

/* `tool` is short for one glob over the parameter "name". */
static void put_params(json_t *object, const matcher *from)
{
    json_t *params = json_object();
    for (size_t i = 0; i < from->n_params; i++) {
        const Openshell__Sandbox__V1__L7QueryMatcher *value = from->params[i]->value;
        if (strcmp(from->params[i]->key, "name") == 0 && value != NULL && value->n_any == 0)
            put_text(object, "tool", value->glob);
        else
            json_object_set_new(params, from->params[i]->key, query_value(value));
    }
    put(object, "params", params);
}

static json_t *matcher_document(const matcher *from)
{
    json_t *object = json_object(), *query = json_object();
    put_text(object, "method", from->method);
    put_text(object, "path", from->path);
    put_text(object, "command", from->command);
    for (size_t i = 0; i < from->n_query; i++)
        json_object_set_new(query, from->query[i]->key, query_value(from->query[i]->value));
    put(object, "query", query);
    put_text(object, "operation_type", from->operation_type);
    put_text(object, "operation_name", from->operation_name);
    put_texts(object, "fields", from->fields, from->n_fields);
    put_params(object, from);
    return object;
}

static json_t *deny_document(const deny_matcher *from)
{
    matcher same = OPENSHELL__SANDBOX__V1__L7_ALLOW__INIT;
    same.method = from->method;
    same.path = from->path;
    same.command = from->command;
    same.n_query = from->n_query;
    same.query = (Openshell__Sandbox__V1__L7Allow__QueryEntry **)from->query;
    same.operation_type = from->operation_type;
    same.operation_name = from->operation_name;
    same.n_fields = from->n_fields;
    same.fields = from->fields;
    same.n_params = from->n_params;
    same.params = (Openshell__Sandbox__V1__L7Allow__ParamsEntry **)from->params;
    return matcher_document(&same);
}

/* ---- endpoints ---- */

static void put_ports(json_t *object, const network_endpoint *from)
{
    if (from->n_ports <= 1) {
        put_number(object, "port", from->n_ports == 1 ? from->ports[0] : from->port);
        return;
    }
    json_t *ports = json_array();
    for (size_t i = 0; i < from->n_ports; i++)
        json_array_append_new(ports, json_integer(from->ports[i]));
    put(object, "ports", ports);
}

static void put_rules(json_t *object, const network_endpoint *from)
{
    json_t *rules = json_array(), *denied = json_array();
    for (size_t i = 0; i < from->n_rules; i++) {
        json_t *rule = json_object();
        if (from->rules[i]->allow != NULL)
            json_object_set_new(rule, "allow", matcher_document(from->rules[i]->allow));
        json_array_append_new(rules, rule);
    }
    for (size_t i = 0; i < from->n_deny_rules; i++)
        json_array_append_new(denied, deny_document(from->deny_rules[i]));
    put(object, "rules", rules);
    put(object, "deny_rules", denied);
}

static void put_graphql(json_t *object, const network_endpoint *from)
{
    json_t *operations = json_object();
    for (size_t i = 0; i < from->n_graphql_persisted_queries; i++) {
        const Openshell__Sandbox__V1__GraphqlOperation *operation =
            from->graphql_persisted_queries[i]->value;
        json_t *entry = json_object();
        if (operation != NULL) {
            put_text(entry, "operation_type", operation->operation_type);
            put_text(entry, "operation_name", operation->operation_name);
            put_texts(entry, "fields", operation->fields, operation->n_fields);
        }
        json_object_set_new(operations, from->graphql_persisted_queries[i]->key, entry);
    }
    put_text(object, "persisted_queries", from->persisted_queries);
    put(object, "graphql_persisted_queries", operations);
    put_number(object, "graphql_max_body_bytes", from->graphql_max_body_bytes);
}

/* Strict names are the default, so only their absence says something. */
static void put_rpc(json_t *object, const network_endpoint *from)
{
    bool is_mcp = strcasecmp(from->protocol, "mcp") == 0;
    json_t *mcp = json_object(), *json_rpc = json_object();
    put_number(is_mcp ? mcp : json_rpc, "max_body_bytes", from->json_rpc_max_body_bytes);
    const Openshell__Sandbox__V1__McpOptions *options = from->mcp;
    if (options != NULL) {
        if (options->strict_tool_names_presence_case ==
            OPENSHELL__SANDBOX__V1__MCP_OPTIONS__STRICT_TOOL_NAMES_PRESENCE_STRICT_TOOL_NAMES)
            json_object_set_new(mcp, "strict_tool_names", json_boolean(options->strict_tool_names));
        if (options->allow_all_known_mcp_methods_presence_case ==
            OPENSHELL__SANDBOX__V1__MCP_OPTIONS__ALLOW_ALL_KNOWN_MCP_METHODS_PRESENCE_ALLOW_ALL_KNOWN_MCP_METHODS)
            put_flag(mcp, "allow_all_known_mcp_methods", options->allow_all_known_mcp_methods);
        put_texts(mcp, "versions", options->versions, options->n_versions);
    }
    put(object, "mcp", mcp);
    put(object, "json_rpc", json_rpc);
}

static json_t *endpoint_document(const network_endpoint *from)
{
    static const char *const tls[] = {"", "skip", "terminate", "passthrough"};
    static const char *const enforcement[] = {"", "enforce", "audit"};
    static const char *const access[] = {"", "read-only", "read-write", "full"};
    json_t *object = json_object();
    put_text(object, "host", from->host);
    put_ports(object, from);
    put_text(object, "path", from->path);
    put_text(object, "protocol", from->protocol);
    PUT_WORD(object, "tls", tls, from->tls);
    PUT_WORD(object, "enforcement", enforcement, from->enforcement);
    PUT_WORD(object, "access", access, from->access);
    put_texts(object, "allowed_ips", from->allowed_ips, from->n_allowed_ips);
    put_rules(object, from);
    put_flag(object, "allow_encoded_slash", from->allow_encoded_slash);
    put_graphql(object, from);
    put_flag(object, "websocket_credential_rewrite", from->websocket_credential_rewrite);
    put_flag(object, "request_body_credential_rewrite", from->request_body_credential_rewrite);
    put_text(object, "credential_signing", from->credential_signing);
    put_text(object, "signing_service", from->signing_service);
    put_text(object, "signing_region", from->signing_region);
    put_rpc(object, from);
    json_t *binding = json_object();
    if (from->credential_binding != NULL)
        put_text(binding, "provider", from->credential_binding->provider);
    put(object, "credential_binding", binding);
    put_flag(object, "allow_uninspected_credentials", from->allow_uninspected_credentials);
    return object;
}

/* ---- rules and sections ---- */

/* A name that only repeats the key is left out. */
static void put_name(json_t *object, const char *key, const char *name)
{
    if (strcmp(key, name) != 0)
        put_text(object, "name", name);
}

static json_t *rule_document(const char *key, const Openshell__Sandbox__V1__NetworkPolicyRule *from)
{
    json_t *object = json_object(), *endpoints = json_array(), *binaries = json_array();
    put_name(object, key, from->name);
    for (size_t i = 0; i < from->n_endpoints; i++)
        json_array_append_new(endpoints, endpoint_document(from->endpoints[i]));
    for (size_t i = 0; i < from->n_binaries; i++) {
        json_t *binary = json_object();
        put_text(binary, "path", from->binaries[i]->path);
        json_array_append_new(binaries, binary);
    }
    put(object, "endpoints", endpoints);
    put(object, "binaries", binaries);
    return object;
}

static json_t *middleware_document(const char *key,
                                   const Openshell__Sandbox__V1__NetworkMiddlewareConfig *from)
{
    json_t *object = json_object(), *endpoints = json_object();
    put_name(object, key, from->name);
    put_text(object, "middleware", from->middleware);
    put(object, "config", struct_document(from->config, 0));
    put_text(object, "on_error", from->on_error);
    if (from->endpoints != NULL) {
        put_texts(endpoints, "include", from->endpoints->include, from->endpoints->n_include);
        put_texts(endpoints, "exclude", from->endpoints->exclude, from->endpoints->n_exclude);
    }
    put(object, "endpoints", endpoints);
    put_number(object, "order", from->order);
    return object;
}

/* A section that is there stays there, empty or not: its absence means something else. */
static void put_static_sections(json_t *document,
                                const Openshell__Sandbox__V1__SandboxPolicy *policy)
{
    json_t *section;
    if (policy->filesystem != NULL) {
        section = json_object();
        put_flag(section, "include_workdir", policy->filesystem->include_workdir);
        put_texts(section, "read_only", policy->filesystem->read_only,
                  policy->filesystem->n_read_only);
        put_texts(section, "read_write", policy->filesystem->read_write,
                  policy->filesystem->n_read_write);
        json_object_set_new(document, "filesystem_policy", section);
    }
    if (policy->landlock != NULL) {
        section = json_object();
        put_text(section, "compatibility", policy->landlock->compatibility);
        json_object_set_new(document, "landlock", section);
    }
    if (policy->process != NULL) {
        section = json_object();
        put_text(section, "run_as_user", policy->process->run_as_user);
        put_text(section, "run_as_group", policy->process->run_as_group);
        json_object_set_new(document, "process", section);
    }
}

json_t *policy_document(const Openshell__Sandbox__V1__SandboxPolicy *policy)
{
    json_t *document = json_object(), *rules = json_object(), *middlewares = json_object();
    json_object_set_new(document, "version", json_integer(policy->version));
    put_static_sections(document, policy);
    for (size_t i = 0; i < policy->n_network_policies; i++)
        if (policy->network_policies[i]->value != NULL)
            json_object_set_new(rules, policy->network_policies[i]->key,
                                rule_document(policy->network_policies[i]->key,
                                              policy->network_policies[i]->value));
    for (size_t i = 0; i < policy->n_network_middlewares; i++)
        if (policy->network_middlewares[i]->value != NULL)
            json_object_set_new(middlewares, policy->network_middlewares[i]->key,
                                middleware_document(policy->network_middlewares[i]->key,
                                                    policy->network_middlewares[i]->value));
    put(document, "network_policies", rules);
    put(document, "network_middlewares", middlewares);
    return document;
}
