/* Forks a sandbox's supervisor and runtime for the gateway (boundary/spawner.h). */
#ifndef DAEMONS_SPAWNER_H
#define DAEMONS_SPAWNER_H

/* As main(). In what was forked it returns too: with what the supervisor or the runtime returned.
 * `argv` is the process's own, since its text is what others see as the name of what was forked. */
int spawner_main(int argc, char **argv);

#endif
