/* The runtime's side of the process-maker: what maker.c, maker_session.c and evidence.c share. */
#ifndef RUNTIME_MAKER_INTERNAL_H
#define RUNTIME_MAKER_INTERNAL_H

#include "runtime/maker.h"
#include "runtime/maker_protocol.h"
#include "runtime/places.h"

struct maker {
    struct places places;
    unsigned process_limit; /* the one that is enforced */
    pid_t copier; /* copies a root at the first start, before the process-maker builds; 0: none */
    int copier_link; /* its answer, and what ends it */
    struct reactor_watch *copier_watch;
    char *warnings[4]; /* of the copier, told at attach; owned */
    size_t warning_count;
    bool can_switch; /* root: the workload has a host id of its own */
    pid_t process;   /* of the process-maker, here */
    int pidfd;
    int control;
    struct reactor *reactor;
    struct reactor_watch *control_watch;
    struct reactor_watch *process_watch;
    struct reactor_timer *end_timer; /* TERM to KILL, then KILL to giving up */
    struct maker_events events;
    bool ready, gone, ending, killed;

    struct root_facts root;
    struct control_facts controls;
    uid_t host_user_id; /* of the workload, by the kernel's word */
    gid_t host_group_id;

    maker_done attach_done;
    void *attach_user;
    void (*on_warning)(const char *text, void *user);
    bool attach_requested, attached;

    maker_done measure_done;
    void *measure_user;
    struct maker_evidence *evidence; /* the caller's, while measuring */
    bool measure_ponged, measure_answered;
    struct main_facts main_facts;

    struct maker_session *main;
    struct maker_session *sessions; /* all, main included */
    size_t session_count;
};

struct maker_session {
    struct maker *maker;
    struct maker_session *next;
    struct maker_session_events events;
    void *user;
    int socket;
    struct reactor_watch *watch;
    struct reactor_timer *kill_timer;
    int kill_stage;
    int input, output, error;                      /* the runtime's ends */
    pid_t reaper;                                  /* inside */
    pid_t process;                                 /* inside */
    pid_t host_process;                            /* of the child, here */
    bool requested;                                /* a program was asked for */
    bool prepared, started, failed, exited, empty; /* failed: never started */
    bool terminal;
    unsigned references;
    bool closed;
};

/* ---- maker.c ---- */
/* The main process is prepared, or could not be. */
void maker_main_prepared(struct maker *maker, const struct error *error);
void maker_main_measured(struct maker *maker, const struct message *message);
/* A session became empty: an end that waits for that goes on. */
void maker_session_emptied(struct maker *maker);

/* ---- maker_session.c ---- */
/* A session with a socket that is watched; `ret_other_end` is the reaper's end. */
struct maker_session *session_new(struct maker *maker, int *ret_other_end, struct error *error);
/* Reads what is there, then tells that nothing more will come: the process-maker is gone. */
void session_finish(struct maker_session *session, const char *reason);

/* ---- maker_copier.c ---- */
/* Forks a process that copies the root, with the caller's rights over files. */
bool copier_start(struct maker *maker, const struct maker_config *config, struct error *error);
/* Ends it if it still works. */
void copier_stop(struct maker *maker);
/* Takes one message of it. MESSAGE_READY ends it, with an error or without; MESSAGE_WARNING. */
enum message_result copier_receive(struct maker *maker, struct message *ret_message);

/* ---- evidence.c ---- */
/* Reads from the kernel what is known about the waiting main process. */
bool evidence_collect(const struct maker *maker, struct maker_evidence *ret_evidence,
                      struct error *error);

#endif
