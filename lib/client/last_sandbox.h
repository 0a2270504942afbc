/* The sandbox that a person used last, for commands that name none (command-line reference 1.10).
 * Kept for each gateway and workspace; a record that cannot be kept is no failure. */
#ifndef CLIENT_LAST_SANDBOX_H
#define CLIENT_LAST_SANDBOX_H

#include "client/command.h"

void last_sandbox_note(const char *gateway, const char *sandbox);
/* Removes the record when it names this sandbox. */
void last_sandbox_forget(const char *gateway, const char *sandbox);

/* `given`, or the record with a notice; NULL with an error that says what to do. Newly allocated.
 */
char *last_sandbox_or(const char *given, const char *gateway, struct error *error);

#endif
