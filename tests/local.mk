# Build rules of tests/.
include tests/contract/local.mk
include tests/isolation/local.mk

# What runs the tests, and what they are made of.
EXTRA_DIST += .shellcheckrc .ci/run tools/packages.txt tools/setup.bash \
	tests/bats tests/sdk tests/check

# bench/ measures; "make bench/stopwatch" builds what it measures with.
EXTRA_DIST += bench docs
EXTRA_PROGRAMS += bench/stopwatch
bench_stopwatch_SOURCES = bench/stopwatch.c
CLEANFILES += bench/stopwatch
