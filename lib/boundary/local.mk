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
	lib/boundary/session_token.c lib/boundary/session_token.h
$(libboundary_a_OBJECTS): | proto/generated.stamp
