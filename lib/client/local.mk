# Build rules of lib/client/: what the front-end and the commands share.
#
# The front-end takes the objects that need the base library alone: options, settings, failure.
noinst_LIBRARIES += libclient.a
libclient_a_SOURCES = \
	lib/client/command.h \
	lib/client/document.c lib/client/document.h \
	lib/client/explain.c lib/client/explain.h \
	lib/client/failure.c lib/client/failure.h \
	lib/client/gateway.c lib/client/gateway.h \
	lib/client/gateway_address.c lib/client/gateway_address.h \
	lib/client/gateway_store.c lib/client/gateway_store.h \
	lib/client/last_sandbox.c lib/client/last_sandbox.h \
	lib/client/local_gateway.c lib/client/local_gateway.h \
	lib/client/options.c lib/client/options.h \
	lib/client/pager.c lib/client/pager.h \
	lib/client/pairs.c lib/client/pairs.h \
	lib/client/report.c lib/client/report.h \
	lib/client/settings.c lib/client/settings.h \
	lib/client/terminal.c lib/client/terminal.h \
	lib/client/text_table.c lib/client/text_table.h

# What talks to a gateway.
noinst_LIBRARIES += libconnection.a
libconnection_a_SOURCES = \
	lib/client/connection.c lib/client/connection.h \
	lib/client/copy.c lib/client/copy.h \
	lib/client/copy_child.c lib/client/copy_child.h \
	lib/client/copy_progress.c lib/client/copy_progress.h \
	lib/client/copy_source.c lib/client/copy_source.h \
	lib/client/exec_session.c lib/client/exec_session.h \
	lib/client/git_list.c lib/client/git_list.h \
	lib/client/interrupt.c lib/client/interrupt.h \
	lib/client/log_lines.c lib/client/log_lines.h \
	lib/client/policy_document.c lib/client/policy_document.h \
	lib/client/sandbox.c lib/client/sandbox.h \
	lib/client/sandbox_calls.c lib/client/sandbox_calls.h \
	lib/client/streams.c lib/client/streams.h \
	lib/client/watch.c lib/client/watch.h
$(libconnection_a_OBJECTS): | proto/tables.stamp

if HAVE_CMOCKA
client_tests = \
	tests/unit/test_explain \
	tests/unit/test_gateway_address \
	tests/unit/test_json_output \
	tests/unit/test_log_lines \
	tests/unit/test_options \
	tests/unit/test_policy_document \
	tests/unit/test_table_text
check_PROGRAMS += $(client_tests)
TESTS += $(client_tests)
tests_unit_test_explain_SOURCES = tests/unit/test_explain.c
tests_unit_test_explain_LDADD = libclient.a libbase.a $(CMOCKA_LIBS)
tests_unit_test_gateway_address_SOURCES = tests/unit/test_gateway_address.c
tests_unit_test_gateway_address_LDADD = libclient.a libbase.a $(JANSSON_STATIC) $(CMOCKA_LIBS)
tests_unit_test_json_output_SOURCES = tests/unit/test_json_output.c
tests_unit_test_json_output_LDADD = \
	libconnection.a libclient.a $(RPC_LIBS) $(JANSSON_STATIC) $(CMOCKA_LIBS)
$(tests_unit_test_json_output_OBJECTS): | proto/tables.stamp
tests_unit_test_log_lines_SOURCES = tests/unit/test_log_lines.c
tests_unit_test_log_lines_LDADD = \
	libconnection.a libclient.a $(RPC_LIBS) $(JANSSON_STATIC) $(CMOCKA_LIBS)
$(tests_unit_test_log_lines_OBJECTS): | proto/tables.stamp
tests_unit_test_options_SOURCES = tests/unit/test_options.c
tests_unit_test_options_LDADD = libclient.a libbase.a $(CMOCKA_LIBS)
tests_unit_test_policy_document_SOURCES = tests/unit/test_policy_document.c
tests_unit_test_policy_document_LDADD = \
	libconnection.a libclient.a $(RPC_LIBS) $(JANSSON_STATIC) $(CMOCKA_LIBS)
$(tests_unit_test_policy_document_OBJECTS): | proto/tables.stamp
tests_unit_test_table_text_SOURCES = tests/unit/test_table_text.c
tests_unit_test_table_text_LDADD = libclient.a libbase.a $(CMOCKA_LIBS)
endif
