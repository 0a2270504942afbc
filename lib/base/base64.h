/* Base64 with the URL alphabet and no padding (RFC 4648, section 5), as tokens use it. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Newly allocated text. */
char *base64url_encode(const void *data, size_t length);

/* Newly allocated bytes with a NUL after them; NULL for anything but the one canonical form:
 * padding, other characters and stray low bits are refused. */
unsigned char *base64url_decode(const char *text, size_t length, size_t *ret_length);

#endif
