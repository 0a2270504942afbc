/* Long text for people, through the pager of their choice. */
#ifndef CLIENT_PAGER_H
#define CLIENT_PAGER_H

/* Sends standard output through $OPENSHELL_PAGER, $PAGER or less from here on, where it is a
 * terminal that can show one; an empty choice, or cat, means none. Where LESS is not set it is FRX:
 * less ends by itself when all fits on the screen. Before the process has threads. */
void pager_start(void);
/* Ends the text and waits until the person has seen enough. Standard output is closed then. */
void pager_finish(void);

#endif
