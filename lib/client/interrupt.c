#include "client/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "client/failure.h"

static int arrived;
static void (*on_first)(void *argument);
static void *on_first_argument;

static void note(int number, void *argument)
{
    (void)argument;
    if (arrived != 0)
        _exit(EXIT_SIGNALLED + number);
    arrived = number;
    if (on_first != NULL)
        on_first(on_first_argument);
}

static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool interrupt_start(struct reactor *reactor, void (*function)(void *argument), void *argument,
                     struct error *error)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    on_first = function;
    on_first_argument = argument;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!is_ignored(numbers[i]) &&
            reactor_signal_start(reactor, numbers[i], note, NULL, error) == NULL)
            return false;
    return true;
}

int interrupt_number(void)
{
    return arrived;
}
