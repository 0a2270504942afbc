#include "client/text_table.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

struct cell {
    char *text;
    size_t width;
    enum colour colour;
};

struct text_table {
    const char *const *headings;
    size_t column_count;
    size_t *widths;
    struct cell *cells;
    size_t cell_count;
    size_t capacity;
};

struct text_table *text_table_new(const char *const *headings)
{
    struct text_table *table = memory_new_of(struct text_table);
    table->headings = headings;
    while (headings[table->column_count] != NULL)
        table->column_count++;
    table->widths = memory_new(table->column_count * sizeof(*table->widths));
    for (size_t i = 0; i < table->column_count; i++)
        table->widths[i] = text_width(headings[i]);
    return table;
}

void text_table_free(struct text_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
    free(table->widths);
    free(table);
}

void text_table_add_coloured(struct text_table *table, enum colour colour, const char *text)
{
    if (table->cell_count == table->capacity) {
        table->capacity = table->capacity == 0 ? 64 : table->capacity * 2;
        table->cells = memory_resize(table->cells, table->capacity * sizeof(*table->cells));
    }
    struct cell *cell = &table->cells[table->cell_count];
    cell->text = text_escaped(text != NULL && text[0] != '\0' ? text : "-");
    cell->width = text_width(cell->text);
    cell->colour = colour;
    size_t *width = &table->widths[table->cell_count % table->column_count];
    if (cell->width > *width)
        *width = cell->width;
    table->cell_count++;
}

void text_table_add(struct text_table *table, const char *text)
{
    text_table_add_coloured(table, COLOUR_NONE, text);
}

static void print_cell(const struct text_table *table, size_t column, const char *text,
                       size_t width, enum colour colour, FILE *stream)
{
    bool last = column + 1 == table->column_count;
    fprintf(stream, "%s%s%s", terminal_begin(colour), text, terminal_end(colour));
    if (last)
        fputc('\n', stream);
    else
        fprintf(stream, "%*s", (int)(table->widths[column] - width + 2), "");
}

void text_table_print(const struct text_table *table, FILE *stream, bool colours)
{
    for (size_t i = 0; i < table->column_count; i++)
        print_cell(table, i, table->headings[i], text_width(table->headings[i]),
                   colours ? COLOUR_BOLD : COLOUR_NONE, stream);
    for (size_t i = 0; i < table->cell_count; i++) {
        const struct cell *cell = &table->cells[i];
        print_cell(table, i % table->column_count, cell->text, cell->width,
                   colours ? cell->colour : COLOUR_NONE, stream);
    }
}
