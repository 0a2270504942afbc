# Build rules of runtime/.
