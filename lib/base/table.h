/* A table from text to pointers. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stddef.h>

struct table;

struct table *table_new(void);
/* The values stay their owner's. NULL is allowed. */
void table_free(struct table *table);

/* Copies the key; returns the value it replaced, or NULL. `value` is not NULL. */
void *table_put(struct table *table, const char *key, void *value);
void *table_get(const struct table *table, const char *key);
/* Returns the value that was removed, or NULL. */
void *table_remove(struct table *table, const char *key);
size_t table_count(const struct table *table);

/* Walks in no order: start with `*position` 0; NULL at the end. What the walk returned last may be
 * removed before the next step; anything else makes the walk skip or repeat. `ret_key` may be
 * NULL. */
void *table_next(const struct table *table, size_t *position, const char **ret_key);

#endif
