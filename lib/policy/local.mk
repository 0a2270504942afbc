# Build rules of lib/policy/.
noinst_LIBRARIES += libpolicy.a
libpolicy_a_SOURCES = \
	lib/policy/canonical.c \
	lib/policy/effective.c \
	lib/policy/policy.h \
	lib/policy/validate.c
$(libpolicy_a_OBJECTS): | proto/generated.stamp

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_policy
TESTS += tests/unit/test_policy
tests_unit_test_policy_SOURCES = tests/unit/test_policy.c tests/unit/gateway_fixture.h
tests_unit_test_policy_LDADD = libpolicy.a libproto.a libbase.a $(PROTOBUF_C_STATIC) \
	$(OPENSSL_STATIC) $(UV_STATIC) $(CMOCKA_LIBS)
$(tests_unit_test_policy_OBJECTS): | proto/tables.stamp
endif
