# Build rules of man/.
