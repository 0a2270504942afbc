#include "client/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

json_t *document_text(const char *text)
{
    if (text == NULL)
        return json_null();
    if (text_is_utf8(text, strlen(text)))
        return json_string_nocheck(text);
    CLEANUP_FREE char *escaped = text_escaped(text);
    return json_string_nocheck(escaped);
}

/* Prints JSON text. Outside ASCII it only has string contents, so a character that is not harmless
 * can be written as its escape; JSON's own escapes cover the controls of ASCII except DEL. */
static void print_json(json_t *document, size_t flags, FILE *stream)
{
    CLEANUP_FREE char *text = json_dumps(document, flags | JSON_ENCODE_ANY);
    if (text == NULL)
        memory_exhausted();
    size_t length = strlen(text);
    for (size_t i = 0; i < length;) {
        uint32_t character;
        size_t size = text_decode(text + i, length - i, &character);
        if (size == 0) {
            size = 1;
            character = 0xFFFD;
        }
        if (text_is_harmless(character) || character == '\n')
            fwrite(text + i, 1, size, stream);
        else
            fprintf(stream, "\\u%04X", character);
        i += size;
    }
}

void document_print_line(json_t *document, FILE *stream)
{
    print_json(document, JSON_COMPACT, stream);
    fputc('\n', stream);
    json_decref(document);
}

/* ---- YAML ---- */

/* Words that YAML 1.1 or 1.2 reads as something else than a string. */
static bool is_yaml_word(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n",   NULL};
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Text that needs no quotes: begins with a letter or a slash and has nothing special in it. */
static bool is_plain_yaml(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/";
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "/_.-";
    return text[0] != '\0' && strchr(letters, text[0]) != NULL &&
           strspn(text, inside) == strlen(text) && !is_yaml_word(text);
}

static void print_yaml_text(const char *text, FILE *stream)
{
    if (is_plain_yaml(text)) {
        fputs(text, stream);
        return;
    }
    /* A double-quoted YAML string takes every escape that JSON has. */
    json_t *string = json_string_nocheck(text);
    print_json(string, 0, stream);
    json_decref(string);
}

static void print_yaml(json_t *value, int indent, FILE *stream);

static bool is_block(const json_t *value)
{
    return json_object_size(value) > 0 || json_array_size(value) > 0;
}

static void print_yaml_object(json_t *object, int indent, FILE *stream)
{
    const char *key;
    json_t *member;
    bool first = true;
    json_object_foreach(object, key, member)
    {
        if (!first)
            fprintf(stream, "%*s", indent, "");
        first = false;
        print_yaml_text(key, stream);
        fputc(':', stream);
        if (is_block(member)) {
            /* A list stands below its key without further indentation. */
            int inner = json_is_array(member) ? indent : indent + 2;
            fprintf(stream, "\n%*s", inner, "");
            print_yaml(member, inner, stream);
        } else {
            fputc(' ', stream);
            print_yaml(member, indent, stream);
        }
    }
}

/* Prints from the current column, which is `indent` for a block, and ends the line. */
static void print_yaml(json_t *value, int indent, FILE *stream)
{
    size_t index;
    json_t *element;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        if (json_object_size(value) == 0)
            fputs("{}\n", stream);
        else
            print_yaml_object(value, indent, stream);
        return;
    case JSON_ARRAY:
        if (json_array_size(value) == 0)
            fputs("[]\n", stream);
        json_array_foreach(value, index, element)
        {
            fprintf(stream, "%*s- ", index > 0 ? indent : 0, "");
            print_yaml(element, indent + 2, stream);
        }
        return;
    case JSON_STRING:
        print_yaml_text(json_string_value(value), stream);
        break;
    default:
        print_json(value, 0, stream);
    }
    fputc('\n', stream);
}

void document_print(json_t *document, enum output_format format, FILE *stream)
{
    if (format == OUTPUT_YAML) {
        print_yaml(document, 0, stream);
        json_decref(document);
        return;
    }
    print_json(document, JSON_INDENT(2), stream);
    fputc('\n', stream);
    json_decref(document);
}
