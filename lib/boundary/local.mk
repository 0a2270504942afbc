# Build rules of lib/boundary/: what gateway, supervisor and runtime agree on.
#
# Needs libproto.a, libbase.a, $(PROTOBUF_C_STATIC), $(JANSSON_STATIC) and libcrypto after it.
noinst_LIBRARIES += libboundary.a
libboundary_a_SOURCES = \
	lib/boundary/failure.c lib/boundary/failure.h \
	lib/boundary/launch.c lib/boundary/launch.h \
	lib/boundary/negotiation.c lib/boundary/negotiation.h \
	lib/boundary/operations.c lib/boundary/operations.h \
	lib/boundary/owner_lock.c lib/boundary/owner_lock.h \
	lib/boundary/protocol.h \
	lib/boundary/session_token.c lib/boundary/session_token.h \
	lib/boundary/spawner.c lib/boundary/spawner.h
$(libboundary_a_OBJECTS): | proto/generated.stamp

if HAVE_CMOCKA
boundary_ldadd = libboundary.a libproto.a libbase.a $(PROTOBUF_C_STATIC) $(JANSSON_STATIC) \
	-l:libcrypto.a $(UV_STATIC) -lpthread $(CMOCKA_LIBS)
boundary_tests = \
	tests/unit/test_boundary_frames \
	tests/unit/test_boundary_negotiation \
	tests/unit/test_boundary_owner_lock \
	tests/unit/test_launch \
	tests/unit/test_operations \
	tests/unit/test_session_token
check_PROGRAMS += $(boundary_tests)
TESTS += $(boundary_tests)
tests_unit_test_boundary_frames_SOURCES = \
	tests/unit/test_boundary_frames.c tests/unit/boundary_frames.inc
tests_unit_test_boundary_frames_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_frames_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_boundary_frames_LDADD = $(boundary_ldadd)
tests_unit_test_boundary_negotiation_SOURCES = tests/unit/test_boundary_negotiation.c
tests_unit_test_boundary_negotiation_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_negotiation_LDADD = $(boundary_ldadd)
tests_unit_test_boundary_owner_lock_SOURCES = tests/unit/test_boundary_owner_lock.c
tests_unit_test_boundary_owner_lock_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_owner_lock_LDADD = $(boundary_ldadd)
tests_unit_test_launch_SOURCES = tests/unit/test_launch.c
tests_unit_test_launch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_launch_LDADD = $(boundary_ldadd)
tests_unit_test_operations_SOURCES = tests/unit/test_operations.c
tests_unit_test_operations_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_operations_LDADD = $(boundary_ldadd)
tests_unit_test_session_token_SOURCES = tests/unit/test_session_token.c
tests_unit_test_session_token_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_session_token_LDADD = $(boundary_ldadd)
endif
