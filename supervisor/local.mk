# Build rules of supervisor/.
noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES = \
	supervisor/activity.c supervisor/activity.h \
	supervisor/admission.c supervisor/admission.h \
	supervisor/boundary.c supervisor/boundary.h supervisor/boundary_internal.h \
	supervisor/boundary_connection.c \
	supervisor/evidence.c supervisor/evidence.h \
	supervisor/gateway_link.c supervisor/gateway_link.h \
	supervisor/gateway_session.c supervisor/gateway_session.h \
	supervisor/log_push.c supervisor/log_push.h \
	supervisor/main_process.c supervisor/main_process.h \
	supervisor/relay.c supervisor/relay.h \
	supervisor/startup.c \
	supervisor/supervisor.c supervisor/supervisor.h
$(libsupervisor_a_OBJECTS): | proto/tables.stamp

if HAVE_CMOCKA
boundary_parts_tests = \
	tests/unit/test_boundary_evidence \
	tests/unit/test_boundary_process_io \
	tests/unit/test_boundary_requests \
	tests/unit/test_boundary_stages
check_PROGRAMS += $(boundary_parts_tests)
TESTS += $(boundary_parts_tests)
boundary_parts_ldadd = \
	libsupervisor.a libservice.a libboundary.a $(RPC_TLS_LIBS) $(JANSSON_STATIC) $(CMOCKA_LIBS)
tests_unit_test_boundary_evidence_SOURCES = tests/unit/test_boundary_evidence.c
tests_unit_test_boundary_evidence_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_evidence_LDADD = $(boundary_parts_ldadd)
tests_unit_test_boundary_process_io_SOURCES = tests/unit/test_boundary_process_io.c
tests_unit_test_boundary_process_io_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_process_io_LDADD = $(boundary_parts_ldadd)
tests_unit_test_boundary_requests_SOURCES = tests/unit/test_boundary_requests.c
tests_unit_test_boundary_requests_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_requests_LDADD = $(boundary_parts_ldadd)
tests_unit_test_boundary_stages_SOURCES = tests/unit/test_boundary_stages.c
tests_unit_test_boundary_stages_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_boundary_stages_LDADD = $(boundary_parts_ldadd)
endif

# Supervisor and runtime together, with a stand-in for the gateway.
if HAVE_CMOCKA
if !SANITIZERS
check_PROGRAMS += tests/integration/test_boundary_end_to_end
TESTS += tests/integration/test_boundary_end_to_end
tests_integration_test_boundary_end_to_end_SOURCES = \
	tests/integration/boundary_fixture.c tests/integration/boundary_fixture.h \
	tests/integration/test_boundary_end_to_end.c
tests_integration_test_boundary_end_to_end_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPROGRAMS_DIRECTORY='"$(abs_builddir)/exec-path"'
tests_integration_test_boundary_end_to_end_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_integration_test_boundary_end_to_end_LDADD = \
	libboundary.a $(RPC_TLS_LIBS) $(JANSSON_STATIC) $(CMOCKA_LIBS)
EXTRA_tests_integration_test_boundary_end_to_end_DEPENDENCIES = \
	exec-path/stamp

# Not a test: what a start and an exec cost without a gateway.
EXTRA_PROGRAMS += tests/integration/measure_boundary
CLEANFILES += tests/integration/measure_boundary$(EXEEXT)
tests_integration_measure_boundary_SOURCES = \
	tests/integration/boundary_fixture.c tests/integration/boundary_fixture.h \
	tests/integration/measure_boundary.c
tests_integration_measure_boundary_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPROGRAMS_DIRECTORY='"$(abs_builddir)/exec-path"'
tests_integration_measure_boundary_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_integration_measure_boundary_LDADD = \
	libboundary.a $(RPC_TLS_LIBS) $(JANSSON_STATIC) $(CMOCKA_LIBS)
endif
endif
