/* openshell-supervisor: what daemons/main.c starts. */
#ifndef SUPERVISOR_MAIN_H
#define SUPERVISOR_MAIN_H

/* As main(): returns or exits with the status of the process. */
int supervisor_main(int argc, char **argv);

#endif
