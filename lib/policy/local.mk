# Build rules of lib/policy/.
