# Build rules of gateway/: what serves.
noinst_LIBRARIES += libgateway.a
libgateway_a_SOURCES = \
	gateway/access.c gateway/access.h \
	gateway/api/api.c gateway/api/api.h \
	gateway/api/attach.c \
	gateway/api/configuration.c \
	gateway/api/create.c \
	gateway/api/exec.c \
	gateway/api/exec_start.c gateway/api/exec_start.h \
	gateway/api/identity.c \
	gateway/api/lifecycle.c \
	gateway/api/main_process.c \
	gateway/api/pump.c gateway/api/pump.h \
	gateway/api/request.c gateway/api/request.h \
	gateway/api/sandboxes.c \
	gateway/api/workspaces.c \
	gateway/auth/authorize.c gateway/auth/authorize.h \
	gateway/auth/keys.c gateway/auth/keys.h \
	gateway/auth/peer.c gateway/auth/peer.h \
	gateway/auth/token_cache.c gateway/auth/token_cache.h \
	gateway/compute.c gateway/compute.h \
	gateway/configuration.c gateway/configuration.h \
	gateway/deadlines.c gateway/deadlines.h \
	gateway/drivers/driver.h \
	gateway/drivers/local.c \
	gateway/drivers/local_launch.c gateway/drivers/local_launch.h \
	gateway/drivers/local_process.c gateway/drivers/local_process.h \
	gateway/drivers/local_spawner.c gateway/drivers/local_spawner.h \
	gateway/gateway.h \
	gateway/host_ids.c gateway/host_ids.h \
	gateway/launch.c gateway/launch.h \
	gateway/listener.c gateway/listener.h \
	gateway/live.c gateway/live.h \
	gateway/logs.c gateway/logs.h \
	gateway/message.c gateway/message.h \
	gateway/metadata.c gateway/metadata.h \
	gateway/operations.c gateway/operations.h \
	gateway/options.c gateway/options.h \
	gateway/reconcile.c gateway/reconcile.h \
	gateway/relay.c gateway/relay.h \
	gateway/server.c gateway/server.h \
	gateway/sessions.c gateway/sessions.h \
	gateway/transition.c gateway/transition.h \
	gateway/watch.c gateway/watch.h
$(libgateway_a_OBJECTS): | proto/generated.stamp proto/tables.stamp

if HAVE_CMOCKA
service_tests = tests/unit/test_access tests/unit/test_authorize tests/unit/test_gateway_calls \
	tests/unit/test_logs \
	tests/unit/test_relay
check_PROGRAMS += $(service_tests)
TESTS += $(service_tests)
service_test_libraries = libgateway.a $(GATEWAY_CORE_LIBS) libboundary.a $(RPC_TLS_LIBS) \
	$(JANSSON_STATIC) $(CMOCKA_LIBS)
tests_unit_test_access_SOURCES = tests/unit/test_access.c
tests_unit_test_access_LDADD = $(service_test_libraries)
tests_unit_test_authorize_SOURCES = tests/unit/test_authorize.c
tests_unit_test_authorize_LDADD = $(service_test_libraries)
tests_unit_test_logs_SOURCES = tests/unit/test_logs.c tests/unit/gateway_harness.h
tests_unit_test_logs_LDADD = $(service_test_libraries)
tests_unit_test_gateway_calls_SOURCES = tests/unit/test_gateway_calls.c tests/unit/gateway_harness.h
tests_unit_test_gateway_calls_LDADD = $(service_test_libraries)
tests_unit_test_relay_SOURCES = tests/unit/test_relay.c tests/unit/gateway_harness.h
tests_unit_test_relay_LDADD = $(service_test_libraries)
$(tests_unit_test_access_OBJECTS) $(tests_unit_test_authorize_OBJECTS) \
	$(tests_unit_test_gateway_calls_OBJECTS) $(tests_unit_test_logs_OBJECTS) $(tests_unit_test_relay_OBJECTS): | proto/tables.stamp
endif
