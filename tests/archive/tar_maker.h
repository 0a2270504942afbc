/* A writer of tar streams that writes whatever it is told, for tests of the reader. Nothing of the
 * code under test is used, and nothing is checked. Sizes are bytes; memory grows as needed. */
#ifndef TESTS_TAR_MAKER_H
#define TESTS_TAR_MAKER_H

#include <stddef.h>
#include <stdint.h>

struct tar_maker {
    unsigned char *data; /* malloced */
    size_t length;
    size_t capacity;
    unsigned entries; /* members that a reader counts */
};

/* One header block with raw fields; only what is not zero is written. */
struct tar_header {
    const char *name; /* the first 100 bytes of `name_length`, or of the string */
    size_t name_length;
    char type; /* '0' to '7', 'L', 'x', ...; 0: regular */
    unsigned mode;
    uint64_t size;
    const char *raw_size; /* 12 bytes in place of the octal size */
    const char *link;
    int64_t time;
    int bad_checksum;
};

void tar_raw(struct tar_maker *tar, const void *data, size_t length);
void tar_pad(struct tar_maker *tar); /* zeros up to a block */
void tar_header(struct tar_maker *tar, const struct tar_header *header);

/* Whole members: header, data, padding. */
void tar_file(struct tar_maker *tar, const char *name, const char *content);
void tar_file_bytes(struct tar_maker *tar, const char *name, const void *data, size_t length);
void tar_directory(struct tar_maker *tar, const char *name, unsigned mode);
void tar_symlink(struct tar_maker *tar, const char *name, const char *target);
void tar_hard_link(struct tar_maker *tar, const char *name, const char *target);
void tar_special(struct tar_maker *tar, const char *name, char type);

/* An extended header ('x' or 'g') of records "KEY=VALUE"; the value may hold any bytes. */
struct tar_record {
    const char *key;
    const void *value;
    size_t length;
};
void tar_pax(struct tar_maker *tar, char type, const struct tar_record *records, size_t count);
void tar_pax_text(struct tar_maker *tar, char type, const char *key, const char *value);
/* A GNU long name ('L') or long link ('K'). */
void tar_gnu_long(struct tar_maker *tar, char type, const void *name, size_t length);

/* The count of entries as our archives have it, and the two blocks of zeros. */
void tar_trailer(struct tar_maker *tar, unsigned entries);
void tar_zeros(struct tar_maker *tar, size_t blocks);
/* The right trailer and end. */
void tar_end(struct tar_maker *tar);

void tar_free(struct tar_maker *tar);

#endif
