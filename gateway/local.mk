# Build rules of gateway/: what decides and what remembers, without a socket.
noinst_LIBRARIES += libgatewaycore.a
libgatewaycore_a_SOURCES = \
	gateway/admission.c gateway/admission.h \
	gateway/conditions.c gateway/conditions.h \
	gateway/journal.c gateway/journal.h \
	gateway/labels.c gateway/labels.h \
	gateway/lifecycle.c gateway/lifecycle.h \
	gateway/lifecycle_effects.c \
	gateway/lifecycle_guards.c \
	gateway/lifecycle_rules.c gateway/lifecycle_rules.h \
	gateway/names.c gateway/names.h \
	gateway/pages.c gateway/pages.h \
	gateway/records.c gateway/records.h \
	gateway/store/backend.h \
	gateway/store/sqlite.c gateway/store/sqlite_backend.h \
	gateway/store/sqlite_file.c gateway/store/sqlite_file.h \
	gateway/store/sqlite_list.c \
	gateway/store/sqlite_statements.c \
	gateway/store/sqlite_schema.c gateway/store/sqlite_schema.h \
	gateway/store/store.c gateway/store/store.h \
	gateway/validate.c gateway/validate.h \
	gateway/validate_exec.c \
	gateway/validate_parts.c gateway/validate_parts.h \
	gateway/validate_sandbox.c
libgatewaycore_a_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
$(libgatewaycore_a_OBJECTS): | proto/tables.stamp

# What a program needs besides RPC_LIBS, and before it.
GATEWAY_CORE_LIBS = libgatewaycore.a libpolicy.a $(SQLITE_STATIC) $(JANSSON_STATIC)
SQLITE_STATIC = -l:libsqlite3.a -lm -ldl -lpthread

include gateway/service.mk

if HAVE_CMOCKA
gateway_tests = \
	tests/unit/test_admission \
	tests/unit/test_journal \
	tests/unit/test_labels \
	tests/unit/test_lifecycle \
	tests/unit/test_names \
	tests/unit/test_pages \
	tests/unit/test_records \
	tests/unit/test_store \
	tests/unit/test_validate
check_PROGRAMS += $(gateway_tests)
TESTS += $(gateway_tests)
gateway_test_libraries = $(GATEWAY_CORE_LIBS) libproto.a libbase.a $(PROTOBUF_C_STATIC) \
	$(OPENSSL_STATIC) $(UV_STATIC) $(CMOCKA_LIBS)
tests_unit_test_admission_SOURCES = tests/unit/test_admission.c tests/unit/gateway_fixture.h
tests_unit_test_admission_LDADD = $(gateway_test_libraries)
tests_unit_test_journal_SOURCES = tests/unit/test_journal.c tests/unit/gateway_fixture.h
tests_unit_test_journal_LDADD = $(gateway_test_libraries)
tests_unit_test_labels_SOURCES = tests/unit/test_labels.c tests/unit/gateway_fixture.h
tests_unit_test_labels_LDADD = $(gateway_test_libraries)
tests_unit_test_lifecycle_SOURCES = tests/unit/test_lifecycle.c tests/unit/gateway_fixture.h
tests_unit_test_lifecycle_LDADD = $(gateway_test_libraries)
tests_unit_test_names_SOURCES = tests/unit/test_names.c tests/unit/gateway_fixture.h
tests_unit_test_names_LDADD = $(gateway_test_libraries)
tests_unit_test_pages_SOURCES = tests/unit/test_pages.c tests/unit/gateway_fixture.h
tests_unit_test_pages_LDADD = $(gateway_test_libraries)
tests_unit_test_records_SOURCES = tests/unit/test_records.c tests/unit/gateway_fixture.h
tests_unit_test_records_LDADD = $(gateway_test_libraries)
tests_unit_test_store_SOURCES = tests/unit/test_store.c tests/unit/gateway_fixture.h
tests_unit_test_store_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_store_LDADD = $(gateway_test_libraries)
tests_unit_test_validate_SOURCES = tests/unit/test_validate.c tests/unit/gateway_fixture.h
tests_unit_test_validate_LDADD = $(gateway_test_libraries)
$(tests_unit_test_admission_OBJECTS) \
	$(tests_unit_test_journal_OBJECTS) \
	$(tests_unit_test_labels_OBJECTS) \
	$(tests_unit_test_lifecycle_OBJECTS) \
	$(tests_unit_test_names_OBJECTS) \
	$(tests_unit_test_pages_OBJECTS) \
	$(tests_unit_test_records_OBJECTS) \
	$(tests_unit_test_store_OBJECTS) \
	$(tests_unit_test_validate_OBJECTS): | proto/tables.stamp
endif
