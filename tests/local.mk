# Build rules of tests/.
