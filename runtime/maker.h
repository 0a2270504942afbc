/* The process-maker: process 1 of a sandbox's namespaces, and the only one that makes processes
 * there. It is forked before the runtime reads a secret or starts a thread (decision B12), builds
 * the root (B6, B13 to B16) and then obeys requests on one socket, which is also the death link
 * (B11): its end of file ends every process of the sandbox.
 *
 * This header is the runtime's side: everything here runs in the runtime, on its loop. */
#ifndef RUNTIME_MAKER_H
#define RUNTIME_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/reactor.h"
#include "runtime/copy_helper.h"

/* What a sandbox is made of: known before any policy. Not secret. Strings belong to the caller and
 * are copied by maker_spawn. */
struct maker_config {
    const char *sandbox_name;    /* becomes the host name */
    const char *state_directory; /* absolute, ours, 0700: var, run, tmp, home, sandbox, etc, rootfs
                                    below it survive stop and start */
    const char *cache_directory; /* absolute, ours: the /etc skeleton shared by all sandboxes */
    const char *from_directory;  /* NULL: composed root; else a root to copy at the first start */
    uid_t host_id_base;          /* root: first of 65,536 host ids; 0 for an ordinary user */
    unsigned process_limit;      /* tasks in the sandbox, at least 16 */
};

struct maker;

/* Forks the process-maker into new user, mount, pid, network, ipc, uts and cgroup namespaces and
 * writes its id maps. Call while the process has one thread and no secret. The root is being built
 * when this returns. FAILED_PRECONDITION names a kernel feature that is missing and what to do. */
struct maker *maker_spawn(const struct maker_config *config, struct error *error);

/* Called on the loop. `error` is NULL when the request succeeded and is owned by the maker. */
typedef void (*maker_done)(struct maker *maker, const struct error *error, void *user);

struct maker_events {
    /* The root stands; called once. With an error the sandbox cannot be used. */
    maker_done on_ready;
    /* The process-maker ended and with it every process of the sandbox. Called once, last. */
    void (*on_gone)(struct maker *maker, void *user);
    void *user;
};

/* Connects the maker to the loop. Events are delivered from here on. */
bool maker_watch(struct maker *maker, struct reactor *reactor, const struct maker_events *events,
                 struct error *error);

/* The controls of a policy, as far as the kernel enforces them. Copied. */
struct maker_policy {
    const char *const *read_only;
    size_t read_only_count;
    const char *const *read_write;
    size_t read_write_count;
    bool include_workdir;
    bool landlock_required;   /* landlock.compatibility: hard_requirement */
    bool has_filesystem;      /* false: the default of the policy reference 1.11 applies */
    const char *run_as_user;  /* "" : 1000; else "sandbox" or a decimal number */
    const char *run_as_group; /* likewise */
};

/* Prepares the controls and forks the main process, which applies every one of them and waits
 * before execve (decision B9). FAILED_PRECONDITION when the kernel cannot enforce what the policy
 * demands, or an identity cannot be had. `on_warning` is called, before `done`, for each thing that
 * is weaker than asked for (best_effort). Once. */
void maker_attach(struct maker *maker, const struct maker_policy *policy,
                  void (*on_warning)(const char *text, void *user), maker_done done, void *user);

/* What was measured on the waiting main process (policy reference 2, isolation IB-26, decision B9).
 * Every `bool` is a reading from the kernel, not an intention. */
struct maker_evidence {
    bool user_namespace, mount_namespace, pid_namespace, network_namespace, ipc_namespace,
        uts_namespace, cgroup_namespace; /* differs from the runtime's own */
    int landlock_abi;                    /* of the rules in force; 0: there are none, as a warning
                                            said */
    bool landlock_denies; /* a probe in the same domain was refused a path the policy withholds */
    bool seccomp_filter;  /* Seccomp: 2 in its status */
    bool seccomp_denies;  /* a probe call was refused with the expected errno */
    bool no_new_privileges;
    bool no_capabilities; /* permitted, effective, inheritable, bounding and ambient are empty */
    bool loopback_only;
    bool not_dumpable_core; /* RLIMIT_CORE is 0/0 */
    bool death_link;        /* the process-maker holds the other end of the link */
    uid_t user_id;          /* inside the sandbox */
    gid_t group_id;
    uid_t host_user_id;
    gid_t host_group_id;
    gid_t supplementary_groups[32]; /* host ids that could not be dropped (decision B15) */
    size_t supplementary_group_count;
    char process_limit_mechanism[32]; /* "rlimit" or "none" */
    unsigned process_limit;
    char root_kind[16];     /* "composed" or "copied" */
    char usr_mechanism[16]; /* "overlay" or "bind" */
};

/* Measures. `ret_evidence` is filled before `done` is called without an error. */
void maker_measure(struct maker *maker, struct maker_evidence *ret_evidence, maker_done done,
                   void *user);

/* One process tree with a reaper of its own (decision P8). */
struct maker_session;

struct maker_exit {
    enum { MAKER_EXITED, MAKER_SIGNALED, MAKER_UNKNOWN } kind;
    int value;        /* exit code or signal number */
    char reason[128]; /* for MAKER_UNKNOWN: why, for a person */
};

struct maker_session_events {
    /* execve succeeded, or the reason why it did not (the exit follows as 127 or 126). */
    void (*on_started)(struct maker_session *session, const struct error *error, void *user);
    /* The process that was asked for ended. Once; never without a kernel's word for the code. */
    void (*on_exit)(struct maker_session *session, const struct maker_exit *status, void *user);
    /* Every process of the tree is gone; the session may be closed. Once, after on_exit. */
    void (*on_empty)(struct maker_session *session, void *user);
};

struct maker_session_spec {
    const char *const *argv; /* bytes but NUL; argv[0] not empty. Empty list: login shell */
    size_t argc;
    const char *const *environment; /* NAME=VALUE, over the sandbox's own */
    size_t environment_count;
    const char *workdir; /* "": /sandbox, or the root's home */
    bool terminal;
    unsigned columns, rows;
    bool login_shell;        /* decision P3 */
    enum copy_helper helper; /* runs in place of a program, and reads its argument from argv */
};

/* Starts an exec. Input, output and error are pipes (or one terminal) whose other ends the caller
 * takes with maker_session_take. RESOURCE_EXHAUSTED over 64 kept sessions.
 * NULL, with an error, when nothing was started. */
struct maker_session *maker_exec(struct maker *maker, const struct maker_session_spec *spec,
                                 const struct maker_session_events *events, void *user,
                                 struct error *error);

/* Lets the main process, which waits since maker_attach, execute. Once. */
struct maker_session *maker_start_main(struct maker *maker, const struct maker_session_spec *spec,
                                       const struct maker_session_events *events, void *user,
                                       struct error *error);

/* The runtime's ends, non-blocking, close-on-exec; the caller owns what it takes, -1 afterwards or
 * where there is none. With a terminal, input and output are the same open terminal and error is
 * -1; the terminal becomes available with on_started. */
int maker_session_take_input(struct maker_session *session);
int maker_session_take_output(struct maker_session *session);
int maker_session_take_error(struct maker_session *session);

/* Sends a signal to the process that was asked for (its group on a terminal). */
void maker_session_signal(struct maker_session *session, int number);
/* TERM to the whole tree, KILL after `grace_milliseconds` (0: at once), setsid'd children too.
 * on_exit and on_empty follow within grace plus 5 s, with an unknown status when they must. */
void maker_session_kill(struct maker_session *session, unsigned grace_milliseconds);
/* Forgets a session; kills the tree when it is not empty. */
void maker_session_close(struct maker_session *session);
/* Its number inside the sandbox's pid namespace, 0 before it started. */
pid_t maker_session_process(const struct maker_session *session);

/* Ends every process of the sandbox: TERM to all sessions, KILL after the grace, then the
 * process-maker itself. on_gone follows within grace plus 5 s. */
void maker_terminate(struct maker *maker, unsigned grace_milliseconds);

/* Only after on_gone, or before maker_watch (then it kills and waits). NULL is allowed. */
void maker_free(struct maker *maker);

#endif
