# Build rules of the tests that hold messages to the published contract and to the scan.
contract_ldadd = libproto.a libbase.a $(PROTOBUF_C_STATIC)

check_PROGRAMS += tests/contract/check_contract
tests_contract_check_contract_SOURCES = tests/contract/check_contract.c
tests_contract_check_contract_LDADD = $(contract_ldadd)
TESTS += tests/contract/check
EXTRA_DIST += tests/contract/check \
	tests/contract/additions.tsv \
	tests/contract/compute_driver.tsv \
	tests/contract/datamodel.tsv \
	tests/contract/isolation_backend.tsv \
	tests/contract/openshell.tsv \
	tests/contract/options.tsv \
	tests/contract/sandbox.tsv

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_scan tests/unit/test_tables
TESTS += tests/unit/test_scan tests/unit/test_tables
tests_unit_test_scan_SOURCES = tests/unit/test_scan.c
tests_unit_test_scan_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_scan_LDADD = $(contract_ldadd) $(CMOCKA_LIBS)
tests_unit_test_tables_SOURCES = tests/unit/test_tables.c
tests_unit_test_tables_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_tables_LDADD = $(contract_ldadd) $(CMOCKA_LIBS)
endif

# The fuzzer's corpus with fixed mutations; tests/fuzz/fuzz_scan.c says how to fuzz for real.
check_PROGRAMS += tests/fuzz/fuzz_scan
tests_fuzz_fuzz_scan_SOURCES = tests/fuzz/fuzz_scan.c
tests_fuzz_fuzz_scan_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_MAIN
tests_fuzz_fuzz_scan_LDADD = $(contract_ldadd)
TESTS += tests/fuzz/check_scan
fuzz_scan_corpus = \
	tests/fuzz/corpus/scan/attach \
	tests/fuzz/corpus/scan/config_update \
	tests/fuzz/corpus/scan/create \
	tests/fuzz/corpus/scan/cut_string \
	tests/fuzz/corpus/scan/deep \
	tests/fuzz/corpus/scan/deep_allowed \
	tests/fuzz/corpus/scan/endpoint \
	tests/fuzz/corpus/scan/exec \
	tests/fuzz/corpus/scan/exec_signal \
	tests/fuzz/corpus/scan/exec_start \
	tests/fuzz/corpus/scan/group \
	tests/fuzz/corpus/scan/hello \
	tests/fuzz/corpus/scan/location \
	tests/fuzz/corpus/scan/mediate \
	tests/fuzz/corpus/scan/packed \
	tests/fuzz/corpus/scan/relay_exit \
	tests/fuzz/corpus/scan/relay_session \
	tests/fuzz/corpus/scan/status \
	tests/fuzz/corpus/scan/twice \
	tests/fuzz/corpus/scan/unknown \
	tests/fuzz/corpus/scan/update_config \
	tests/fuzz/corpus/scan/value
EXTRA_DIST += tests/fuzz/check_scan $(fuzz_scan_corpus)
