/* A region of memory that is freed at once. A call owns one: what it unpacks and builds lives
 * there.
 *
 * Allocation never returns NULL: running out of memory ends the process, since nothing useful can
 * be done with a half-handled call. Over the arena's limit arena_try_alloc returns NULL. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct arena;

/* A new arena that may hold `limit` bytes through arena_try_alloc (0: no limit). Owned by the
 * caller; free with arena_free. */
struct arena *arena_new(size_t limit);
void arena_free(struct arena *arena);

/* Forgets everything allocated; keeps the first block for reuse. */
void arena_reset(struct arena *arena);

/* Zeroed memory aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
/* NULL over the limit; the memory is not zeroed. */
void *arena_try_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
void *arena_memdup(struct arena *arena, const void *data, size_t size);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Bytes handed out so far. */
size_t arena_used(const struct arena *arena);

/* An allocator for protobuf-c that lives as long as the arena; its free does nothing. */
ProtobufCAllocator *arena_protobuf_allocator(struct arena *arena);

#define arena_new_of(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_array_of(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (count)))

#endif
