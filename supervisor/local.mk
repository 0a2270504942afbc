# Build rules of supervisor/.
