/* Colours, and whether to use them (command-line reference 1.8). */
#ifndef CLIENT_TERMINAL_H
#define CLIENT_TERMINAL_H

#include <stdbool.h>

enum colour { COLOUR_NONE, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED, COLOUR_FAINT, COLOUR_BOLD };

/* Whether this descriptor gets colours. */
bool terminal_colours(int descriptor);
/* Whether tables and marks get colours: both standard output and standard error do. */
bool terminal_table_colours(void);
/* The sequence that begins a colour; "" for COLOUR_NONE. */
const char *terminal_begin(enum colour colour);
/* The sequence that ends any colour. */
const char *terminal_end(enum colour colour);

#endif
