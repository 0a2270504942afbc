# Build rules of cli/.
