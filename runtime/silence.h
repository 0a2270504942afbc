/* What a forked copy of the runtime must not carry into the boundary. */
#ifndef RUNTIME_SILENCE_H
#define RUNTIME_SILENCE_H

/* Closes everything but these two, of which the second may be -1; the standard streams become
 * /dev/null. */
void silence_descriptors(int control, int other);

/* No core, no tracing, no signal handler, SIGCHLD and everything else blocked, no keyring, and no
 * command line or environment of the runtime's where /proc would show them. Only after the ids were
 * mapped: a process that is not dumpable hides its map files from its own user. */
void silence_process(void);

#endif
