# Build rules of lib/client/.
