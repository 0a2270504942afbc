# Build rules of lib/rpc/: gRPC over protobuf-c, and TLS of our own under it.
#
# An executable links one of these with one line:
#   RPC_LIBS          the C library stays shared, everything else goes in
#   RPC_STATIC_LIBS   for executables linked with -static
# and one with TLS streams RPC_TLS_LIBS or RPC_TLS_STATIC_LIBS in its place.
noinst_LIBRARIES += librpc.a
librpc_a_SOURCES = \
	lib/rpc/call.c \
	lib/rpc/channel_arguments.c lib/rpc/channel_arguments.h \
	lib/rpc/client.c \
	lib/rpc/internal.h \
	lib/rpc/message.c \
	lib/rpc/rpc.h \
	lib/rpc/runtime.c \
	lib/rpc/server.c lib/rpc/server.h \
	lib/rpc/server_call.c \
	lib/rpc/status.c lib/rpc/status.h
$(librpc_a_OBJECTS): | proto/tables.stamp

# Apart, so that who has no TLS stream does not link OpenSSL.
noinst_LIBRARIES += librpctls.a
librpctls_a_SOURCES = \
	lib/rpc/tls_context.c \
	lib/rpc/tls_identity.c \
	lib/rpc/tls_internal.h \
	lib/rpc/tls_stream.c lib/rpc/tls_stream.h

RPC_LIBS = librpc.a libproto.a libbase.a $(GRPC_LIBS) $(PROTOBUF_C_STATIC) $(UV_STATIC)
RPC_STATIC_LIBS = librpc.a libproto.a libbase.a $(GRPC_STATIC_LIBS) $(PROTOBUF_C_STATIC) $(UV_STATIC)
RPC_TLS_LIBS = librpctls.a $(RPC_LIBS) $(OPENSSL_STATIC)
RPC_TLS_STATIC_LIBS = librpctls.a $(RPC_STATIC_LIBS) $(OPENSSL_STATIC)

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_rpc
TESTS += tests/unit/test_rpc
tests_unit_test_rpc_SOURCES = tests/unit/test_rpc.c tests/unit/rpc_fixture.h
tests_unit_test_rpc_LDADD = $(RPC_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_rpc_limits
TESTS += tests/unit/test_rpc_limits
tests_unit_test_rpc_limits_SOURCES = tests/unit/test_rpc_limits.c tests/unit/rpc_fixture.h
tests_unit_test_rpc_limits_LDADD = $(RPC_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_rpc_status
TESTS += tests/unit/test_rpc_status
tests_unit_test_rpc_status_SOURCES = tests/unit/test_rpc_status.c
tests_unit_test_rpc_status_LDADD = $(RPC_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_tls_stream
TESTS += tests/unit/test_tls_stream
tests_unit_test_tls_stream_SOURCES = tests/unit/test_tls_stream.c tests/unit/rpc_fixture.h
tests_unit_test_tls_stream_LDADD = $(RPC_TLS_LIBS) $(CMOCKA_LIBS)

$(tests_unit_test_rpc_OBJECTS) $(tests_unit_test_rpc_limits_OBJECTS) \
	$(tests_unit_test_tls_stream_OBJECTS): | proto/tables.stamp
endif
