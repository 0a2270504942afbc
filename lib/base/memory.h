/* Allocation that does not fail: out of memory ends the process with a line on stderr. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

_Noreturn void memory_exhausted(void);
void *memory_allocate(size_t size);              /* not zeroed */
void *memory_new(size_t size);                   /* zeroed */
void *memory_resize(void *pointer, size_t size); /* as realloc */
char *memory_strdup(const char *text);           /* NULL stays NULL */
char *memory_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Overwrites a secret in a way that the compiler keeps. */
void memory_wipe(void *pointer, size_t size);
/* Wipes, frees and forgets a secret text; a pointer to NULL is allowed. */
void memory_wipe_text(char **text);

#define memory_new_of(type) ((type *)memory_new(sizeof(type)))

/* Frees at the end of a scope: `CLEANUP_FREE char *text = ...;`. */
void memory_cleanup_free(void *pointer_to_pointer);
#define CLEANUP_FREE __attribute__((cleanup(memory_cleanup_free)))

/* Closes a descriptor at the end of a scope when it is not negative. */
void memory_cleanup_close(int *descriptor);
#define CLEANUP_CLOSE __attribute__((cleanup(memory_cleanup_close)))

#endif
