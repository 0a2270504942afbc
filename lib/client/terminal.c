#include "client/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/settings.h"

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

bool terminal_colours(int descriptor)
{
    if (settings.colour != COLOUR_AUTO)
        return settings.colour == COLOUR_ALWAYS;
    if (is_set("NO_COLOR"))
        return false;
    if (is_set("FORCE_COLOR"))
        return true;
    return is_set("TERM") && strcmp(getenv("TERM"), "dumb") != 0 && isatty(descriptor);
}

bool terminal_table_colours(void)
{
    return terminal_colours(STDOUT_FILENO) && terminal_colours(STDERR_FILENO);
}

const char *terminal_begin(enum colour colour)
{
    static const char *const sequences[] = {
        [COLOUR_NONE] = "",        [COLOUR_GREEN] = "\x1b[32m", [COLOUR_YELLOW] = "\x1b[33m",
        [COLOUR_RED] = "\x1b[31m", [COLOUR_FAINT] = "\x1b[2m",  [COLOUR_BOLD] = "\x1b[1m",
    };
    return sequences[colour];
}

const char *terminal_end(enum colour colour)
{
    return colour == COLOUR_NONE ? "" : "\x1b[0m";
}
