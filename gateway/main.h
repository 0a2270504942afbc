/* openshell-gateway: what daemons/main.c starts. */
#ifndef GATEWAY_MAIN_H
#define GATEWAY_MAIN_H

/* As main(): returns or exits with the status of the process. */
int gateway_main(int argc, char **argv);

#endif
