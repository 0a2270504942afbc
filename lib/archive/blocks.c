#include "archive/blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Fields of a header block, by place (POSIX ustar). */
enum {
    AT_MODE = 100,
    AT_USER = 108,
    AT_GROUP = 116,
    AT_SIZE = 124,
    AT_TIME = 136,
    AT_CHECKSUM = 148,
    AT_TYPE = 156,
    AT_MAGIC = 257,
    SIZE_FIELD = 12,
    CHECKSUM_FIELD = 8,
};

static unsigned checksum(const unsigned char *block)
{
    unsigned sum = 0;
    for (int i = 0; i < BLOCK_BYTES; i++)
        sum += i >= AT_CHECKSUM && i < AT_CHECKSUM + CHECKSUM_FIELD ? ' ' : block[i];
    return sum;
}

/* An octal field, ended by a NUL, a space or its width. False for anything else. */
static bool parse_octal(const unsigned char *field, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < width && field[i] == ' ')
        i++;
    size_t first = i;
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++)
        value = value * 8 + (uint64_t)(field[i] - '0');
    if (i == first || (i < width && field[i] != '\0' && field[i] != ' '))
        return false;
    *ret_value = value;
    return true;
}

static bool is_header(const unsigned char *block)
{
    uint64_t sum;
    return memcmp(block + AT_MAGIC, "ustar", 5) == 0 &&
           parse_octal(block + AT_CHECKSUM, CHECKSUM_FIELD, &sum) && sum == checksum(block);
}

struct pax_record {
    const char *key;
    size_t key_length;
    const char *value;
    size_t value_length;
};

/* Takes one "LENGTH KEY=VALUE\n" from the front; false at the end or when it is malformed. */
static bool next_record(const char **data, size_t *length, struct pax_record *ret_record)
{
    size_t total = 0, digits = 0;
    while (digits < *length && digits < 9 && (*data)[digits] >= '0' && (*data)[digits] <= '9')
        total = total * 10 + (size_t)((*data)[digits++] - '0');
    if (digits == 0 || total > *length || total < digits + 3 || (*data)[digits] != ' ' ||
        (*data)[total - 1] != '\n')
        return false;
    const char *key = *data + digits + 1, *end = *data + total - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (equals == NULL)
        return false;
    *ret_record = (struct pax_record){
        .key = key,
        .key_length = (size_t)(equals - key),
        .value = equals + 1,
        .value_length = (size_t)(end - equals - 1),
    };
    *data += total;
    *length -= total;
    return true;
}

static bool key_is(const struct pax_record *record, const char *key)
{
    return record->key_length == strlen(key) && memcmp(record->key, key, strlen(key)) == 0;
}

void blocks_make_trailer(uint64_t entries, unsigned char *buffer)
{
    char count[24], record[64];
    memset(buffer, 0, BLOCKS_TRAILER_BYTES);
    snprintf(count, sizeof(count), "%" PRIu64, entries);
    /* The length counts its own two digits, the space, "=" and the newline. */
    size_t length = 2 + 1 + strlen(BLOCKS_COUNT_KEY) + 1 + strlen(count) + 1;
    snprintf(record, sizeof(record), "%zu %s=%s\n", length, BLOCKS_COUNT_KEY, count);

    char *header = (char *)buffer;
    snprintf(header, AT_MODE, "pax_global_header");
    snprintf(header + AT_MODE, 8, "%07o", 0644);
    snprintf(header + AT_USER, 8, "%07o", 0);
    snprintf(header + AT_GROUP, 8, "%07o", 0);
    snprintf(header + AT_SIZE, SIZE_FIELD, "%011zo", length);
    snprintf(header + AT_TIME, SIZE_FIELD, "%011o", 0);
    header[AT_TYPE] = 'g';
    memcpy(header + AT_MAGIC, "ustar\00000", 8);
    snprintf(header + AT_CHECKSUM, 7, "%06o", checksum(buffer));
    header[AT_CHECKSUM + 7] = ' ';
    memcpy(buffer + BLOCK_BYTES, record, length);
}

bool blocks_parse_trailer(const unsigned char *data, size_t length, uint64_t *ret_entries)
{
    uint64_t size;
    if (length < BLOCKS_TRAILER_BYTES || !is_header(data) || data[AT_TYPE] != 'g' ||
        !parse_octal(data + AT_SIZE, SIZE_FIELD, &size) || size > BLOCK_BYTES)
        return false;
    const char *body = (const char *)data + BLOCK_BYTES;
    size_t left = (size_t)size;
    struct pax_record record;
    char count[24];
    long long value;
    if (!next_record(&body, &left, &record) || left != 0 || !key_is(&record, BLOCKS_COUNT_KEY) ||
        record.value_length >= sizeof(count))
        return false;
    memcpy(count, record.value, record.value_length);
    count[record.value_length] = '\0';
    if (strlen(count) != record.value_length || !text_parse_integer(count, 0, INT64_MAX, &value))
        return false;
    *ret_entries = (uint64_t)value;
    return true;
}

static const char *check_records(const char *body, size_t length)
{
    struct pax_record record;
    while (next_record(&body, &length, &record))
        if ((key_is(&record, "path") || key_is(&record, "linkpath") ||
             key_is(&record, "GNU.sparse.name")) &&
            memchr(record.value, '\0', record.value_length) != NULL)
            return "the name holds a NUL byte";
    return NULL;
}

/* A GNU long name: a C string, padded with NULs. */
static const char *check_long_name(const char *body, size_t length)
{
    size_t used = strnlen(body, length);
    if (!blocks_are_zero((const unsigned char *)body + used, length - used))
        return "the name holds a NUL byte";
    return NULL;
}

const char *blocks_check_names(const unsigned char *data, size_t length)
{
    while (length >= BLOCK_BYTES) {
        uint64_t size;
        char type = (char)data[AT_TYPE];
        if (strchr("xXgLKV", type) == NULL || type == '\0' ||
            !parse_octal(data + AT_SIZE, SIZE_FIELD, &size))
            return NULL;
        data += BLOCK_BYTES;
        length -= BLOCK_BYTES;
        if (type == 'V')
            continue;
        if (size > length)
            return "its header is damaged";
        const char *reason = NULL;
        if (type == 'x' || type == 'X')
            reason = check_records((const char *)data, (size_t)size);
        else if (type == 'L' || type == 'K')
            reason = check_long_name((const char *)data, (size_t)size);
        if (reason != NULL)
            return reason;
        size_t whole = ((size_t)size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
        if (whole > length)
            return "its header is damaged";
        data += whole;
        length -= whole;
    }
    return NULL;
}

bool blocks_are_zero(const unsigned char *data, size_t length)
{
    return length == 0 || (data[0] == 0 && memcmp(data, data + 1, length - 1) == 0);
}
