#include "archive/locale.h"

#include "base/memory.h"

locale_t archive_locale_enter(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        memory_exhausted();
    return uselocale(plain);
}

void archive_locale_leave(locale_t before)
{
    freelocale(uselocale(before));
}
