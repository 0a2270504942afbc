# Build rules of lib/boundary/: what gateway, supervisor and runtime agree on.
#
# Needs libproto.a, libbase.a, $(PROTOBUF_C_STATIC), $(JANSSON_STATIC) and libcrypto after it.
noinst_LIBRARIES += libboundary.a
libboundary_a_SOURCES = \
	lib/boundary/launch.c lib/boundary/launch.h \
	lib/boundary/owner_lock.c lib/boundary/owner_lock.h \
	lib/boundary/session_token.c lib/boundary/session_token.h
