#include "gateway/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct live_sandbox *live_find(const struct gateway *gateway, const char *id)
{
    return table_get(gateway->live, id);
}

struct live_sandbox *live_obtain(struct gateway *gateway, const char *id)
{
    struct live_sandbox *live = live_find(gateway, id);
    if (live != NULL)
        return live;
    live = memory_new_of(struct live_sandbox);
    live->gateway = gateway;
    memcpy(live->id, id, strnlen(id, UUID_SIZE - 1));
    table_put(gateway->live, live->id, live);
    return live;
}

void live_release(struct live_sandbox *live)
{
    if (live->launched || live->session != NULL || live->grace != NULL || live->waiters != NULL ||
        live->relays != NULL || live->operations != NULL || live->deadline != 0 ||
        live->watcher_count > 0)
        return;
    table_remove(live->gateway->live, live->id);
    free(live);
}

void live_launch(struct live_sandbox *live, const char *generation, uint64_t auth_epoch)
{
    live->launched = true;
    live->connected_once = false;
    live->auth_epoch = auth_epoch;
    memset(live->generation, 0, sizeof(live->generation));
    memcpy(live->generation, generation, strnlen(generation, UUID_SIZE - 1));
}

void live_unlaunch(struct live_sandbox *live)
{
    live->launched = false;
}

bool live_session_expected(const struct live_sandbox *live)
{
    return live->session == NULL && live->grace != NULL &&
           live->gateway->driver->class->running(live->gateway->driver, live->id);
}
