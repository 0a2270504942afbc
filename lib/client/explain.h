/* A refusal in words: what happened, and what to do about it. The only home of such words.
 *
 * Keyed by the (domain, reason) of the error's ErrorInfo, and by the code's name for an error that
 * has none. An unknown reason, or an older gateway, gives the raw message. */
#ifndef CLIENT_EXPLAIN_H
#define CLIENT_EXPLAIN_H

#include "base/error.h"

struct explanation {
    char message[ERROR_MESSAGE_MAX * 2]; /* a sentence without its full stop */
    char hint[ERROR_MESSAGE_MAX];        /* "start it with: openshell ..."; "": none */
};

/* Both texts are escaped: they can be shown on a terminal. */
void explain(const struct error *error, struct explanation *ret_explanation);

#endif
