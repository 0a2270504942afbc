/* libarchive converts names to the locale's character set, and in UTF-8 even composes them. In the
 * C locale it leaves the bytes as they are; these put the calling thread into it and back. */
#ifndef ARCHIVE_LOCALE_H
#define ARCHIVE_LOCALE_H

#include <locale.h>

locale_t archive_locale_enter(void);
void archive_locale_leave(locale_t before);

#endif
