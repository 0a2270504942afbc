# Build rules of tests/.
include tests/contract/local.mk
