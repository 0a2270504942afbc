# Build rules of the runtime's service.
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
