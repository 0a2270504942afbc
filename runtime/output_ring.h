/* What a process wrote lately, for those who attach later (decision P7): up to 1 MiB, numbered by
 * the byte. Output and error output keep their order; where a process changes between them often,
 * what that costs counts too and less is kept. */
#ifndef RUNTIME_OUTPUT_RING_H
#define RUNTIME_OUTPUT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTPUT_RING_LIMIT = 1024 * 1024 };

struct output_ring;

struct output_ring *output_ring_new(void);
void output_ring_free(struct output_ring *ring);

/* Keeps a copy; drops the oldest over the limit. */
void output_ring_append(struct output_ring *ring, bool is_error, const void *data, size_t length);

/* The number of the oldest byte kept, and of the byte that comes next. */
uint64_t output_ring_first(const struct output_ring *ring);
uint64_t output_ring_next(const struct output_ring *ring);

/* The bytes from `sequence` on, as far as they are of one kind and in one piece, at most `limit`;
 * 0 when there are none. The data live until the next append. */
size_t output_ring_read(const struct output_ring *ring, uint64_t sequence, size_t limit,
                        bool *ret_is_error, const void **ret_data);

#endif
