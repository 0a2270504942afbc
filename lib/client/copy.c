#include "client/copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/copy_progress.h"
#include "client/exec_session.h"
#include "client/failure.h"
#include "client/interrupt.h"
#include "client/last_sandbox.h"
#include "client/report.h"

enum {
    REMOTE_TEXT_MAX = 64 * 1024, /* bytes kept of what the other end says */
    REMOTE_INCOMPLETE = 3,       /* the helper's exit code when something was left out */
    WORDS_MAX = 8,
};

#define PERCENT_ESCAPED "--percent-escaped" /* runtime/copy_helper.h */

struct session {
    struct copy *copy;
    struct exec_session exec;
    char *remote_text;
    size_t remote_length;
    bool local_whole; /* the sending child said so */
};

/* The words of a file name are UTF-8 on the wire, and file names need not be. */
static char *escaped_path(const char *path)
{
    char *escaped = memory_new(3 * strlen(path) + 1), *to = escaped;
    for (const unsigned char *from = (const unsigned char *)path; *from != '\0'; from++)
        if (*from > 0x20 && *from < 0x7f && *from != '%')
            *to++ = (char)*from;
        else
            to += sprintf(to, "%%%02X", *from);
    return escaped;
}

/* The line that a gateway without helpers would run, and in it what our helper reads: the last
 * word. */
static size_t make_words(const struct copy *copy, struct arena *arena, char **words)
{
    static const char RECEIVE[] = "mkdir -p -- \"$1\" && exec tar -xf - -C \"$1\"";
    size_t count = 0;
    if (copy->direction == ARCHIVE_UPLOAD) {
        words[count++] = arena_strdup(arena, "sh");
        words[count++] = arena_strdup(arena, "-c");
        words[count++] = arena_strdup(arena, RECEIVE);
        words[count++] = arena_strdup(arena, "openshell-upload");
    } else {
        words[count++] = arena_strdup(arena, "tar");
        words[count++] = arena_strdup(arena, "-cf");
        words[count++] = arena_strdup(arena, "-");
        words[count++] = arena_strdup(arena, "--");
    }
    size_t length = strlen(copy->path);
    bool plain = text_is_utf8(copy->path, length) && strpbrk(copy->path, "\r\n") == NULL;
    CLEANUP_FREE char *escaped = plain ? NULL : escaped_path(copy->path);
    if (!plain)
        words[count++] = arena_strdup(arena, PERCENT_ESCAPED);
    words[count++] = arena_strdup(arena, plain ? copy->path : escaped);
    return count;
}

static void take_errors(const void *data, size_t length, void *user)
{
    struct session *session = user;
    size_t room = REMOTE_TEXT_MAX - session->remote_length;
    length = length < room ? length : room;
    memcpy(session->remote_text + session->remote_length, data, length);
    session->remote_length += length;
}

/* The sending child closed its end: only when it is content, the other end may take what it got. */
static bool input_is_whole(void *user)
{
    struct session *session = user;
    session->local_whole = copy_child_wait(&session->copy->child, NULL).good;
    return session->local_whole;
}

/* What the other end said, a line a notice, but for the last line when it is the error. */
static void report_remote(struct session *session, bool failed, char **ret_last)
{
    session->remote_text[session->remote_length] = '\0';
    for (size_t i = 0; i < session->remote_length; i++)
        if (session->remote_text[i] == '\0')
            session->remote_text[i] = '?';
    *ret_last = NULL;
    char *rest = session->remote_text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line == '\0')
            continue;
        if (failed && (rest == NULL || *rest == '\0'))
            *ret_last = line;
        else
            report_notice("%s", line);
    }
}

static void set_incomplete(const struct copy *copy, struct error *error)
{
    failure_set(error, CLIENT_REASON_COPY_INCOMPLETE,
                "not everything of '%s' was copied; the rest arrived", copy->shown);
}

/* The word of both ends. */
static int result_of(struct session *session, int code, const struct copy_result *local,
                     const struct error *local_error, struct error *error)
{
    struct copy *copy = session->copy;
    bool interrupted = interrupt_number() != 0;
    char *last;
    report_remote(session, session->exec.exited && code != 0 && code != REMOTE_INCOMPLETE, &last);
    copy_child_report(&copy->child);
    if (interrupted)
        return EXIT_SIGNALLED + interrupt_number();
    if (!session->exec.exited && copy->direction == ARCHIVE_UPLOAD && !local->good) {
        error_clear(error);
        failure_set(error, CLIENT_REASON_COPY_FAILED, "cannot copy '%s': %s", copy->shown,
                    local_error->message);
        return -1;
    }
    if (code < 0)
        return -1;
    if (code != 0 && code != REMOTE_INCOMPLETE) {
        failure_set(error, CLIENT_REASON_COPY_FAILED, "cannot copy '%s': %s", copy->shown,
                    last != NULL ? last : "the other end failed without a word");
        return -1;
    }
    if (!local->good) {
        failure_set(error, CLIENT_REASON_COPY_FAILED, "cannot copy '%s': %s", copy->shown,
                    local_error->message);
        return -1;
    }
    if (code == REMOTE_INCOMPLETE || local->incomplete) {
        set_incomplete(copy, error);
        return -1;
    }
    return EXIT_SUCCESS;
}

static void fill_start(struct session *session, struct connection *connection, char **words,
                       Openshell__V1__ExecSandboxRequest *start)
{
    struct copy *copy = session->copy;
    openshell__v1__exec_sandbox_request__init(start);
    start->sandbox = (char *)copy->sandbox;
    start->workspace_scope = &connection->workspace;
    start->command = words;
    start->n_command = make_words(copy, connection->arena, words);
    start->no_login_shell = true;
    start->explicit_stdin_eof = true;
    start->helper = copy->direction == ARCHIVE_UPLOAD
                        ? OPENSHELL__EXT__V1__EXEC_HELPER__EXEC_HELPER_ARCHIVE_RECEIVE
                        : OPENSHELL__EXT__V1__EXEC_HELPER__EXEC_HELPER_ARCHIVE_SEND;
}

/* Ends the child: with everything it needs, or cancelled. */
static struct copy_result finish_child(struct session *session, int code, struct error *error)
{
    struct copy_child *child = &session->copy->child;
    bool remote_content = code == 0 || code == REMOTE_INCOMPLETE;
    if (!remote_content || (session->copy->direction == ARCHIVE_UPLOAD && !session->local_whole))
        copy_child_cancel(child);
    copy_child_close_stream(child);
    return copy_child_wait(child, error);
}

static int run(struct session *session, struct connection *connection, struct error *error)
{
    struct copy *copy = session->copy;
    bool upload = copy->direction == ARCHIVE_UPLOAD;
    char *words[WORDS_MAX];
    Openshell__V1__ExecSandboxRequest start;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    session->exec =
        (struct exec_session){.input_descriptor = upload ? copy->child.stream : nothing,
                              .output_descriptor = upload ? nothing : copy->child.stream,
                              .take_errors = take_errors,
                              .input_is_whole = upload ? input_is_whole : NULL,
                              .user = session};
    if (!connection->ours) {
        failure_set(error, CLIENT_REASON_COPY_FAILED, "this gateway cannot copy files");
        return -1;
    }
    if (!exec_session_open(&session->exec, connection, error))
        return -1;
    fill_start(session, connection, words, &start);
    struct copy_progress *progress = copy_progress_start(connection->reactor, copy);
    exec_session_run(&session->exec, &start);
    copy_progress_stop(progress);
    return exec_session_result(&session->exec, copy->sandbox, error);
}

int copy_run_on(struct copy *copy, struct connection *connection, struct error *error)
{
    struct session session = {.copy = copy, .remote_text = memory_new(REMOTE_TEXT_MAX + 1)};
    struct error local_error = {0};
    int code = run(&session, connection, error);
    struct copy_result local = finish_child(&session, code, &local_error);
    if (session.exec.exited)
        last_sandbox_note(connection->gateway.name, copy->sandbox);
    code = result_of(&session, code, &local, &local_error, error);
    if (code == EXIT_SUCCESS && isatty(STDERR_FILENO))
        copy_progress_summary(copy, &local);
    error_clear(&local_error);
    free(session.remote_text);
    return code;
}

int copy_run(struct copy *copy, struct error *error)
{
    struct connection connection;
    if (connection_open(&connection, CONNECTION_START, error)) {
        copy->sandbox = last_sandbox_or(copy->sandbox, connection.gateway.name, error);
        if (copy->sandbox != NULL)
            return copy_run_on(copy, &connection, error);
    }
    copy_child_cancel(&copy->child);
    copy_child_close_stream(&copy->child);
    copy_child_wait(&copy->child, NULL);
    return -1;
}
