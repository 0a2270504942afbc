/* The main process: waits for its end and tells the gateway, however long that takes (behaviour
 * reference 1.4). */
#ifndef SUPERVISOR_MAIN_PROCESS_H
#define SUPERVISOR_MAIN_PROCESS_H

#include "supervisor/boundary.h"
#include "supervisor/gateway_link.h"

enum {
    /* The gateway may have to see the session first. */
    FINALIZE_ATTEMPTS_LIMIT = 20,
    /* What is reported when nobody knows the code: never 0 (decision P8). */
    MAIN_EXIT_CODE_UNKNOWN = 255,

    /* The end is final once whoever is attached has the output and the result. A sandbox whose
     * creator announced that it attaches is kept for it: */
    DELIVERY_FIRST_MILLISECONDS = 30 * 1000, /* for the first attachment, */
    DELIVERY_AGAIN_MILLISECONDS = 10 * 1000, /* and for the next one after the last was lost. */
    /* One that is attached and takes no output for so long is not waited for any more. */
    DELIVERY_STALL_MILLISECONDS = 3600 * 1000,
};

struct main_process;

/* Starts to wait. Everything given outlives it. */
struct main_process *main_process_follow(struct reactor *reactor, struct gateway_link *link,
                                         struct running_boundary *running,
                                         const struct launch_supervisor *launch,
                                         const char *instance_id);
/* The gateway has a session with this supervisor: what there is to report may be reported. */
void main_process_session_accepted(struct main_process *process);

/* Attachments, as relays_events has them. */
void main_process_attached(struct main_process *process);
void main_process_output_taken(struct main_process *process);
void main_process_attachment_ended(struct main_process *process, bool settled);

#endif
