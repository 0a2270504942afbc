#include "base/uuid.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void random_bytes(void *data, size_t size)
{
    unsigned char *bytes = data;
    while (size > 0) {
        ssize_t got = getrandom(bytes, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort(); /* nothing that needs an unguessable name can go on */
        bytes += got;
        size -= (size_t)got;
    }
}

static void put_hexadecimal(char *to, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void random_hexadecimal(char *ret_text, size_t size)
{
    for (size_t done = 0; done < size;) {
        unsigned char bytes[32];
        size_t step = size - done < sizeof(bytes) ? size - done : sizeof(bytes);
        random_bytes(bytes, step);
        put_hexadecimal(ret_text + 2 * done, bytes, step);
        done += step;
    }
    ret_text[2 * size] = '\0';
}

void uuid_generate(char ret_text[UUID_SIZE])
{
    unsigned char bytes[16];
    random_bytes(bytes, sizeof(bytes));
    bytes[6] = (unsigned char)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3F) | 0x80);
    static const unsigned char widths[] = {4, 2, 2, 2, 6};
    const unsigned char *from = bytes;
    char *to = ret_text;
    for (size_t i = 0; i < sizeof(widths); i++) {
        if (i > 0)
            *to++ = '-';
        put_hexadecimal(to, from, widths[i]);
        from += widths[i];
        to += 2 * widths[i];
    }
    *to = '\0';
}

bool uuid_valid(const char *text)
{
    if (text == NULL || strlen(text) != UUID_SIZE - 1)
        return false;
    bool nil = true;
    for (size_t i = 0; i < UUID_SIZE - 1; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (hyphen ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
            return false;
        if (!hyphen && text[i] != '0')
            nil = false;
    }
    return !nil;
}
