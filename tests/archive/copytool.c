/* Sends or receives at the command line, for measurements and for tests against other programs:
 *   copytool send BASE PATH NAME >ARCHIVE
 *   copytool receive [--plain] DIRECTORY <ARCHIVE
 * Exits with 0, 3 when something was left out, 1 on failure. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/transfer.h"

static int report(bool good, struct archive_summary *summary, struct error *error)
{
    for (size_t i = 0; i < archive_summary_kept(summary); i++)
        fprintf(stderr, "%s: %s\n", summary->issues[i].name, summary->issues[i].reason);
    if (good)
        fprintf(stderr, "%" PRIu64 " entries, %" PRIu64 " bytes\n", summary->entries,
                summary->bytes);
    else
        fprintf(stderr, "%s: %s\n", error_code_name(error->code), error->message);
    int code = !good ? 1 : summary->incomplete ? 3 : 0;
    archive_summary_clear(summary);
    error_clear(error);
    return code;
}

int main(int count, char **arguments)
{
    struct archive_summary summary;
    struct error error = {0};
    if (count == 5 && strcmp(arguments[1], "send") == 0) {
        int base = open(arguments[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct archive_send_options options = {
            .base = base, .path = arguments[3], .name = arguments[4], .control = {.cancel = -1}};
        return report(archive_send(STDOUT_FILENO, &options, &summary, &error), &summary, &error);
    }
    if (count >= 3 && strcmp(arguments[1], "receive") == 0) {
        int directory = open(arguments[count - 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct archive_receive_options options = {
            .trailer_optional = strcmp(arguments[2], "--plain") == 0, .control = {.cancel = -1}};
        return report(archive_receive(STDIN_FILENO, directory, &options, &summary, &error),
                      &summary, &error);
    }
    fputs("usage: copytool send BASE PATH NAME | receive [--plain] DIRECTORY\n", stderr);
    return 2;
}
