/* Structured output: JSON and YAML from one tree (command-line reference 1.7). */
#ifndef CLIENT_DOCUMENT_H
#define CLIENT_DOCUMENT_H

#include <jansson.h>
#include <stdio.h>

#include "client/settings.h"

/* Prints the tree with a newline at its end: two-space JSON or block YAML, keys in the order in
 * which they were set. What could act on a terminal is escaped within the strings. Consumes the
 * reference. */
void document_print(json_t *document, enum output_format format, FILE *stream);

/* One line of JSON, for an error. Consumes the reference. */
void document_print_line(json_t *document, FILE *stream);

/* A string; JSON null for NULL. Bytes that are no UTF-8 are shown escaped. */
json_t *document_text(const char *text);

#endif
