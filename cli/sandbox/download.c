/* openshell sandbox download: copies a file or a directory out of a sandbox. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/command.h"
#include "client/copy.h"

static const struct option options[] = {{0}};

static bool receive(void *data, int stream, const struct archive_control *control,
                    struct archive_summary *summary, struct error *error)
{
    const char *dest = data;
    struct archive_chooser chooser = {.direction = ARCHIVE_DOWNLOAD,
                                      .dest = dest,
                                      .output = strcmp(dest, "-") == 0 ? STDOUT_FILENO : -1};
    const struct archive_receive_options receive_options = {
        .choose_place = archive_chooser_place, .choose_place_data = &chooser, .control = *control};
    bool good = archive_receive(stream, -1, &receive_options, summary, error);
    if (!good && chooser.output < 0)
        archive_chooser_undo(&chooser);
    return good;
}

static int run(const struct invocation *invocation, struct error *error)
{
    const char *dest = invocation->word_count > 2 ? invocation->words[2] : ".";
    struct copy copy = {.direction = ARCHIVE_DOWNLOAD,
                        .sandbox = invocation->words[0],
                        .path = invocation->words[1],
                        .shown = invocation->words[1]};
    if (!copy_child_start(&copy.child, receive, (void *)dest, error))
        return -1;
    return copy_run(&copy, error);
}

const struct command command_sandbox_download = {
    .usage = "[OPTIONS] NAME PATH [DEST]",
    .description =
        "Copies the file or directory PATH out of the sandbox NAME. PATH lies in the\n"
        "sandbox's working directory. A file becomes DEST, or lands in it when DEST is a\n"
        "directory or ends in a slash. The contents of a directory land in DEST, which is\n"
        "made if it is missing. DEST is the current directory when it is not given, and may\n"
        "be - for standard output. Nothing is ever written outside of DEST, and nothing gets\n"
        "its name before all of it has arrived.",
    .examples = "  openshell sandbox download demo report.pdf\n"
                "  openshell sandbox download demo results results/\n"
                "  openshell sandbox download demo log.txt - | less",
    .options = options,
    .completes = "sandboxes nothing files",
    .least_words = 2,
    .most_words = 3,
    .run = run,
};
