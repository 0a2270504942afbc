#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

size_t text_decode(const void *data, size_t length, uint32_t *ret_character)
{
    const unsigned char *bytes = data;
    if (length == 0)
        return 0;
    unsigned char lead = bytes[0];
    size_t size = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
    if (size == 0 || size > length || lead > 0xF4)
        return 0;
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t character = lead & masks[size];
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
        character = character << 6 | (bytes[i] & 0x3F);
    }
    if ((size == 3 && character < 0x800) || (size == 4 && character < 0x10000) ||
        character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
        return 0;
    *ret_character = character;
    return size;
}

bool text_is_utf8(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length;) {
        uint32_t character;
        size_t size = text_decode(bytes + i, length - i, &character);
        if (size == 0)
            return false;
        i += size;
    }
    return true;
}

bool text_is_harmless(uint32_t character)
{
    if (character < 0x20 || (character >= 0x7F && character < 0xA0))
        return false;
    /* Line separators, bidirectional marks and overrides, the byte order mark. */
    return !(character == 0x2028 || character == 0x2029 || character == 0x200E ||
             character == 0x200F || (character >= 0x202A && character <= 0x202E) ||
             (character >= 0x2066 && character <= 0x2069) || character == 0xFEFF);
}

void text_escape(const char *text, char *buffer, size_t size)
{
    if (size == 0)
        return;
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = strlen(text), used = 0;
    for (size_t i = 0; i < length;) {
        char piece[16];
        uint32_t character = 0;
        size_t taken = text_decode(bytes + i, length - i, &character);
        if (taken == 0) {
            snprintf(piece, sizeof(piece), "\\x%02x", bytes[i]);
            taken = 1;
        } else if (character == '\n') {
            snprintf(piece, sizeof(piece), "\\n");
        } else if (text_is_harmless(character)) {
            memcpy(piece, bytes + i, taken);
            piece[taken] = '\0';
        } else if (character < 0x100) {
            snprintf(piece, sizeof(piece), "\\x%02x", character);
        } else {
            snprintf(piece, sizeof(piece), "\\u{%x}", character);
        }
        size_t piece_length = strlen(piece);
        if (used + piece_length >= size)
            break;
        memcpy(buffer + used, piece, piece_length);
        used += piece_length;
        i += taken;
    }
    buffer[used] = '\0';
}

char *text_escaped(const char *text)
{
    size_t size = strlen(text) * 8 + 1;
    char *buffer = memory_allocate(size);
    text_escape(text, buffer, size);
    return buffer;
}

struct character_range {
    uint32_t first;
    uint32_t last;
};

static bool is_within(uint32_t character, const struct character_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

size_t text_width(const char *text)
{
    /* The blocks that matter in practice, so that no locale has to be loaded. */
    static const struct character_range combining[] = {
        {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
        {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
        {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    };
    static const struct character_range wide[] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
        {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
        {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
    };
    size_t width = 0, length = strlen(text);
    for (size_t i = 0; i < length;) {
        uint32_t character;
        size_t size = text_decode(text + i, length - i, &character);
        i += size > 0 ? size : 1;
        if (size == 0 || character < 0x300)
            width++;
        else if (is_within(character, wide, sizeof(wide) / sizeof(wide[0])))
            width += 2;
        else if (!is_within(character, combining, sizeof(combining) / sizeof(combining[0])))
            width++;
    }
    return width;
}

bool text_has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

bool text_parse_integer(const char *text, long long minimum, long long maximum,
                        long long *ret_value)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno != 0 || value < minimum || value > maximum)
        return false;
    *ret_value = value;
    return true;
}

size_t text_distance(const char *left, const char *right)
{
    enum { LONGEST = 63 };
    size_t rows = strlen(left), columns = strlen(right);
    if (rows > LONGEST || columns > LONGEST)
        return LONGEST + 1;
    size_t table[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= rows; i++)
        table[i][0] = i;
    for (size_t j = 0; j <= columns; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= rows; i++) {
        for (size_t j = 1; j <= columns; j++) {
            size_t best = table[i - 1][j - 1] + (left[i - 1] != right[j - 1]);
            if (table[i - 1][j] + 1 < best)
                best = table[i - 1][j] + 1;
            if (table[i][j - 1] + 1 < best)
                best = table[i][j - 1] + 1;
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] &&
                table[i - 2][j - 2] + 1 < best)
                best = table[i - 2][j - 2] + 1;
            table[i][j] = best;
        }
    }
    return table[rows][columns];
}
