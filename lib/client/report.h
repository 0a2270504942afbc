/* What a command says beside its result, on standard error. */
#ifndef CLIENT_REPORT_H
#define CLIENT_REPORT_H

#include <stdbool.h>

#include "base/error.h"

/* Prints the error in words, or as one JSON object with code, reason, message and hint when JSON
 * output was asked for (decision P15). */
void report_error(const struct error *error);

/* "openshell: ..." for people; nothing when JSON was asked for. The arguments are escaped: text
 * from outside may be passed as it is. */
void report_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether nobody reads standard output any more. */
bool report_reader_gone(void);

#endif
