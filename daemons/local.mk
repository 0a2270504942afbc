# Build rules of daemons/: gateway, supervisor and runtime in one file.
#
# Fully static: the runtime can be put into any root, a supervisor and a runtime for each sandbox
# start sooner, and all of them share the pages of one file.
if !SANITIZERS
pkglibexec_PROGRAMS += openshell-daemons
openshell_daemons_SOURCES = \
	daemons/main.c \
	daemons/spawner.c daemons/spawner.h \
	gateway/main.c gateway/main.h \
	runtime/main.c runtime/main.h \
	supervisor/main.c supervisor/main.h
openshell_daemons_LDFLAGS = $(AM_LDFLAGS) $(STATIC_LDFLAGS)
openshell_daemons_LDADD = \
	libgateway.a libsupervisor.a libservice.a libruntime.a $(GATEWAY_CORE_LIBS) libboundary.a \
	$(RPC_TLS_STATIC_LIBS) $(JANSSON_STATIC) libtransfer.a libbase.a $(ARCHIVE_STATIC)
$(openshell_daemons_OBJECTS): | proto/tables.stamp
endif

daemon_names = openshell-gateway openshell-sandbox openshell-supervisor

# A name that two of them export would silently be that of one of them.
TESTS += tests/check/symbols
