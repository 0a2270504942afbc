# Build rules of the runtime's service and of openshell-sandbox.
noinst_LIBRARIES += libservice.a
libservice_a_SOURCES = \
	runtime/exec_admission.c runtime/exec_admission.h \
	runtime/output_ring.c runtime/output_ring.h \
	runtime/process.c runtime/process.h runtime/process_internal.h \
	runtime/process_io.c runtime/process_io.h \
	runtime/process_spec.c runtime/process_spec.h \
	runtime/process_stream.c \
	runtime/service.c runtime/service.h \
	runtime/service_boundary.c \
	runtime/service_exchange.c \
	runtime/stage.c runtime/stage.h
$(libservice_a_OBJECTS): | proto/tables.stamp

# Fully static, so that it can be put into any root.
if !SANITIZERS
pkglibexec_PROGRAMS += openshell-sandbox
openshell_sandbox_SOURCES = runtime/main.c
openshell_sandbox_LDFLAGS = $(AM_LDFLAGS) -static
openshell_sandbox_LDADD = \
	libservice.a libruntime.a libboundary.a $(RPC_TLS_STATIC_LIBS) $(JANSSON_STATIC)
$(openshell_sandbox_OBJECTS): | proto/tables.stamp
endif
