/* openshell-sandbox: what daemons/main.c starts. */
#ifndef RUNTIME_MAIN_H
#define RUNTIME_MAIN_H

/* As main(): returns or exits with the status of the process. */
int runtime_main(int argc, char **argv);

#endif
