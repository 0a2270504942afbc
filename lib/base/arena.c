#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 256 * 1024 };

struct block {
    struct block *next;
    size_t size;
    size_t used;
    _Alignas(max_align_t) unsigned char data[];
};

struct arena {
    struct block *blocks; /* newest first */
    size_t limit;
    size_t used;
    ProtobufCAllocator allocator;
};

static void *protobuf_alloc(void *context, size_t size)
{
    return arena_try_alloc(context, size);
}

static void protobuf_free(void *context, void *pointer)
{
    (void)context;
    (void)pointer;
}

struct arena *arena_new(size_t limit)
{
    struct arena *arena = memory_new(sizeof(*arena));
    arena->limit = limit;
    arena->allocator = (ProtobufCAllocator){protobuf_alloc, protobuf_free, arena};
    return arena;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    for (struct block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(arena);
}

void arena_reset(struct arena *arena)
{
    struct block *first = NULL;
    for (struct block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        if (next == NULL)
            first = block;
        else
            free(block);
    }
    if (first != NULL && first->size > FIRST_BLOCK) {
        free(first);
        first = NULL;
    }
    if (first != NULL)
        first->used = 0;
    arena->blocks = first;
    arena->used = 0;
}

static void *take(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        memory_exhausted();
    size_t rounded = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (rounded == 0)
        rounded = sizeof(max_align_t);
    struct block *block = arena->blocks;
    if (block == NULL || block->size - block->used < rounded) {
        size_t want = block == NULL ? FIRST_BLOCK : block->size * 2;
        if (want > LARGEST_BLOCK)
            want = LARGEST_BLOCK;
        if (want < rounded)
            want = rounded;
        block = memory_allocate(sizeof(*block) + want);
        block->size = want;
        block->used = 0;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *result = block->data + block->used;
    block->used += rounded;
    arena->used += rounded;
    return result;
}

void *arena_try_alloc(struct arena *arena, size_t size)
{
    if (arena->limit != 0 && (size > arena->limit || arena->used > arena->limit - size))
        return NULL;
    return take(arena, size);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return memset(take(arena, size), 0, size);
}

void *arena_memdup(struct arena *arena, const void *data, size_t size)
{
    void *copy = take(arena, size);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_memdup(arena, text, strlen(text) + 1);
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = take(arena, (size_t)(length < 0 ? 0 : length) + 1);
    text[0] = '\0';
    if (length >= 0)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

size_t arena_used(const struct arena *arena)
{
    return arena->used;
}

ProtobufCAllocator *arena_protobuf_allocator(struct arena *arena)
{
    return &arena->allocator;
}
