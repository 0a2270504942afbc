#include "runtime/descriptors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_MAX = 16 };

static int compare_numbers(const void *left, const void *right)
{
    int one = *(const int *)left, other = *(const int *)right;
    return (one > other) - (one < other);
}

bool descriptors_keep_only(const int *kept, size_t count)
{
    int sorted[KEPT_MAX];
    if (count > KEPT_MAX)
        return false;
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (kept[i] >= 0)
            sorted[used++] = kept[i];
    if (used > 0)
        qsort(sorted, used, sizeof(int), compare_numbers);
    unsigned first = 0;
    for (size_t i = 0; i < used; i++) {
        unsigned number = (unsigned)sorted[i];
        if (number > first && close_range(first, number - 1, 0) != 0)
            return false;
        if (number + 1 > first)
            first = number + 1;
    }
    return close_range(first, UINT_MAX, 0) == 0;
}
