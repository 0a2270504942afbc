#include "archive/link_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archive/transfer.h"
#include "base/memory.h"

enum { BUCKETS = 16384 };

struct link_node {
    struct link_node *next;
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
    nlink_t names_left;
    char name[];
};

static struct link_node **find(struct link_table *table, const struct stat *status)
{
    uint64_t hash = ((uint64_t)status->st_ino ^ ((uint64_t)status->st_dev << 40)) *
                    UINT64_C(0x9E3779B97F4A7C15);
    struct link_node **at = &table->buckets[hash >> 50];
    while (*at != NULL && ((*at)->inode != status->st_ino || (*at)->device != status->st_dev))
        at = &(*at)->next;
    return at;
}

static struct link_node *take_out(struct link_table *table, struct link_node **at)
{
    struct link_node *node = *at;
    *at = node->next;
    table->count--;
    table->bytes -= strlen(node->name) + 1;
    return node;
}

static bool same_time(const struct timespec *left, const struct timespec *right)
{
    return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

const char *link_table_find(struct link_table *table, const struct stat *status)
{
    free(table->finished);
    table->finished = NULL;
    if (table->buckets == NULL)
        return NULL;
    struct link_node **at = find(table, status), *node = *at;
    if (node == NULL)
        return NULL;
    if (node->size != status->st_size || !same_time(&node->modified, &status->st_mtim) ||
        !same_time(&node->changed, &status->st_ctim)) {
        free(take_out(table, at));
        return NULL;
    }
    if (--node->names_left == 0)
        table->finished = take_out(table, at);
    return node->name;
}

bool link_table_add(struct link_table *table, const struct stat *status, const char *name)
{
    size_t size = strlen(name) + 1;
    if (table->count >= ARCHIVE_LINKS_MAX || table->bytes + size > ARCHIVE_LINKS_BYTES_MAX)
        return false;
    if (table->buckets == NULL)
        table->buckets = memory_new(BUCKETS * sizeof(*table->buckets));
    struct link_node **at = find(table, status);
    if (*at != NULL)
        free(take_out(table, at));
    struct link_node *node = memory_allocate(sizeof(*node) + size);
    *node = (struct link_node){
        .next = *at,
        .device = status->st_dev,
        .inode = status->st_ino,
        .size = status->st_size,
        .modified = status->st_mtim,
        .changed = status->st_ctim,
        .names_left = status->st_nlink - 1,
    };
    memcpy(node->name, name, size);
    *at = node;
    table->count++;
    table->bytes += size;
    return true;
}

void link_table_free(struct link_table *table)
{
    for (size_t i = 0; table->buckets != NULL && i < BUCKETS; i++)
        while (table->buckets[i] != NULL)
            free(take_out(table, &table->buckets[i]));
    free(table->buckets);
    free(table->finished);
    *table = (struct link_table){0};
}
