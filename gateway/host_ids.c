#include "gateway/host_ids.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "gateway/lifecycle.h"
#include "gateway/records.h"

struct host_ids {
    bool needed;
    size_t lowest; /* every range below is taken */
    bool taken[HOST_IDS_COUNT];
};

struct host_ids *host_ids_new(bool needed)
{
    struct host_ids *ids = memory_new(needed ? sizeof(*ids) : offsetof(struct host_ids, taken));
    ids->needed = needed;
    return ids;
}

void host_ids_free(struct host_ids *ids)
{
    free(ids);
}

uint32_t host_ids_of(const Openshell__V1__Sandbox *sandbox)
{
    const char *text = record_annotation(sandbox, ANNOTATION_HOST_ID_BASE);
    long long base;
    if (text == NULL ||
        !text_parse_integer(text, HOST_IDS_FIRST,
                            HOST_IDS_FIRST + (HOST_IDS_COUNT - 1LL) * HOST_IDS_RANGE, &base))
        return 0;
    return (uint32_t)base;
}

bool host_ids_take(struct host_ids *ids, Openshell__V1__Sandbox *sandbox, struct arena *arena,
                   struct error *error)
{
    if (!ids->needed)
        return true;
    while (ids->lowest < HOST_IDS_COUNT && ids->taken[ids->lowest])
        ids->lowest++;
    if (ids->lowest == HOST_IDS_COUNT)
        return error_set(error, ERROR_RESOURCE_EXHAUSTED,
                         "all %d ranges of user ids are taken; delete a sandbox first",
                         HOST_IDS_COUNT);
    uint32_t base = HOST_IDS_FIRST + (uint32_t)ids->lowest * HOST_IDS_RANGE;
    ids->taken[ids->lowest] = true;
    record_set_annotation(sandbox, arena, ANNOTATION_HOST_ID_BASE, arena_printf(arena, "%u", base));
    return true;
}

static void mark(struct host_ids *ids, const Openshell__V1__Sandbox *sandbox, bool taken)
{
    uint32_t base = ids->needed ? host_ids_of(sandbox) : 0;
    if (base == 0)
        return;
    size_t number = (base - HOST_IDS_FIRST) / HOST_IDS_RANGE;
    ids->taken[number] = taken;
    if (!taken && number < ids->lowest)
        ids->lowest = number;
}

void host_ids_note(struct host_ids *ids, const Openshell__V1__Sandbox *sandbox)
{
    mark(ids, sandbox, true);
}

void host_ids_give(struct host_ids *ids, const Openshell__V1__Sandbox *sandbox)
{
    mark(ids, sandbox, false);
}
