# Build rules of tests/.
include tests/contract/local.mk
include tests/isolation/local.mk

# What runs the tests, and what they are made of. A directory is named whole only where a build
# leaves nothing in it: what stands there in the build directory would be packed too.
EXTRA_DIST += .shellcheckrc .ci/run tools/packages.txt tools/setup.bash docs tests/bats \
	tests/check/format tests/check/licence tests/check/shell tests/check/symbols \
	tests/sdk/test_sdk.py

# bench/ measures; "make bench/stopwatch" builds what it measures with.
EXTRA_DIST += bench/common.bash bench/create bench/exec bench/front-end
EXTRA_PROGRAMS += bench/stopwatch
bench_stopwatch_SOURCES = bench/stopwatch.c
CLEANFILES += bench/stopwatch
