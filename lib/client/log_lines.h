/* Log lines of sandboxes as `logs` shows them (command-line reference 3.9). Whatever a line holds,
 * nothing of it acts on a terminal. */
#ifndef CLIENT_LOG_LINES_H
#define CLIENT_LOG_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "proto/openshell.pb-c.h"

/* "[1764545474.123] [sandbox] [INFO ] [startup] message key=value", keys in order; a value with
 * spaces, quotes or nothing in it stands in quotes. */
void log_line_print(const Openshell__V1__SandboxLogLine *line, bool colours, FILE *stream);
/* Owned by the caller. */
json_t *log_line_document(const Openshell__V1__SandboxLogLine *line);

/* "30s", "5m" or "2h" in seconds. A usage error otherwise. */
bool log_since_parse(const char *text, int64_t *ret_seconds, struct error *error);

#endif
