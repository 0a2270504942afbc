/* The sandbox's end of a file copy (decision W3): what an exec with a helper runs in place of a
 * program. It works under every control of an exec and needs nothing of the root, neither a shell
 * nor tar.
 *
 * Its one argument, the path in the sandbox, is the last word of the command; the words before are
 * the tar line that a gateway without helpers runs, and are not read. Where the word before the
 * last is COPY_HELPER_ESCAPED, the path is written with each byte that is no printable ASCII
 * character, and the percent sign, as %XX: words are UTF-8, and names of files are not.
 *   COPY_RECEIVE  reads an archive from standard input; the path is the DEST of an upload
 *   COPY_SEND     writes an archive to standard output; the path is the source of a download
 * A relative path is relative to the working directory of the exec, and a source lies within it.
 *
 * What is left out or refused is named on standard error, a line for each, and the reason of a
 * failure is the last line. SIGTERM, SIGINT and SIGHUP cancel: nothing stays behind. */
#ifndef RUNTIME_COPY_HELPER_H
#define RUNTIME_COPY_HELPER_H

#include <stddef.h>

enum copy_helper { COPY_NONE, COPY_RECEIVE, COPY_SEND }; /* as ExecHelper in extensions.proto */

/* Exit codes. */
enum {
    COPY_EXIT_WHOLE = 0,
    COPY_EXIT_FAILED = 1,     /* nothing got its final name */
    COPY_EXIT_INCOMPLETE = 3, /* something was left out, the rest arrived */
};

#define COPY_HELPER_ESCAPED "--percent-escaped"

/* Copies; returns the exit code. */
int copy_helper_run(enum copy_helper helper, const char *const *words, size_t count);

#endif
