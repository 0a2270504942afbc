/* Text from outside: checked, and made harmless before it is shown. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first character. Returns its length in bytes, 0 where the bytes are not UTF-8. */
size_t text_decode(const void *data, size_t length, uint32_t *ret_character);

/* Whether a terminal only draws it: no control, C1 character, line separator or bidirectional
 * override. A newline is not harmless. */
bool text_is_harmless(uint32_t character);

/* Columns that a terminal uses for harmless text: 0 for a combining mark, 2 for a wide character.
 */
size_t text_width(const char *text);

/* Whether the bytes are valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool text_is_utf8(const void *data, size_t length);

/* Writes `text` with every control character, C1 character, escape, line separator, bidirectional
 * override and invalid byte as \xNN or \u{N}. Cut, at a character boundary, to `size` bytes with
 * the NUL. A newline becomes \n. */
void text_escape(const char *text, char *buffer, size_t size);

/* As text_escape, newly allocated; owned by the caller. */
char *text_escaped(const char *text);

bool text_has_prefix(const char *text, const char *prefix);
bool text_has_suffix(const char *text, const char *suffix);

/* A whole decimal number within [minimum, maximum] and nothing else. */
bool text_parse_integer(const char *text, long long minimum, long long maximum,
                        long long *ret_value);

/* Edits that turn one word into the other (insert, delete, replace, swap neighbours); words longer
 * than 63 bytes count as 64 apart. For "did you mean". */
size_t text_distance(const char *left, const char *right);

#endif
