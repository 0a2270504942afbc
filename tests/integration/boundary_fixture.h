/* A real supervisor and a real runtime, started as the local driver starts them, under a gateway
 * that is a stand-in: it runs in the test, admits what it is asked to, and opens relays. */
#ifndef TESTS_INTEGRATION_BOUNDARY_FIXTURE_H
#define TESTS_INTEGRATION_BOUNDARY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/reactor.h"
#include "base/uuid.h"
#include "boundary/launch.h"
#include "boundary/owner_lock.h"
#include "boundary/session_token.h"
#include "openshell.pb-c.h"
#include "rpc/rpc.h"
#include "rpc/tls_stream.h"

enum { FIXTURE_REPORTS_LIMIT = 16, FIXTURE_PATIENCE_MILLISECONDS = 30 * 1000 };

struct fixture_report {
    int state;
    bool refused_before_start;
    char expected_instance_id[64];
    char instance_id[64];
    uint32_t policy_version;
};

/* One exec through a relay. Zero-initialise; fixture_exec_free. */
struct fixture_exec {
    struct fixture *fixture;
    struct fixture_exec *next;
    char channel_id[UUID_SIZE];
    struct rpc_call *call;
    struct buffer output;
    struct buffer error_output;
    bool unread; /* frames are left lying */
    bool started;
    bool done;     /* exit, error, or the relay's end */
    int exit_case; /* of SessionExit, or 0 */
    int code;      /* exit code or signal number */
    bool timed_out;
    bool output_held;
    int error_code; /* of an error frame, a refusal or a lost relay */
    char error_message[256];
};

struct fixture {
    char directory[64];
    struct reactor *reactor;
    struct rpc_runtime *rpc;
    struct rpc_server *server;
    int gateway_listener;
    struct reactor_watch *gateway_watch;
    struct rpc_connection *connection;

    struct launch_supervisor supervisor;
    struct launch_runtime runtime;
    struct session_token_key *key;
    struct tls_identity *identity;
    pid_t supervisor_process, runtime_process;
    char supervisor_lock[96], runtime_lock[96];

    /* What the stand-in gateway answers. */
    Openshell__Sandbox__V1__SandboxPolicy policy;
    bool not_admitted;
    unsigned abort_accepted; /* so many ACCEPTED reports are answered with ABORTED */

    /* What it saw. */
    struct fixture_report reports[FIXTURE_REPORTS_LIMIT];
    size_t report_count;
    unsigned configs_fetched;
    struct rpc_call *session;
    unsigned sessions;
    uint64_t epoch;
    char session_instance[64];
    bool main_exited, main_finalized;
    int main_code;

    struct fixture_exec *execs;
    bool timed_out;
};

int fixture_set_up(void **state);
int fixture_tear_down(void **state);

/* Starts both processes; `command` is the main process's, NULL-terminated. May be changed before:
 * the members supervisor, runtime and policy. */
void fixture_launch(struct fixture *fixture, char **command);
/* fixture_launch, and waits for the session. */
void fixture_start(struct fixture *fixture, char **command);
/* Listens again after fixture_gateway_down. */
void fixture_gateway_up(struct fixture *fixture);
void fixture_gateway_down(struct fixture *fixture);

/* Sends a relay for an exec of `argv` (NULL-terminated) without a login shell. `change` may alter
 * what is sent. */
void fixture_exec_begin(struct fixture *fixture, struct fixture_exec *exec, char **argv,
                        void (*change)(Openshell__Ext__V1__SessionStart *start));
void fixture_exec_send(struct fixture_exec *exec, const Openshell__Ext__V1__SessionFrame *frame);
void fixture_exec_input(struct fixture_exec *exec, const void *data, size_t length);
void fixture_exec_end_input(struct fixture_exec *exec);
void fixture_exec_read(struct fixture_exec *exec); /* goes on after `unread` */
/* fixture_exec_begin with input that is empty from the start, and waits for its end. */
void fixture_exec_run(struct fixture *fixture, struct fixture_exec *exec, char **argv);
void fixture_exec_free(struct fixture_exec *exec);

/* Waits for both processes; fills in what their lock files say and their wait statuses. */
struct fixture_end {
    struct owner_lock supervisor, runtime;
    int supervisor_status, runtime_status;
};
void fixture_wait_end(struct fixture *fixture, struct fixture_end *ret_end);

#define FIXTURE_RUN_UNTIL(fixture, condition)                                                      \
    do {                                                                                           \
        fixture_patience_begin(fixture);                                                           \
        while (!(condition) && !(fixture)->timed_out)                                              \
            reactor_run_once((fixture)->reactor);                                                  \
        fixture_patience_end(fixture);                                                             \
        if (!(condition))                                                                          \
            fail_msg("waited too long for: %s", #condition);                                       \
    } while (0)
void fixture_patience_begin(struct fixture *fixture);
void fixture_patience_end(struct fixture *fixture);

#endif
