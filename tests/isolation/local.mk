# Programs that try the boundary without a gateway.
noinst_PROGRAMS += isolation-shell
isolation_shell_SOURCES = tests/isolation/sandbox_shell.c
isolation_shell_LDADD = libruntime.a libbase.a $(UV_STATIC) -lpthread
isolation_shell_LDFLAGS = $(AM_LDFLAGS) -static

# Runs inside, in any root.
noinst_PROGRAMS += isolation-attempts
isolation_attempts_SOURCES = tests/isolation/attempts.c
isolation_attempts_LDFLAGS = $(AM_LDFLAGS) -static
