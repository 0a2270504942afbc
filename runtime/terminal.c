#include "runtime/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"

static bool prepare(int terminal, uid_t owner, gid_t group, unsigned columns, unsigned rows)
{
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    struct termios settings;
    if (ioctl(terminal, TIOCSWINSZ, &size) != 0 || tcgetattr(terminal, &settings) != 0)
        return false;
    settings.c_iflag |= IUTF8;
    /* As a process without rights over the sandbox's ids, this one is the owner already. */
    return tcsetattr(terminal, TCSANOW, &settings) == 0 && fchmod(terminal, 0620) == 0 &&
           fchown(terminal, owner, group) == 0;
}

bool terminal_open(uid_t owner, gid_t group, unsigned columns, unsigned rows, int *ret_master,
                   int *ret_terminal, struct error *error)
{
    CLEANUP_CLOSE int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int unlock = 0;
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) != 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno,
                               "cannot open a terminal in the sandbox");
    int terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || !prepare(terminal, owner, group, columns, rows)) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot set up a terminal in the sandbox");
        if (terminal >= 0)
            close(terminal);
        return false;
    }
    *ret_master = master;
    *ret_terminal = terminal;
    master = -1;
    return true;
}

bool terminal_take(int terminal, struct error *error)
{
    if (ioctl(terminal, TIOCSCTTY, 0) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno,
                               "cannot make the terminal the controlling one");
    return true;
}
