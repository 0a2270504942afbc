#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void memory_exhausted(void)
{
    static const char text[] = "openshell: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    abort();
}

void *memory_allocate(size_t size)
{
    void *pointer = malloc(size > 0 ? size : 1);
    if (pointer == NULL)
        memory_exhausted();
    return pointer;
}

void *memory_new(size_t size)
{
    void *pointer = calloc(1, size > 0 ? size : 1);
    if (pointer == NULL)
        memory_exhausted();
    return pointer;
}

void *memory_resize(void *pointer, size_t size)
{
    void *result = realloc(pointer, size > 0 ? size : 1);
    if (result == NULL)
        memory_exhausted();
    return result;
}

char *memory_strdup(const char *text)
{
    if (text == NULL)
        return NULL;
    char *copy = strdup(text);
    if (copy == NULL)
        memory_exhausted();
    return copy;
}

char *memory_printf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        memory_exhausted();
    return text;
}

void memory_wipe(void *pointer, size_t size)
{
    if (pointer != NULL && size > 0)
        explicit_bzero(pointer, size);
}

void memory_cleanup_free(void *pointer_to_pointer)
{
    void *pointer;
    memcpy(&pointer, pointer_to_pointer, sizeof(pointer));
    free(pointer);
}

void memory_cleanup_close(int *descriptor)
{
    if (*descriptor >= 0) {
        int saved = errno;
        close(*descriptor);
        errno = saved;
    }
}

void memory_wipe_text(char **text)
{
    if (*text != NULL)
        memory_wipe(*text, strlen(*text));
    free(*text);
    *text = NULL;
}
