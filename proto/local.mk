# Build rules of proto/: C from the .proto sources, and the tables made from their options.
#
# Everything ends in libproto.a, which needs libbase.a and $(PROTOBUF_C_STATIC) after it.

# A new .proto file is one word here.
proto_sources = \
	proto/compute_driver.proto \
	proto/datamodel.proto \
	proto/extension.proto \
	proto/extensions.proto \
	proto/google/rpc/error_details.proto \
	proto/google/rpc/status.proto \
	proto/isolation_backend.proto \
	proto/openshell.proto \
	proto/options.proto \
	proto/sandbox.proto \
	proto/sandbox_protocol.proto

# These come with protoc; only their C is made here.
proto_well_known = \
	proto/google/protobuf/any.proto \
	proto/google/protobuf/descriptor.proto \
	proto/google/protobuf/duration.proto \
	proto/google/protobuf/empty.proto \
	proto/google/protobuf/struct.proto \
	proto/google/protobuf/timestamp.proto

proto_generated = \
	$(proto_sources:.proto=.pb-c.c) $(proto_sources:.proto=.pb-c.h) \
	$(proto_well_known:.proto=.pb-c.c) $(proto_well_known:.proto=.pb-c.h) \
	proto/descriptors.pb
proto_tables = \
	proto/method_table.c proto/method_table.h proto/redaction_table.c proto/redaction_table.h
proto_inputs = $(proto_sources:proto/%=%) $(proto_well_known:proto/%=%)

EXTRA_DIST += $(proto_sources)
BUILT_SOURCES += proto/generated.stamp proto/tables.stamp
CLEANFILES += $(proto_generated) $(proto_tables) proto/generated.stamp proto/tables.stamp

# One run makes everything, since a .proto file sees its imports. A file whose text did not change
# keeps its time, so that a comment in one source does not compile the world again.
proto/generated.stamp: $(proto_sources) $(srcdir)/proto/local.mk
	$(AM_V_GEN)rm -rf proto/fresh && $(MKDIR_P) proto/fresh && \
	$(PROTOC_C) -I$(srcdir)/proto --c_out=proto/fresh $(proto_inputs) && \
	$(PROTOC) -I$(srcdir)/proto --include_imports \
		--descriptor_set_out=proto/fresh/descriptors.pb $(proto_inputs) && \
	for file in $(proto_generated); do \
		fresh="proto/fresh/$${file#proto/}"; \
		$(MKDIR_P) "$$(dirname "$$file")" && \
		if cmp -s "$$fresh" "$$file"; then :; else mv -f "$$fresh" "$$file" || exit 1; fi; \
	done && \
	rm -rf proto/fresh && touch $@
$(proto_generated): proto/generated.stamp
	@test -f $@ || { rm -f proto/generated.stamp; $(MAKE) $(AM_MAKEFLAGS) proto/generated.stamp; }

# Reads the options that protoc-c drops.
noinst_PROGRAMS += tools/generate_tables
tools_generate_tables_SOURCES = tools/generate_tables.c
tools_generate_tables_LDADD = libproto_generated.a $(PROTOBUF_C_STATIC)

proto/tables.stamp: proto/descriptors.pb tools/generate_tables$(EXEEXT)
	$(AM_V_GEN)rm -rf proto/fresh && $(MKDIR_P) proto/fresh && \
	tools/generate_tables$(EXEEXT) proto/descriptors.pb proto/fresh && \
	for file in $(proto_tables); do \
		fresh="proto/fresh/$${file#proto/}"; \
		if cmp -s "$$fresh" "$$file"; then :; else mv -f "$$fresh" "$$file" || exit 1; fi; \
	done && \
	rm -rf proto/fresh && touch $@
$(proto_tables): proto/tables.stamp
	@test -f $@ || { rm -f proto/tables.stamp; $(MAKE) $(AM_MAKEFLAGS) proto/tables.stamp; }

# Generated C answers to no warning of ours; --gc-sections drops what a program does not use.
noinst_LIBRARIES += libproto_generated.a libproto.a
libproto_generated_a_SOURCES =
nodist_libproto_generated_a_SOURCES = \
	$(proto_sources:.proto=.pb-c.c) $(proto_sources:.proto=.pb-c.h) \
	$(proto_well_known:.proto=.pb-c.c) $(proto_well_known:.proto=.pb-c.h)
libproto_generated_a_CFLAGS = -std=gnu17 $(HARDENING_CFLAGS) -ffunction-sections -fdata-sections -w
$(libproto_generated_a_OBJECTS): | proto/generated.stamp

libproto_a_SOURCES = \
	lib/rpc/method.c lib/rpc/method.h \
	lib/rpc/redact.c lib/rpc/redact.h \
	lib/rpc/scan.c lib/rpc/scan.h
nodist_libproto_a_SOURCES = $(proto_tables)
libproto_a_LIBADD = $(libproto_generated_a_OBJECTS)
$(libproto_a_OBJECTS) $(tools_generate_tables_OBJECTS): | proto/generated.stamp
$(libproto_a_OBJECTS): | proto/tables.stamp
