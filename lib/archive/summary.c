#include "archive/summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void archive_summary_add(struct archive_summary *summary, enum archive_issue_kind kind,
                         const char *name, const char *format, ...)
{
    summary->incomplete = true;
    if (summary->issue_count < ARCHIVE_ISSUES_MAX) {
        struct archive_issue *issue = &summary->issues[summary->issue_count];
        issue->kind = kind;
        issue->name = text_escaped(name);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(issue->reason, sizeof(issue->reason), format, arguments);
        va_end(arguments);
    }
    summary->issue_count++;
}

size_t archive_summary_kept(const struct archive_summary *summary)
{
    return summary->issue_count < ARCHIVE_ISSUES_MAX ? (size_t)summary->issue_count
                                                     : (size_t)ARCHIVE_ISSUES_MAX;
}

void archive_summary_clear(struct archive_summary *summary)
{
    for (size_t i = 0; i < archive_summary_kept(summary); i++)
        free(summary->issues[i].name);
    memset(summary, 0, sizeof(*summary));
}
