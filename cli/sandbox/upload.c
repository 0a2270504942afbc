/* openshell sandbox upload: copies a file or a directory into a sandbox. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/command.h"
#include "client/copy.h"
#include "client/copy_source.h"
#include "client/failure.h"

static struct {
    bool no_git_ignore;
} given;

static const struct option options[] = {
    {.type = OPTION_FLAG,
     .name = "no-git-ignore",
     .value = &given.no_git_ignore,
     .help = "Send also what git ignores, and the directory .git"},
    {0},
};

static int run(const struct invocation *invocation, struct error *error)
{
    struct copy_source source;
    const char *dest = invocation->word_count > 2 ? invocation->words[2] : ".";
    struct copy copy = {.direction = ARCHIVE_UPLOAD,
                        .sandbox = invocation->words[0],
                        .path = dest,
                        .shown = invocation->words[1]};
    if (!copy_source_open(&source, copy.shown, dest, given.no_git_ignore, error) ||
        !copy_source_start(&source, &copy, error))
        return -1;
    return copy_run(&copy, error);
}

const struct command command_sandbox_upload = {
    .usage = "[OPTIONS] NAME PATH [DEST]",
    .description =
        "Copies the file or directory PATH into the sandbox NAME. DEST is a path in the\n"
        "sandbox, relative to its working directory, which is also the default.\n"
        "A file becomes DEST, or lands in it when DEST is a directory or ends in a slash.\n"
        "A directory becomes DEST/NAME and is merged with what is there; of \"DIR/.\" the\n"
        "contents land in DEST. Links stay links. In a git work tree the files that git\n"
        "ignores stay behind, and the directory .git. PATH may be - for standard input.\n"
        "Nothing gets its name in the sandbox before all of it has arrived.",
    .examples = "  openshell sandbox upload demo notes.txt\n"
                "  openshell sandbox upload demo src work/\n"
                "  date | openshell sandbox upload demo - now.txt",
    .options = options,
    .completes = "sandboxes files nothing",
    .least_words = 2,
    .most_words = 3,
    .run = run,
};
