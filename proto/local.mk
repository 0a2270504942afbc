# Build rules of proto/.
