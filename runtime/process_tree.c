#include "runtime/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum { STOP_PASSES = 16 };

struct entry {
    pid_t process;
    pid_t parent;
    bool zombie;
    bool wanted;
};

struct table {
    struct entry *entries;
    size_t count;
    bool blind;
};

/* Reads the parent and the state out of /proc/PID/stat. The name in it may hold anything. */
static bool read_entry(int proc, const char *name, struct entry *ret_entry)
{
    char path[32];
    char text[512];
    snprintf(path, sizeof(path), "%s/stat", name);
    int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    char state;
    int parent;
    if (after == NULL || sscanf(after + 1, " %c %d", &state, &parent) != 2)
        return false;
    *ret_entry = (struct entry){
        .process = atoi(name), .parent = parent, .zombie = state == 'Z' || state == 'X'};
    return true;
}

static int compare_entries(const void *left, const void *right)
{
    pid_t one = ((const struct entry *)left)->process;
    pid_t other = ((const struct entry *)right)->process;
    return (one > other) - (one < other);
}

static struct table read_table(int proc)
{
    struct table table = {0};
    size_t capacity = 0;
    int directory = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = directory >= 0 ? fdopendir(directory) : NULL;
    table.blind = stream == NULL;
    struct dirent *item;
    while (stream != NULL && (item = readdir(stream)) != NULL) {
        struct entry entry;
        if (item->d_name[0] < '1' || item->d_name[0] > '9' || strlen(item->d_name) > 10)
            continue;
        errno = 0;
        if (!read_entry(proc, item->d_name, &entry)) {
            table.blind |= errno == EMFILE;
            continue;
        }
        if (table.count == capacity) {
            capacity = capacity != 0 ? capacity * 2 : 64;
            table.entries = memory_resize(table.entries, capacity * sizeof(entry));
        }
        table.entries[table.count++] = entry;
    }
    if (stream != NULL)
        closedir(stream);
    if (table.count > 0)
        qsort(table.entries, table.count, sizeof(struct entry), compare_entries);
    return table;
}

static bool is_among(pid_t process, const pid_t *processes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (processes[i] == process)
            return true;
    return false;
}

static struct entry *find_entry(const struct table *table, pid_t process)
{
    struct entry key = {.process = process};
    return table->count == 0
               ? NULL
               : bsearch(&key, table->entries, table->count, sizeof(key), compare_entries);
}

/* Marks descendants until a round marks none; a child usually has a higher number than its parent,
 * so two rounds do. */
static void mark(struct table *table, pid_t ancestor, const pid_t *spared, size_t spared_count)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < table->count; i++) {
            struct entry *entry = &table->entries[i];
            if (entry->wanted || is_among(entry->process, spared, spared_count))
                continue;
            const struct entry *parent =
                entry->parent == ancestor ? NULL : find_entry(table, entry->parent);
            entry->wanted = entry->parent == ancestor || (parent != NULL && parent->wanted);
            changed = changed || entry->wanted;
        }
    }
}

struct process_tree process_tree_list(int proc, pid_t ancestor, const pid_t *spared,
                                      size_t spared_count)
{
    struct table table = read_table(proc);
    mark(&table, ancestor, spared, spared_count);
    struct process_tree tree = {.processes = memory_new(sizeof(pid_t) * (table.count + 1)),
                                .blind = table.blind};
    for (size_t i = 0; i < table.count; i++)
        if (table.entries[i].wanted && !table.entries[i].zombie)
            tree.processes[tree.count++] = table.entries[i].process;
    free(table.entries);
    return tree;
}

void process_tree_free(struct process_tree *tree)
{
    free(tree->processes);
    *tree = (struct process_tree){0};
}

void process_tree_signal(const struct process_tree *tree, int number)
{
    for (size_t i = 0; i < tree->count; i++)
        kill(tree->processes[i], number);
}

enum process_tree_result process_tree_kill(int proc, pid_t ancestor, const pid_t *spared,
                                           size_t spared_count)
{
    struct process_tree stopped = {0};
    for (int pass = 0; pass < STOP_PASSES; pass++) {
        struct process_tree found = process_tree_list(proc, ancestor, spared, spared_count);
        bool same = found.count == stopped.count &&
                    (found.count == 0 ||
                     memcmp(found.processes, stopped.processes, found.count * sizeof(pid_t)) == 0);
        process_tree_free(&stopped);
        stopped = found;
        if (same)
            break;
        process_tree_signal(&stopped, SIGSTOP);
    }
    process_tree_signal(&stopped, SIGKILL);
    enum process_tree_result result = stopped.blind       ? PROCESS_TREE_BLIND
                                      : stopped.count > 0 ? PROCESS_TREE_KILLED
                                                          : PROCESS_TREE_EMPTY;
    process_tree_free(&stopped);
    return result;
}
