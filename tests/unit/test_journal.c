/* Journals: bounds, filters, readers that fall behind, cursors, and lines that arrive twice. */
#include "gateway_fixture.h"

#include "gateway/journal.h"

#define ID "00000000-0000-4000-8000-000000000001"

struct line {
    Openshell__V1__SandboxLogLine message;
    Google__Protobuf__Timestamp time;
};

static void make_line(struct line *line, int64_t seconds, const char *level, const char *text)
{
    google__protobuf__timestamp__init(&line->time);
    line->time.seconds = seconds;
    openshell__v1__sandbox_log_line__init(&line->message);
    line->message.event_time = seconds > 0 ? &line->time : NULL;
    line->message.level = (char *)level;
    line->message.target = (char *)"t";
    line->message.message = (char *)text;
}

static bool add(struct journal *journal, int64_t seconds, const char *level, const char *source,
                const char *text)
{
    struct line line;
    make_line(&line, seconds, level, text);
    return journal_add_line(journal, &line.message, source);
}

static void add_numbered(struct journal *journal, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%zu", i);
        assert_true(add(journal, (int64_t)i + 3, "INFO", "sandbox", text));
    }
}

static void add_event(struct journal *journal, const char *reason)
{
    Openshell__V1__PlatformEvent event = OPENSHELL__V1__PLATFORM_EVENT__INIT;
    event.reason = (char *)reason;
    journal_add_event(journal, &event);
}

/* Everything that a reader gets, in one line. */
static const char *read_all(const struct journal *journal, struct journal_reader *reader,
                            const struct journal_filter *filter, uint64_t *ret_lost)
{
    static char text[8192];
    size_t used = 0;
    const struct journal_entry *entry;
    uint64_t lost;
    text[0] = '\0';
    *ret_lost = 0;
    do {
        entry = journal_read(journal, reader, &lost);
        *ret_lost += lost;
        if (entry != NULL && (filter == NULL || journal_filter_matches(filter, entry)))
            used +=
                (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? " " : "",
                                 entry->line != NULL ? entry->line->message : entry->event->reason);
    } while (entry != NULL);
    return text;
}

static int setup(void **state)
{
    *state = journals_new();
    return 0;
}

static int teardown(void **state)
{
    journals_free(*state);
    return 0;
}

static void test_bounds(void **state)
{
    struct journals *journals = *state;
    struct journal *journal = journals_obtain(journals, ID);
    add_numbered(journal, 5000);
    assert_int_equal(journal_line_count(journal), JOURNAL_LINES_LIMIT);
    for (size_t i = 0; i < 100; i++)
        add_event(journal, "r");
    struct journal_reader reader = {.events = true};
    uint64_t lost;
    read_all(journal, &reader, NULL, &lost);
    assert_int_equal(lost, 100 - JOURNAL_EVENTS_LIMIT);
    journals_forget(journals, ID);
    assert_int_equal(journals_bytes(journals), 0);
    assert_null(journals_find(journals, ID));
    journals_forget(journals, ID);
}

/* Long lines, cut where they are too long, at a character. */
static void test_bytes(void **state)
{
    struct journals *journals = *state;
    struct journal *journal = journals_obtain(journals, ID);
    static char huge[3 * JOURNAL_MESSAGE_LIMIT];
    for (size_t i = 0; i + 3 < sizeof(huge); i += 3)
        memcpy(huge + i, "\xe6\x97\xa5", 3);
    for (size_t i = 0; i < 1000; i++)
        add(journal, (int64_t)i + 1, huge, "sandbox", huge);
    assert_true(journals_bytes(journals) <= JOURNAL_BYTES_LIMIT);
    assert_true(journals_bytes(journals) > JOURNAL_BYTES_LIMIT / 2);
    struct journal_reader reader = {.lines = true};
    uint64_t lost;
    const struct journal_entry *entry = journal_read(journal, &reader, &lost);
    assert_int_equal(strlen(entry->line->message), JOURNAL_MESSAGE_LIMIT / 3 * 3);
    assert_int_equal(strlen(entry->line->level), JOURNAL_WORD_LIMIT / 3 * 3);
    assert_int_equal(lost + journal_line_count(journal), 1000);
}

/* Of many that flood, none grows the whole beyond its bound; a quiet one keeps what it has. */
static void test_total(void **state)
{
    struct journals *journals = *state;
    static char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    struct journal *quiet = journals_obtain(journals, "quiet");
    add(quiet, 1, "INFO", "sandbox", "kept");
    for (int i = 0; i < 100; i++) {
        char id[16];
        snprintf(id, sizeof(id), "%d", i);
        struct journal *journal = journals_obtain(journals, id);
        for (int64_t j = 1; j < 1000; j++)
            add(journal, j, "INFO", "sandbox", text);
        assert_true(journals_bytes(journals) <= JOURNALS_BYTES_LIMIT);
    }
    assert_true(journals_bytes(journals) > JOURNALS_BYTES_LIMIT / 2);
    assert_int_equal(journal_line_count(quiet), 1);
}

static void test_filter(void **state)
{
    struct journal *journal = journals_obtain(*state, ID);
    add(journal, 10, "DEBUG", "sandbox", "debug");
    add(journal, 20, "INFO", "gateway", "info");
    add(journal, 30, "OCSF", "sandbox", "ocsf");
    add(journal, 40, "WARN", "sandbox", "warn");
    add(journal, 50, "error", "gateway", "error");
    static const struct {
        int64_t since;
        const char *source;
        const char *level;
        size_t lines;
        const char *expected;
    } cases[] = {
        {0, NULL, "", 99, "debug info ocsf warn error"},
        {0, NULL, "TRACE", 99, "debug info ocsf warn error"},
        {0, NULL, "INFO", 99, "info ocsf warn error"},
        {0, NULL, "warn", 99, "warn error"},
        {0, NULL, "ERROR", 99, "error"},
        {0, NULL, "NONSENSE", 99, "debug info ocsf warn error"},
        {0, "sandbox", "", 99, "debug ocsf warn"},
        {0, "gateway", "INFO", 99, "info error"},
        {0, "nobody", "", 99, ""},
        {30, NULL, "", 99, "ocsf warn error"},
        {51, NULL, "", 99, ""},
        /* The last so many of those that pass, not those that pass among the last. */
        {0, "sandbox", "", 2, "ocsf warn"},
        {0, NULL, "", 0, ""},
        {0, NULL, "", 1, "error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        Google__Protobuf__Timestamp since = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
        since.seconds = cases[i].since;
        char *sources[] = {(char *)cases[i].source};
        struct journal_filter filter;
        journal_filter_init(&filter, cases[i].since > 0 ? &since : NULL, sources,
                            cases[i].source != NULL, cases[i].level);
        struct journal_reader reader = {.lines = true};
        uint64_t lost;
        journal_seek_tail(journal, &filter, cases[i].lines, 0, &reader);
        assert_string_equal(read_all(journal, &reader, &filter, &lost), cases[i].expected);
    }
}

static void test_order(void **state)
{
    struct journal *journal = journals_obtain(*state, ID);
    add(journal, 0, "INFO", "gateway", "a");
    add_event(journal, "B");
    add(journal, 0, "INFO", "gateway", "c");
    add_event(journal, "D");
    struct journal_reader reader = {.lines = true, .events = true};
    uint64_t lost;
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "a B c D");
    add(journal, 0, "INFO", "gateway", "e");
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "e");
    struct journal_filter filter = {0};
    journal_seek_tail(journal, &filter, 1, 1, &reader);
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "D e");
    reader = (struct journal_reader){.lines = true};
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "a c e");
}

/* A reader that sleeps is told exactly how many it missed, and goes on with the oldest kept. */
static void test_lag(void **state)
{
    struct journal *journal = journals_obtain(*state, ID);
    struct journal_reader reader = {.lines = true};
    uint64_t lost;
    add_numbered(journal, 10);
    assert_string_equal(journal_read(journal, &reader, &lost)->line->message, "0");
    assert_int_equal(lost, 0);
    for (int64_t i = 0; i < JOURNAL_LINES_LIMIT; i++)
        add(journal, 100 + i, "INFO", "sandbox", "more");
    assert_string_equal(journal_read(journal, &reader, &lost)->line->message, "more");
    assert_int_equal(lost, 9);
    journal_read(journal, &reader, &lost);
    assert_int_equal(lost, 0);
}

static bool seek(const struct journal *journal, const char *cursor, struct journal_reader *reader,
                 enum error_code *ret_code)
{
    struct error error = {0};
    bool good = journal_seek_cursor(journal, cursor, reader, &error);
    *ret_code = error.code;
    error_clear(&error);
    return good;
}

static void test_cursor(void **state)
{
    struct journal *journal = journals_obtain(*state, ID);
    char cursors[6][JOURNAL_CURSOR_SIZE];
    struct journal_reader reader = {.lines = true, .events = true};
    enum error_code code;
    uint64_t lost;
    for (int i = 0; i < 3; i++) {
        char text[2] = {(char)('a' + i), '\0'};
        add(journal, 0, "INFO", "gateway", text);
        text[0] = (char)('A' + i);
        add_event(journal, text);
    }
    for (size_t i = 0; i < 6; i++)
        journal_cursor(journal, journal_read(journal, &reader, &lost), cursors[i]);
    for (size_t i = 0; i + 1 < 6; i++)
        assert_true(strcmp(cursors[i], cursors[i + 1]) < 0);
    assert_true(seek(journal, cursors[2], &reader, &code));
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "B c C");
    assert_true(seek(journal, cursors[5], &reader, &code));
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "");
    add(journal, 0, "INFO", "gateway", "d");
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "d");

    /* No cursors: nonsense, and one that nothing has yet. */
    static const char *const nonsense[] = {"",
                                           "x",
                                           "0123456789abcdef.000000000000000",
                                           "0123456789abcdef.0000000000000000",
                                           "0123456789abcdef:0000000000000001",
                                           "0123456789abcdeF.0000000000000001"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        assert_false(seek(journal, nonsense[i], &reader, &code));
        assert_int_equal(code, ERROR_INVALID_ARGUMENT);
    }
    char future[JOURNAL_CURSOR_SIZE];
    memcpy(future, cursors[0], sizeof(future));
    memcpy(future + 17, "00000000000000ff", 16);
    assert_false(seek(journal, future, &reader, &code));
    assert_int_equal(code, ERROR_INVALID_ARGUMENT);

    /* Of another journal, and one whose followers were dropped. */
    struct journal *other = journals_obtain(*state, "other");
    add(other, 0, "INFO", "gateway", "x");
    assert_false(seek(other, cursors[0], &reader, &code));
    assert_int_equal(code, ERROR_OUT_OF_RANGE);
    add_numbered(journal, JOURNAL_LINES_LIMIT + 1);
    assert_false(seek(journal, cursors[5], &reader, &code));
    assert_int_equal(code, ERROR_OUT_OF_RANGE);
    /* What this reader does not read may be gone. */
    reader = (struct journal_reader){.events = true};
    assert_true(seek(journal, cursors[1], &reader, &code));
    assert_string_equal(read_all(journal, &reader, NULL, &lost), "B C");
}

/* What a supervisor sends again is known; what only looks alike is not. */
static void test_again(void **state)
{
    struct journal *journal = journals_obtain(*state, ID);
    assert_true(add(journal, 1, "INFO", "sandbox", "a"));
    assert_true(add(journal, 2, "INFO", "sandbox", "a"));
    assert_false(add(journal, 1, "INFO", "sandbox", "a"));
    assert_false(add(journal, 2, "INFO", "sandbox", "a"));
    assert_true(add(journal, 2, "INFO", "sandbox", "b"));
    assert_true(add(journal, 1, "INFO", "gateway", "a"));
    assert_true(add(journal, 1, "INFO", "gateway", "a"));
    struct journal *timeless = journals_obtain(*state, "timeless");
    assert_true(add(timeless, 0, "INFO", "sandbox", "a"));
    assert_true(add(timeless, 0, "INFO", "sandbox", "a"));
    add_numbered(journal, JOURNAL_LINES_LIMIT + 100);
    assert_false(add(journal, 2, "INFO", "sandbox", "b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_total, setup, teardown),
        cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lag, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cursor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
