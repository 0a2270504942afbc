/* Ways out of a sandbox, each a function; what isolation-attempts is made of. */
#ifndef ISOLATION_ATTEMPTS_H
#define ISOLATION_ATTEMPTS_H

#include <stdbool.h>
#include <sys/types.h>

enum attempt_flags {
    CONTROL = 1,        /* succeeds for root without a sandbox */
    MAY_BE_MISSING = 2, /* ENOENT will do too */
    ALONE = 4,          /* ends a session; not in the list */
    NEEDS_USR = 8,      /* needs what only root can prepare */
    ANY = -1,
};

struct attempt {
    const char *name;
    int (*attempt)(void); /* 0 when it succeeded, else an errno */
    int expected;         /* errno */
    int expected_user;    /* where the sandbox is an ordinary user's; 0: the same, ANY: whatever */
    int flags;
};

/* Each ends with an empty entry. */
extern const struct attempt ATTEMPTS_FILES[];
extern const struct attempt ATTEMPTS_SOCKETS[];
extern const struct attempt ATTEMPTS_PROCESSES[];
extern const struct attempt ATTEMPTS_RIGHTS[];
extern const struct attempt ATTEMPTS_KERNEL[];

/* The errno of a failed call, or 0. */
int attempt_outcome(long result);
/* A variable of the environment; without it the program ends with 3. */
const char *attempt_need(const char *name);
int attempt_open(const char *path, int flags);
/* Opens and reads a byte: some files of /proc only refuse the reading. */
int attempt_read(const char *path);

/* Makes what the attempts look for on the host below `directory` and, with `usr`, a socket below
 * /usr; prints its names as NAME=VALUE lines, and takes it away at the end of standard input.
 * Returns the exit code. */
int attempts_host(const char *directory, bool usr);

/* Runs a command in which one system call fails: "NUMBER ERRNO COMMAND...". For kernels that lack
 * something. Returns the exit code when it cannot. */
int attempts_deny(char **arguments);

#endif
