#include "supervisor/activity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "boundary/operations.h"

#define TARGET "session"

enum { PROGRAM_MAX = 128 /* bytes of a program's name */ };

void activity_session_opened(const char *channel_id, const Openshell__Ext__V1__SessionStart *start)
{
    bool exec = start->kind == OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_EXEC;
    char program[PROGRAM_MAX + 1] = "";
    if (exec && start->n_command > 0)
        snprintf(program, sizeof(program), "%.*s",
                 (int)(start->command[0].len < PROGRAM_MAX ? start->command[0].len : PROGRAM_MAX),
                 (const char *)start->command[0].data);
    const struct log_field fields[] = {{"channel", channel_id},
                                       {"tty", start->tty ? "true" : "false"},
                                       {program[0] != '\0' ? "program" : NULL, program},
                                       {NULL, NULL}};
    log_write_fields(LOG_LEVEL_INFO, TARGET, fields, "%s",
                     exec ? "an exec begins" : "a client joins the main process");
}

void activity_session_ended(const char *channel_id,
                            const Openshell__Sandbox__Protocol__V1__Exited *exited)
{
    const exchange_exit_status *status = exited->status;
    char number[16] = "";
    const char *key = "unknown";
    if (status != NULL && status->status_case == EXCHANGE_STATUS(EXITED)) {
        key = "code";
        snprintf(number, sizeof(number), "%" PRId32, status->exited);
    } else if (status != NULL && status->status_case == EXCHANGE_STATUS(SIGNALED)) {
        key = "signal";
        snprintf(number, sizeof(number), "%" PRId32, status->signaled);
    }
    const struct log_field fields[] = {{"channel", channel_id},
                                       {key, number[0] != '\0' ? number : "true"},
                                       {exited->timed_out ? "timed_out" : NULL, "true"},
                                       {NULL, NULL}};
    log_write_fields(LOG_LEVEL_INFO, TARGET, fields, "the session ended");
}

void activity_session_refused(const char *channel_id, const char *why)
{
    const struct log_field fields[] = {{"channel", channel_id}, {NULL, NULL}};
    log_write_fields(LOG_LEVEL_WARN, TARGET, fields, "the session was refused: %s", why);
}
