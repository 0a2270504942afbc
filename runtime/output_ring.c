#include "runtime/output_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PIECE_SIZE = 16 * 1024 };

struct piece {
    struct piece *next;
    uint64_t first; /* number of its first byte */
    size_t length;
    size_t capacity;
    bool is_error;
    unsigned char data[];
};

struct output_ring {
    struct piece *oldest;
    struct piece *newest;
    size_t held;
    uint64_t next;
};

struct output_ring *output_ring_new(void)
{
    return memory_new_of(struct output_ring);
}

static void drop_oldest(struct output_ring *ring)
{
    struct piece *piece = ring->oldest;
    ring->oldest = piece->next;
    if (ring->oldest == NULL)
        ring->newest = NULL;
    ring->held -= piece->length;
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

static struct piece *add_piece(struct output_ring *ring, bool is_error, size_t wanted)
{
    /* Small at first: most processes write little. */
    size_t capacity = ring->held == 0 && wanted < 1024 ? 1024 : PIECE_SIZE;
    struct piece *piece = memory_allocate(sizeof(*piece) + capacity);
    *piece = (struct piece){.first = ring->next, .capacity = capacity, .is_error = is_error};
    if (ring->newest == NULL)
        ring->oldest = piece;
    else
        ring->newest->next = piece;
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
        ring->held += step;
        ring->next += step;
        bytes += step;
        length -= step;
        while (ring->held > OUTPUT_RING_LIMIT)
            drop_oldest(ring);
    }
}

uint64_t output_ring_first(const struct output_ring *ring)
{
    return ring->oldest == NULL ? ring->next : ring->oldest->first;
}

uint64_t output_ring_next(const struct output_ring *ring)
{
    return ring->next;
}

size_t output_ring_read(const struct output_ring *ring, uint64_t *sequence, size_t limit,
                        bool *ret_is_error, const void **ret_data)
{
    if (*sequence < output_ring_first(ring))
        *sequence = output_ring_first(ring);
    for (const struct piece *piece = ring->oldest; piece != NULL; piece = piece->next) {
        if (*sequence < piece->first || *sequence >= piece->first + piece->length)
            continue;
        size_t offset = (size_t)(*sequence - piece->first);
        *ret_is_error = piece->is_error;
        *ret_data = piece->data + offset;
        return piece->length - offset < limit ? piece->length - offset : limit;
    }
    return 0;
}
