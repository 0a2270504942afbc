# Build rules of lib/rpc/.
