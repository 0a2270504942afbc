/* What the supervisor says about sessions in its log. Neither arguments nor environments: they may
 * hold secrets. */
#ifndef SUPERVISOR_ACTIVITY_H
#define SUPERVISOR_ACTIVITY_H

#include "boundary/protocol.h"
#include "extensions.pb-c.h"

void activity_session_opened(const char *channel_id, const Openshell__Ext__V1__SessionStart *start);
void activity_session_ended(const char *channel_id,
                            const Openshell__Sandbox__Protocol__V1__Exited *exited);
void activity_session_refused(const char *channel_id, const char *why);

#endif
