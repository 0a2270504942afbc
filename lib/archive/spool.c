#include "archive/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive/stream.h"
#include "base/file.h"
#include "base/memory.h"

static int open_unnamed(struct error *error)
{
    const char *directory = getenv("TMPDIR");
    if (directory == NULL || *directory == '\0')
        directory = "/var/tmp";
    int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) {
        if (file < 0)
            error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a temporary file in '%s'",
                            directory);
        return file;
    }
    CLEANUP_FREE char *path = memory_printf("%s/openshell-XXXXXX", directory);
    file = mkostemp(path, O_CLOEXEC);
    if (file < 0)
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a temporary file in '%s'",
                        directory);
    else
        unlink(path);
    return file;
}

int spool_input(int input, const struct archive_control *control,
                const struct archive_summary *summary, struct error *error)
{
    int file = open_unnamed(error);
    if (file < 0)
        return -1;
    struct stream_input stream;
    stream_input_open(&stream, input, control, summary, error);
    const unsigned char *data = NULL;
    ssize_t got;
    while ((got = stream_input_next(&stream, &data)) > 0)
        if (!file_write_all(file, data, (size_t)got, error)) {
            got = -1;
            break;
        }
    stream_input_close(&stream);
    if (got == 0)
        return file;
    close(file);
    return -1;
}
