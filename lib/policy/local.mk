# Build rules of lib/policy/.
noinst_LIBRARIES += libpolicy.a
libpolicy_a_SOURCES = \
	lib/policy/canonical.c \
	lib/policy/effective.c \
	lib/policy/policy.h \
	lib/policy/validate.c
$(libpolicy_a_OBJECTS): | proto/generated.stamp

