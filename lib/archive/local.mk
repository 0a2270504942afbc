# Build rules of lib/archive/: file copies and images of roots, as streams in tar format.
#
# Needs libbase.a after it, and of libarchive the tar format alone:
#   ARCHIVE_LIBS       for copies (transfer.h, destination.h); 140 KB. One function that the pax
#                      format needs lies in an object that refers to every other format: they are
#                      discarded, and with them what they would need
#   ARCHIVE_ROOT_LIBS  for images of roots too (root.h): gzip, zstd, JSON, SHA-256
noinst_LIBRARIES += libtransfer.a
libtransfer_a_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS)
libtransfer_a_SOURCES = \
	lib/archive/beneath.c lib/archive/beneath.h \
	lib/archive/blocks.c lib/archive/blocks.h \
	lib/archive/destination.c lib/archive/destination.h \
	lib/archive/link_table.c lib/archive/link_table.h \
	lib/archive/locale.c lib/archive/locale.h \
	lib/archive/merge.c lib/archive/merge.h \
	lib/archive/name.c lib/archive/name.h \
	lib/archive/place.c \
	lib/archive/reader.c lib/archive/reader.h \
	lib/archive/receive.c \
	lib/archive/remove.c lib/archive/remove.h \
	lib/archive/send.c \
	lib/archive/sender.c lib/archive/sender.h \
	lib/archive/sender_file.c lib/archive/sender_file.h \
	lib/archive/spool.c lib/archive/spool.h \
	lib/archive/staging.c lib/archive/staging.h \
	lib/archive/stream.c lib/archive/stream.h \
	lib/archive/summary.c lib/archive/summary.h \
	lib/archive/transfer.h \
	lib/archive/tree.c lib/archive/tree.h \
	lib/archive/unpack.c lib/archive/unpack.h

ARCHIVE_LIBS = libtransfer.a libbase.a $(ARCHIVE_STATIC)
ARCHIVE_ROOT_LIBS = $(ARCHIVE_LIBS) -l:libz.a -l:libzstd.a $(JANSSON_STATIC) -l:libcrypto.a

check_PROGRAMS += tests/archive/copytool
tests_archive_copytool_SOURCES = tests/archive/copytool.c
tests_archive_copytool_LDADD = $(ARCHIVE_LIBS)

# Archives of the fuzzer's own with fixed mutations; the source says how to fuzz for real.
check_PROGRAMS += tests/fuzz/fuzz_archive
TESTS += tests/fuzz/fuzz_archive
tests_fuzz_fuzz_archive_SOURCES = tests/fuzz/fuzz_archive.c tests/archive/tar_maker.c tests/archive/tar_maker.h
tests_fuzz_fuzz_archive_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_MAIN
tests_fuzz_fuzz_archive_LDADD = $(ARCHIVE_LIBS)

if HAVE_CMOCKA
archive_tests = \
	tests/unit/test_archive_copy \
	tests/unit/test_archive_destination \
	tests/unit/test_archive_hostile
check_PROGRAMS += $(archive_tests)
TESTS += $(archive_tests)
archive_fixture = \
	tests/archive/place.c tests/archive/place.h \
	tests/archive/tar_maker.c tests/archive/tar_maker.h
archive_ldadd = $(ARCHIVE_LIBS) -lpthread $(CMOCKA_LIBS)
tests_unit_test_archive_copy_SOURCES = tests/unit/test_archive_copy.c $(archive_fixture)
tests_unit_test_archive_copy_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_archive_copy_LDADD = $(archive_ldadd)
tests_unit_test_archive_destination_SOURCES = tests/unit/test_archive_destination.c $(archive_fixture)
tests_unit_test_archive_destination_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_archive_destination_LDADD = $(archive_ldadd)
tests_unit_test_archive_hostile_SOURCES = tests/unit/test_archive_hostile.c $(archive_fixture)
tests_unit_test_archive_hostile_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_archive_hostile_LDADD = $(archive_ldadd)
endif
