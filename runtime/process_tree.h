/* The processes below one process, found by their parents' numbers in /proc. */
#ifndef RUNTIME_PROCESS_TREE_H
#define RUNTIME_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process_tree {
    pid_t *processes; /* owned */
    size_t count;
    bool blind; /* there may be more, which could not be looked at */
};

enum process_tree_result {
    PROCESS_TREE_EMPTY, /* nothing was left to kill */
    PROCESS_TREE_KILLED,
    /* This process may open no files any more. A workload of the same user can see to that with
     * prlimit. */
    PROCESS_TREE_BLIND,
};

/* Lists what descends from `ancestor`, without itself and without `spared` (their descendants
 * included in what is left out). `proc` is a descriptor of /proc. Zombies are not listed. */
struct process_tree process_tree_list(int proc, pid_t ancestor, const pid_t *spared,
                                      size_t spared_count);
void process_tree_free(struct process_tree *tree);

/* Sends a signal to each. A process may end and its number be used again between the listing and
 * this, but only by another process of the same sandbox whose ancestor calls this, or by a new
 * session's; the caller starts none meanwhile. */
void process_tree_signal(const struct process_tree *tree, int number);

/* Kills all that descends from `ancestor`: everything is stopped first, until a listing finds
 * nothing new, so that nothing forks away. */
enum process_tree_result process_tree_kill(int proc, pid_t ancestor, const pid_t *spared,
                                           size_t spared_count);

#endif
