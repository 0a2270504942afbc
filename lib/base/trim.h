/* Gives memory back that an idle daemon only holds because it was used once. */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

/* Returns free heap to the kernel and forgets the pages of code and constants that the process has
 * mapped; those that are needed again come back from the page cache, for about a microsecond each.
 * Callable from any thread. */
void trim_memory(void);

/* How long a daemon has been quiet when that is worth it. */
enum { TRIM_QUIET_MILLISECONDS = 2000 };

#endif
