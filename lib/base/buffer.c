#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool reserve(struct buffer *buffer, size_t more)
{
    if (more > (size_t)-1 / 4 - buffer->length)
        return false;
    size_t need = buffer->length + more;
    if (buffer->maximum != 0 && need > buffer->maximum)
        return false;
    if (need + 1 <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
    while (capacity < need + 1)
        capacity *= 2;
    buffer->data = memory_resize(buffer->data, capacity);
    buffer->capacity = capacity;
    return true;
}

bool buffer_append(struct buffer *buffer, const void *data, size_t length)
{
    if (!reserve(buffer, length))
        return false;
    if (length > 0)
        memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
    return true;
}

bool buffer_append_text(struct buffer *buffer, const char *text)
{
    return buffer_append(buffer, text, strlen(text));
}

bool buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        memory_exhausted();
    bool appended = buffer_append(buffer, text, (size_t)length);
    free(text);
    return appended;
}

void buffer_consume(struct buffer *buffer, size_t length)
{
    if (length >= buffer->length) {
        buffer->length = 0;
    } else {
        memmove(buffer->data, buffer->data + length, buffer->length - length);
        buffer->length -= length;
    }
    if (buffer->data != NULL)
        buffer->data[buffer->length] = '\0';
}

const char *buffer_text(const struct buffer *buffer)
{
    return buffer->data != NULL ? (const char *)buffer->data : "";
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    buffer->data = NULL;
    buffer->length = buffer->capacity = 0;
}

void buffer_wipe(struct buffer *buffer)
{
    memory_wipe(buffer->data, buffer->capacity);
    buffer_free(buffer);
}
