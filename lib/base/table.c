#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/uuid.h"

struct slot {
    char *key; /* NULL: empty, or removed when `removed` is set */
    void *value;
    uint64_t hash;
    bool removed;
};

struct table {
    struct slot *slots;
    size_t capacity; /* a power of two */
    size_t count;
    size_t used;   /* count and removed slots */
    uint64_t seed; /* so that nobody outside can choose keys that collide */
};

enum { FIRST_CAPACITY = 16 };

struct table *table_new(void)
{
    struct table *table = memory_new_of(struct table);
    table->capacity = FIRST_CAPACITY;
    table->slots = memory_new(sizeof(struct slot) * table->capacity);
    random_bytes(&table->seed, sizeof(table->seed));
    return table;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->capacity; i++)
        free(table->slots[i].key);
    free(table->slots);
    free(table);
}

static uint64_t hash_key(const struct table *table, const char *key)
{
    uint64_t hash = table->seed ^ 0xcbf29ce484222325u;
    for (const unsigned char *byte = (const unsigned char *)key; *byte != '\0'; byte++) {
        hash = (hash ^ *byte) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The slot of the key, or the empty slot that ends its chain. */
static struct slot *find(const struct table *table, const char *key, uint64_t hash)
{
    for (size_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
        struct slot *slot = &table->slots[i];
        if (slot->key == NULL && !slot->removed)
            return slot;
        if (slot->key != NULL && slot->hash == hash && strcmp(slot->key, key) == 0)
            return slot;
    }
}

static void grow(struct table *table)
{
    struct slot *old = table->slots;
    size_t old_capacity = table->capacity;
    if (table->count * 2 >= old_capacity)
        table->capacity *= 2;
    table->slots = memory_new(sizeof(struct slot) * table->capacity);
    table->used = table->count;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].key != NULL)
            *find(table, old[i].key, old[i].hash) = old[i];
    free(old);
}

void *table_put(struct table *table, const char *key, void *value)
{
    uint64_t hash = hash_key(table, key);
    struct slot *slot = find(table, key, hash);
    if (slot->key != NULL) {
        void *replaced = slot->value;
        slot->value = value;
        return replaced;
    }
    if ((table->used + 1) * 4 > table->capacity * 3) {
        grow(table);
        slot = find(table, key, hash);
    }
    *slot = (struct slot){.key = memory_strdup(key), .value = value, .hash = hash};
    table->count++;
    table->used++;
    return NULL;
}

void *table_get(const struct table *table, const char *key)
{
    return find(table, key, hash_key(table, key))->value;
}

void *table_remove(struct table *table, const char *key)
{
    struct slot *slot = find(table, key, hash_key(table, key));
    if (slot->key == NULL)
        return NULL;
    void *value = slot->value;
    free(slot->key);
    *slot = (struct slot){.removed = true};
    table->count--;
    return value;
}

size_t table_count(const struct table *table)
{
    return table->count;
}

void *table_next(const struct table *table, size_t *position, const char **ret_key)
{
    while (*position < table->capacity) {
        const struct slot *slot = &table->slots[(*position)++];
        if (slot->key == NULL)
            continue;
        if (ret_key != NULL)
            *ret_key = slot->key;
        return slot->value;
    }
    return NULL;
}
