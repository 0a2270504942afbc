# Programs that try the boundary without a gateway; static, as the runtime is.
if !SANITIZERS
noinst_PROGRAMS += isolation-shell
isolation_shell_SOURCES = tests/isolation/sandbox_shell.c
isolation_shell_LDADD = libruntime.a $(ARCHIVE_LIBS) $(UV_STATIC) -lpthread
isolation_shell_LDFLAGS = $(AM_LDFLAGS) -static

# Runs inside, in any root.
noinst_PROGRAMS += isolation-attempts
isolation_attempts_SOURCES = \
	tests/isolation/attempts.c tests/isolation/attempts.h \
	tests/isolation/attempts_files.c tests/isolation/attempts_host.c \
	tests/isolation/attempts_kernel.c tests/isolation/attempts_processes.c \
	tests/isolation/attempts_rights.c tests/isolation/attempts_sockets.c
isolation_attempts_LDFLAGS = $(AM_LDFLAGS) -static

# Each as the user who runs it and, for root, as an ordinary user too.
isolation_tests = \
	tests/isolation/escapes.test \
	tests/isolation/life.test \
	tests/isolation/policy.test \
	tests/isolation/programs.test \
	tests/isolation/roots.test
TESTS += $(isolation_tests)
endif
EXTRA_DIST += \
	tests/isolation/escapes.test tests/isolation/escapes.bats \
	tests/isolation/life.test tests/isolation/life.bats \
	tests/isolation/policy.test tests/isolation/policy.bats \
	tests/isolation/programs.test tests/isolation/programs.bats \
	tests/isolation/roots.test tests/isolation/roots.bats \
	tests/isolation/helper.bash tests/isolation/run

isolation_units = \
	tests/unit/test_maker \
	tests/unit/test_maker_files \
	tests/unit/test_maker_parts
if HAVE_CMOCKA
check_PROGRAMS += $(isolation_units)
TESTS += $(isolation_units)
tests_unit_test_maker_SOURCES = tests/unit/test_maker.c
tests_unit_test_maker_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_maker_LDADD = libruntime.a $(ARCHIVE_LIBS) $(UV_STATIC) $(CMOCKA_LIBS) -lpthread
tests_unit_test_maker_files_SOURCES = tests/unit/test_maker_files.c
tests_unit_test_maker_files_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_maker_files_LDADD = libruntime.a $(ARCHIVE_LIBS) $(UV_STATIC) $(CMOCKA_LIBS) -lpthread
tests_unit_test_maker_parts_SOURCES = tests/unit/test_maker_parts.c
tests_unit_test_maker_parts_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_maker_parts_LDADD = libruntime.a $(ARCHIVE_LIBS) $(UV_STATIC) $(CMOCKA_LIBS) -lpthread
endif
