/* A growing byte buffer with a stated maximum. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    unsigned char *data; /* NUL-terminated once anything was appended; owned */
    size_t length;
    size_t capacity;
    size_t maximum; /* bytes; 0: no limit, for text whose size the program itself bounds */
};

#define BUFFER_INIT(max) ((struct buffer){.maximum = (max)})

/* False, and nothing appended, when the maximum would be passed. */
bool buffer_append(struct buffer *buffer, const void *data, size_t length);
bool buffer_append_text(struct buffer *buffer, const char *text);
bool buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Drops `length` bytes from the front. */
void buffer_consume(struct buffer *buffer, size_t length);
/* The text so far, never NULL; owned by the buffer. */
const char *buffer_text(const struct buffer *buffer);
/* Frees; buffer_wipe overwrites first. */
void buffer_free(struct buffer *buffer);
void buffer_wipe(struct buffer *buffer);

#endif
