#include "tests/archive/tar_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tar_raw(struct tar_maker *tar, const void *data, size_t length)
{
    if (tar->length + length > tar->capacity) {
        tar->capacity = (tar->length + length) * 2;
        tar->data = realloc(tar->data, tar->capacity);
        if (tar->data == NULL)
            abort();
    }
    if (length > 0)
        memcpy(tar->data + tar->length, data, length);
    tar->length += length;
}

void tar_zeros(struct tar_maker *tar, size_t blocks)
{
    static const char zeros[512];
    for (size_t i = 0; i < blocks; i++)
        tar_raw(tar, zeros, sizeof(zeros));
}

void tar_pad(struct tar_maker *tar)
{
    static const char zeros[512];
    tar_raw(tar, zeros, (512 - tar->length % 512) % 512);
}

static void octal(char *field, size_t digits, uint64_t value)
{
    for (size_t i = digits; i-- > 0; value /= 8)
        field[i] = (char)('0' + value % 8);
}

void tar_header(struct tar_maker *tar, const struct tar_header *header)
{
    char block[512] = {0};
    size_t name_length = header->name_length > 0 ? header->name_length : strlen(header->name);
    memcpy(block, header->name, name_length < 100 ? name_length : 100);
    octal(block + 100, 7, header->mode != 0 ? header->mode : 0644);
    octal(block + 108, 7, 0);
    octal(block + 116, 7, 0);
    if (header->raw_size != NULL)
        memcpy(block + 124, header->raw_size, 12);
    else
        octal(block + 124, 11, header->size);
    octal(block + 136, 11, (uint64_t)header->time);
    block[156] = header->type != 0 ? header->type : '0';
    if (header->link != NULL)
        memcpy(block + 157, header->link, strlen(header->link) < 100 ? strlen(header->link) : 100);
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    unsigned sum = header->bad_checksum ? 1 : 0;
    for (size_t i = 0; i < sizeof(block); i++)
        sum += (unsigned char)block[i];
    octal(block + 148, 6, sum);
    block[154] = '\0';
    tar_raw(tar, block, sizeof(block));
    if (strchr("xgXLKV", header->type != 0 ? header->type : '0') == NULL)
        tar->entries++;
}

void tar_file_bytes(struct tar_maker *tar, const char *name, const void *data, size_t length)
{
    tar_header(tar, &(struct tar_header){.name = name, .size = length, .time = 1000000000});
    tar_raw(tar, data, length);
    tar_pad(tar);
}

void tar_file(struct tar_maker *tar, const char *name, const char *content)
{
    tar_file_bytes(tar, name, content, strlen(content));
}

void tar_directory(struct tar_maker *tar, const char *name, unsigned mode)
{
    tar_header(tar,
               &(struct tar_header){.name = name, .type = '5', .mode = mode, .time = 1000000000});
}

void tar_symlink(struct tar_maker *tar, const char *name, const char *target)
{
    tar_header(tar, &(struct tar_header){.name = name, .type = '2', .link = target});
}

void tar_hard_link(struct tar_maker *tar, const char *name, const char *target)
{
    tar_header(tar, &(struct tar_header){.name = name, .type = '1', .link = target});
}

void tar_special(struct tar_maker *tar, const char *name, char type)
{
    tar_header(tar, &(struct tar_header){.name = name, .type = type});
}

/* Room enough for the decimal length, which counts itself. */
static size_t record_length(const struct tar_record *record)
{
    size_t rest = 1 + strlen(record->key) + 1 + record->length + 1;
    size_t total = rest + 1;
    char digits[24];
    while ((size_t)snprintf(digits, sizeof(digits), "%zu", total) + rest > total)
        total++;
    return total;
}

void tar_pax(struct tar_maker *tar, char type, const struct tar_record *records, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += record_length(&records[i]);
    tar_header(tar, &(struct tar_header){.name = "pax", .type = type, .size = total});
    for (size_t i = 0; i < count; i++) {
        char digits[24];
        int length = snprintf(digits, sizeof(digits), "%zu ", record_length(&records[i]));
        tar_raw(tar, digits, (size_t)length);
        tar_raw(tar, records[i].key, strlen(records[i].key));
        tar_raw(tar, "=", 1);
        tar_raw(tar, records[i].value, records[i].length);
        tar_raw(tar, "\n", 1);
    }
    tar_pad(tar);
}

void tar_pax_text(struct tar_maker *tar, char type, const char *key, const char *value)
{
    tar_pax(tar, type, &(struct tar_record){key, value, strlen(value)}, 1);
}

void tar_gnu_long(struct tar_maker *tar, char type, const void *name, size_t length)
{
    tar_header(tar, &(struct tar_header){.name = "././@LongLink", .type = type, .size = length});
    tar_raw(tar, name, length);
    tar_pad(tar);
}

void tar_trailer(struct tar_maker *tar, unsigned entries)
{
    char count[16];
    snprintf(count, sizeof(count), "%u", entries);
    tar_pax_text(tar, 'g', "OPENSHELL.entries", count);
}

void tar_end(struct tar_maker *tar)
{
    tar_trailer(tar, tar->entries);
    tar_zeros(tar, 2);
}

void tar_free(struct tar_maker *tar)
{
    free(tar->data);
    *tar = (struct tar_maker){0};
}
