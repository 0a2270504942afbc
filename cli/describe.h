/* The commands and their options as text, for the manual and for what checks it. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include <stdio.h>

/* Prints lines of fields that tabs separate; "-" is a field with nothing in it. GROUP is "-" for a
 * command of a single word, and GROUP and VERB are "-" for the global options.
 *
 *   group GROUP ALIAS SUMMARY
 *   command GROUP VERB CLASS USAGE LEAST MOST TRAILING SUMMARY
 *   example GROUP VERB LINE
 *   option GROUP VERB NAME LETTER METAVAR REPEATED HIDDEN FALLBACK ENVIRONMENT CHOICES RANGE
 *          CONFLICTS REQUIRES HELP
 *
 * CLASS is main, more or hidden; TRAILING, REPEATED and HIDDEN are yes or no; MOST is "many" where
 * there is no limit worth naming; RANGE is "1 1000". */
void describe_commands(FILE *stream);

#endif
