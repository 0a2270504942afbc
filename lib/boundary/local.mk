# Build rules of lib/boundary/.
