/* Which descriptors a process keeps. */
#ifndef RUNTIME_DESCRIPTORS_H
#define RUNTIME_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Closes everything but the `count` (at most 16) listed; -1 in the list is skipped. */
bool descriptors_keep_only(const int *kept, size_t count);

#endif
