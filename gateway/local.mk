# Build rules of gateway/.
