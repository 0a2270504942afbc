#include "runtime/output_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PIECE_SIZE = 64 * 1024 /* one frame */ };

struct piece {
    struct piece *next;
    uint64_t first; /* number of its first byte, dropped or not */
    size_t dropped; /* so many from its beginning */
    size_t length;
    size_t capacity;
    bool is_error;
    unsigned char data[];
};

struct output_ring {
    struct piece *oldest;
    struct piece *newest;
    struct piece *before_newest; /* while the newest is not the oldest */
    size_t cost;                 /* bytes kept, and what the pieces but full ones take besides */
    uint64_t next;
};

struct output_ring *output_ring_new(void)
{
    return memory_new_of(struct output_ring);
}

/* A full piece costs what it holds, so that a megabyte of plain output is kept. */
static size_t overhead_of(const struct piece *piece)
{
    return piece->capacity == PIECE_SIZE ? 0 : sizeof(*piece);
}

static void drop_oldest(struct output_ring *ring)
{
    struct piece *piece = ring->oldest;
    ring->oldest = piece->next;
    if (ring->oldest == NULL)
        ring->newest = NULL;
    ring->cost -= piece->length - piece->dropped + overhead_of(piece);
    free(piece);
}

void output_ring_free(struct output_ring *ring)
{
    if (ring == NULL)
        return;
    while (ring->oldest != NULL)
        drop_oldest(ring);
    free(ring);
}

static void drop_excess(struct output_ring *ring)
{
    while (ring->cost > OUTPUT_RING_LIMIT) {
        size_t excess = ring->cost - OUTPUT_RING_LIMIT;
        struct piece *piece = ring->oldest;
        if (piece == ring->newest || excess < piece->length - piece->dropped) {
            piece->dropped += excess;
            ring->cost -= excess;
        } else {
            drop_oldest(ring);
        }
    }
}

/* The newest piece is complete: it gives back what it did not use. */
static void close_newest(struct output_ring *ring)
{
    struct piece *piece = ring->newest;
    if (piece == NULL || piece->length == piece->capacity)
        return;
    ring->cost -= overhead_of(piece);
    bool alone = ring->oldest == piece;
    piece = memory_resize(piece, sizeof(*piece) + piece->length);
    piece->capacity = piece->length;
    ring->cost += overhead_of(piece);
    if (alone)
        ring->oldest = piece;
    else
        ring->before_newest->next = piece;
    ring->newest = piece;
}

static struct piece *add_piece(struct output_ring *ring, bool is_error, size_t wanted)
{
    close_newest(ring);
    /* Small at first: most processes write little. */
    size_t capacity = ring->oldest == NULL && wanted < 1024 ? 1024 : PIECE_SIZE;
    struct piece *piece = memory_allocate(sizeof(*piece) + capacity);
    *piece = (struct piece){.first = ring->next, .capacity = capacity, .is_error = is_error};
    ring->cost += overhead_of(piece);
    if (ring->newest == NULL)
        ring->oldest = piece;
    else
        ring->newest->next = piece;
    ring->before_newest = ring->newest;
    ring->newest = piece;
    return piece;
}

void output_ring_append(struct output_ring *ring, bool is_error, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    while (length > 0) {
        struct piece *piece = ring->newest;
        if (piece == NULL || piece->is_error != is_error || piece->length == piece->capacity)
            piece = add_piece(ring, is_error, length);
        size_t room = piece->capacity - piece->length;
        size_t step = length < room ? length : room;
        memcpy(piece->data + piece->length, bytes, step);
        piece->length += step;
        ring->cost += step;
        ring->next += step;
        bytes += step;
        length -= step;
        drop_excess(ring);
    }
}

uint64_t output_ring_first(const struct output_ring *ring)
{
    return ring->oldest == NULL ? ring->next : ring->oldest->first + ring->oldest->dropped;
}

uint64_t output_ring_next(const struct output_ring *ring)
{
    return ring->next;
}

size_t output_ring_read(const struct output_ring *ring, uint64_t sequence, size_t limit,
                        bool *ret_is_error, const void **ret_data)
{
    if (sequence < output_ring_first(ring))
        return 0;
    for (const struct piece *piece = ring->oldest; piece != NULL; piece = piece->next) {
        if (sequence >= piece->first + piece->length)
            continue;
        size_t offset = (size_t)(sequence - piece->first);
        *ret_is_error = piece->is_error;
        *ret_data = piece->data + offset;
        return piece->length - offset < limit ? piece->length - offset : limit;
    }
    return 0;
}
