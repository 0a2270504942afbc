/* Tables for people: columns as wide as their widest cell, two spaces between them. Cells may hold
 * text from anywhere: it is escaped. */
#ifndef CLIENT_TEXT_TABLE_H
#define CLIENT_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/terminal.h"

struct text_table;

/* `headings` ends with NULL and outlives the table. Owned by the caller. */
struct text_table *text_table_new(const char *const *headings);
void text_table_free(struct text_table *table);

/* The next cell, row by row; NULL or "" is shown as "-". */
void text_table_add(struct text_table *table, const char *text);
void text_table_add_coloured(struct text_table *table, enum colour colour, const char *text);

/* Prints headings and rows; the last row must be complete. */
void text_table_print(const struct text_table *table, FILE *stream, bool colours);

#endif
