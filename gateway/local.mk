# Build rules of gateway/: what decides and what remembers, without a socket.
noinst_LIBRARIES += libgatewaycore.a
libgatewaycore_a_SOURCES = \
	gateway/admission.c gateway/admission.h \
	gateway/conditions.c gateway/conditions.h \
	gateway/labels.c gateway/labels.h \
	gateway/lifecycle.c gateway/lifecycle.h \
	gateway/lifecycle_effects.c \
	gateway/lifecycle_guards.c \
	gateway/lifecycle_rules.c gateway/lifecycle_rules.h \
	gateway/names.c gateway/names.h \
	gateway/pages.c gateway/pages.h \
	gateway/records.c gateway/records.h \
	gateway/store/backend.h \
	gateway/store/sqlite.c \
	gateway/store/sqlite_file.c gateway/store/sqlite_file.h \
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
