#include "base/base64.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *base64url_encode(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    char *text = memory_allocate(length / 3 * 4 + 5), *out = text;
    size_t i = 0;
    for (; i + 2 < length; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = ALPHABET[group >> shift & 63];
    }
    if (length - i == 1) {
        *out++ = ALPHABET[bytes[i] >> 2];
        *out++ = ALPHABET[(bytes[i] & 3) << 4];
    } else if (length - i == 2) {
        *out++ = ALPHABET[bytes[i] >> 2];
        *out++ = ALPHABET[(bytes[i] & 3) << 4 | bytes[i + 1] >> 4];
        *out++ = ALPHABET[(bytes[i + 1] & 15) << 2];
    }
    *out = '\0';
    return text;
}

static int digit_value(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '-' ? 62 : digit == '_' ? 63 : -1;
}

unsigned char *base64url_decode(const char *text, size_t length, size_t *ret_length)
{
    if (length % 4 == 1)
        return NULL;
    unsigned char *bytes = memory_allocate(length / 4 * 3 + 4);
    size_t written = 0;
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < length; i++) {
        int value = digit_value(text[i]);
        if (value < 0) {
            free(bytes);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes[written++] = (unsigned char)(bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    if (bits != 0) {
        free(bytes);
        return NULL;
    }
    bytes[written] = '\0';
    *ret_length = written;
    return bytes;
}
