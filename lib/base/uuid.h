/* Random identifiers. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>

enum { UUID_SIZE = 37 }; /* 36 characters and NUL */

/* A random (version 4) UUID in lower case. */
void uuid_generate(char ret_text[UUID_SIZE]);

/* Whether the text is a hyphenated UUID, in either case, other than the nil one. */
bool uuid_valid(const char *text);

/* Fills `data` from the kernel's generator; ends the process when there is none. */
void random_bytes(void *data, size_t size);

/* 2 * size lower-case hexadecimal digits of random bytes, and NUL. */
void random_hexadecimal(char *ret_text, size_t size);

#endif
