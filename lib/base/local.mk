# Build rules of lib/base/: what every executable may use.
noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	lib/base/arena.c lib/base/arena.h \
	lib/base/base64.c lib/base/base64.h \
	lib/base/buffer.c lib/base/buffer.h \
	lib/base/clock.c lib/base/clock.h \
	lib/base/daemon.c lib/base/daemon.h \
	lib/base/error.c lib/base/error.h \
	lib/base/file.c lib/base/file.h \
	lib/base/log.c lib/base/log.h \
	lib/base/memory.c lib/base/memory.h \
	lib/base/paths.c lib/base/paths.h \
	lib/base/reactor.c lib/base/reactor.h \
	lib/base/table.c lib/base/table.h \
	lib/base/text.c lib/base/text.h \
	lib/base/trim.c lib/base/trim.h \
	lib/base/uuid.c lib/base/uuid.h

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_file tests/unit/test_log tests/unit/test_reactor
TESTS += tests/unit/test_file tests/unit/test_log tests/unit/test_reactor
tests_unit_test_file_SOURCES = tests/unit/test_file.c
tests_unit_test_file_LDADD = libbase.a $(PROTOBUF_C_STATIC) $(UV_STATIC) $(CMOCKA_LIBS)
tests_unit_test_log_SOURCES = tests/unit/test_log.c
tests_unit_test_log_LDADD = libbase.a $(PROTOBUF_C_STATIC) $(UV_STATIC) $(CMOCKA_LIBS)
tests_unit_test_reactor_SOURCES = tests/unit/test_reactor.c
tests_unit_test_reactor_LDADD = libbase.a $(PROTOBUF_C_STATIC) $(UV_STATIC) $(CMOCKA_LIBS)
endif
