/* Fuzzes archive_receive: whatever arrives, nothing outside of the destination changes, nothing of
 * a refused archive stays, and what stays is of a kind that may.
 *
 * The first byte of an input chooses options, the rest is the stream. Checksums of what looks like
 * headers are made right, so that changes reach the code behind them. With clang:
 *   clang -fsanitize=fuzzer,address ... tests/fuzz/fuzz_archive.c tests/archive/tar_maker.c \
 *       libtransfer.a libbase.a -larchive
 * Otherwise compile with -DFUZZ_MAIN: the program then runs archives of its own making, and for
 * each a sequence of mutations; arguments: how many (default 500), and where it begins (default 1).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/remove.h"
#include "archive/transfer.h"
#include "tests/archive/tar_maker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 65536 };

static int top = -1, destination = -1;
static char top_path[64];

static void fail(const char *what)
{
    fprintf(stderr, "fuzz_archive: %s (in %s)\n", what, top_path);
    abort();
}

/* "dest" to receive into, beside what must stay as it is. */
static void set_up(void)
{
    snprintf(top_path, sizeof(top_path), "%s/openshell-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(top_path) == NULL)
        fail("no directory");
    top = open(top_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || mkdirat(top, "dest", 0755) != 0 || symlinkat("/", top, "victim") != 0)
        fail("no directories");
    destination = openat(top, "dest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static size_t count(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(copy);
    size_t entries = 0;
    while (stream != NULL && readdir(stream) != NULL)
        entries++;
    if (stream != NULL)
        closedir(stream);
    return entries - 2;
}

/* Only directories, files and links, without special bits. */
static void check_tree(int directory, unsigned depth)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(copy);
    struct dirent *entry;
    if (depth > ARCHIVE_DEPTH_MAX)
        fail("too deep");
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (strncmp(entry->d_name, ".openshell-", 11) == 0)
            fail("a private directory was left");
        if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
            fail("a special file");
        if (!S_ISLNK(status.st_mode) && (status.st_mode & 07000) != 0)
            fail("special bits");
        if (!S_ISDIR(status.st_mode))
            continue;
        int below = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (below >= 0) {
            check_tree(below, depth + 1);
            close(below);
        }
    }
    if (stream != NULL)
        closedir(stream);
}

static void fix_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 512 <= size; at += 512) {
        if (memcmp(data + at + 257, "ustar", 5) != 0)
            continue;
        unsigned sum = 0;
        memset(data + at + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
            sum += data[at + i];
        char text[8];
        snprintf(text, sizeof(text), "%06o", sum);
        memcpy(data + at + 148, text, 7);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (top < 0)
        set_up();
    if (size == 0 || size > INPUT_MAX)
        return 0;
    struct archive_receive_options options = {.trailer_optional = (data[0] & 1) != 0,
                                              .bytes_max = 1 << 20,
                                              .entries_max = 10000,
                                              .control = {.cancel = -1}};
    uint8_t *copy = malloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 1, size - 1);
    if ((data[0] & 2) == 0)
        fix_checksums(copy, size - 1);
    int input = memfd_create("input", MFD_CLOEXEC);
    if (input < 0 || write(input, copy, size - 1) != (ssize_t)size - 1 ||
        lseek(input, 0, SEEK_SET) != 0)
        fail("no input");
    free(copy);
    bool was_empty = count(destination) == 0;
    struct archive_summary summary;
    struct error error = {0};
    bool received = archive_receive(input, destination, &options, &summary, &error);
    close(input);
    if (!received && error.code == ERROR_OK)
        fail("a failure without an error");
    if (!received && was_empty && count(destination) != 0)
        fail("something of a refused archive was left");
    if (summary.incomplete != (summary.issue_count > 0))
        fail("the summary contradicts itself");
    check_tree(destination, 0);
    if (count(top) != 2)
        fail("something appeared beside the destination");
    /* Often the next archive meets what this one left. */
    if ((data[0] & 4) == 0 && !remove_below(destination))
        fail("cannot be removed");
    archive_summary_clear(&summary);
    error_clear(&error);
    return 0;
}

#ifdef FUZZ_MAIN

static uint64_t random_state = 1;

static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return limit == 0 ? 0 : random_state % limit;
}

/* Exchanges one name of an archive for one that leads elsewhere, in place. */
static void plant(uint8_t *data, size_t size)
{
    static const char *const WORDS[] = {"../x",    "/x",    "..",  ".",           "",
                                        "d",       "l",     "l/f", "d/f",         "h",
                                        "path=..", "size=", "-1",  "999999999999"};
    const char *word = WORDS[random_below(sizeof(WORDS) / sizeof(WORDS[0]))];
    size_t at = random_below(2) == 0
                    ? random_below(size / 512 + 1) * 512 + (random_below(2) == 0 ? 0 : 157)
                    : random_below(size);
    if (at + strlen(word) + 1 <= size)
        memcpy(data + at, word, strlen(word) + random_below(2));
}

static size_t mutate(uint8_t *data, size_t size)
{
    static const uint8_t interesting[] = "\0\x01\x7F\x80\xFF/.=\n0123456789xgLKSD ";
    for (size_t steps = 1 + random_below(5); steps > 0 && size > 512; steps--) {
        size_t at = random_below(size), header = random_below(size / 512) * 512;
        switch (random_below(8)) {
        case 0:
            data[at] ^= (uint8_t)(1U << random_below(8));
            break;
        case 1:
            data[at] = interesting[random_below(sizeof(interesting))];
            break;
        case 2: /* type */
            data[header + 156] = interesting[random_below(sizeof(interesting))];
            break;
        case 3: /* size */
            data[header + 124 + random_below(12)] = interesting[random_below(sizeof(interesting))];
            break;
        case 4: /* a block goes */
            memmove(data + header, data + header + 512, size - header - 512);
            size -= 512;
            break;
        case 5: /* a block comes twice */
            if (size + 512 <= INPUT_MAX - 1) {
                memmove(data + header + 512, data + header, size - header);
                size += 512;
            }
            break;
        case 6:
            size -= random_below(8) == 0 ? random_below(size / 2) : 0;
            break;
        default:
            plant(data, size);
            break;
        }
    }
    return size;
}

static void make_seeds(struct tar_maker *seeds)
{
    tar_directory(&seeds[0], "./", 0755);
    tar_directory(&seeds[0], "d", 0500);
    tar_file(&seeds[0], "d/f", "content");
    tar_symlink(&seeds[0], "l", "d");
    tar_hard_link(&seeds[0], "h", "d/f");
    tar_file(&seeds[0], "f", "content");

    tar_symlink(&seeds[1], "x", "../victim");
    tar_file(&seeds[1], "x/evil", "evil");
    tar_hard_link(&seeds[1], "h", "x/etc/passwd");
    tar_special(&seeds[1], "fifo", '6');

    tar_pax_text(&seeds[2], 'g', "comment", "global");
    tar_pax(&seeds[2], 'x',
            (struct tar_record[]){{"path", "d/long", 6},
                                  {"mtime", "1.5", 3},
                                  {"hdrcharset", "BINARY", 6},
                                  {"size", "7", 1}},
            4);
    tar_file(&seeds[2], "short", "content");
    tar_gnu_long(&seeds[2], 'L', "d/gnu\0", 6);
    tar_gnu_long(&seeds[2], 'K', "target\0", 7);
    tar_symlink(&seeds[2], "short", "short");

    tar_pax(&seeds[3], 'x',
            (struct tar_record[]){{"GNU.sparse.major", "1", 1},
                                  {"GNU.sparse.minor", "0", 1},
                                  {"GNU.sparse.name", "sparse", 6},
                                  {"GNU.sparse.realsize", "100000", 6}},
            4);
    char map[520] = "2\n10\n4\n99996\n4\n";
    memcpy(map + 512, "abcdefgh", 8);
    tar_file_bytes(&seeds[3], "GNUSparseFile.0/x", map, 520);
    tar_header(&seeds[3], &(struct tar_header){.name = "old-sparse", .type = 'S'});
    tar_header(&seeds[3], &(struct tar_header){.name = "dump", .type = 'D', .size = 5});
    tar_raw(&seeds[3], "Yfile", 5);
    tar_pad(&seeds[3]);
}

int main(int argc, char **argv)
{
    struct tar_maker seeds[4] = {0};
    size_t mutations = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    random_state = argc > 2 ? strtoul(argv[2], NULL, 10) | 1 : 1;
    make_seeds(seeds);
    for (size_t i = 0; i < 4; i++) {
        static uint8_t original[INPUT_MAX], changed[INPUT_MAX];
        tar_end(&seeds[i]);
        memcpy(original + 1, seeds[i].data, seeds[i].length);
        size_t size = seeds[i].length, changed_size = 0;
        LLVMFuzzerTestOneInput(original, size + 1);
        for (size_t j = 0; j < mutations; j++) {
            if (j % 8 == 0 || changed_size <= 512) {
                memcpy(changed, original, size + 1);
                changed_size = size;
            }
            changed[0] = (uint8_t)random_below(256);
            changed_size = mutate(changed + 1, changed_size);
            LLVMFuzzerTestOneInput(changed, changed_size + 1);
        }
        tar_free(&seeds[i]);
    }
    remove_below(top);
    rmdir(top_path);
    printf("%zu inputs\n", 4 * (mutations + 1));
    return 0;
}

#endif
