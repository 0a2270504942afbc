#include "runtime/exec_admission.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "base/uuid.h"
#include "boundary/failure.h"

struct admitted {
    struct admitted *next;
    int64_t expiry;
    char request_id[UUID_SIZE];
};

struct exec_admission {
    struct table *by_id;
    struct admitted *first; /* in the order of arrival */
    struct admitted *last;
    int64_t clock; /* the latest time seen */
};

struct exec_admission *exec_admission_new(void)
{
    struct exec_admission *admission = memory_new_of(struct exec_admission);
    admission->by_id = table_new();
    return admission;
}

static void drop_first(struct exec_admission *admission)
{
    struct admitted *first = admission->first;
    table_remove(admission->by_id, first->request_id);
    admission->first = first->next;
    if (admission->first == NULL)
        admission->last = NULL;
    free(first);
}

void exec_admission_free(struct exec_admission *admission)
{
    if (admission == NULL)
        return;
    while (admission->first != NULL)
        drop_first(admission);
    table_free(admission->by_id);
    free(admission);
}

static void keep(struct exec_admission *admission, const char *request_id, int64_t expiry)
{
    struct admitted *admitted = memory_new_of(struct admitted);
    admitted->expiry = expiry;
    memcpy(admitted->request_id, request_id, UUID_SIZE);
    if (admission->last == NULL)
        admission->first = admitted;
    else
        admission->last->next = admitted;
    admission->last = admitted;
    table_put(admission->by_id, request_id, admitted);
}

bool exec_admission_admit(struct exec_admission *admission, const char *request_id, int64_t expiry,
                          int64_t now, struct error *error)
{
    if (now > admission->clock)
        admission->clock = now;
    /* Arrival is nearly the order of expiry; one that waits behind a longer one is dropped later.
     */
    while (admission->first != NULL && admission->first->expiry <= admission->clock)
        drop_first(admission);
    if (!uuid_valid(request_id))
        return failure_set(error, FAILURE_INVALID, "the request identifier is not a UUID");
    if (expiry <= 0)
        return failure_set(error, FAILURE_INVALID, "the request has no expiry");
    if (expiry <= admission->clock)
        return failure_set(error, FAILURE_DENIED,
                           "the request has expired; are the clocks synchronised?");
    if (expiry - admission->clock > EXEC_EXPIRY_AHEAD_LIMIT_MILLISECONDS)
        return failure_set(error, FAILURE_INVALID, "the request expires too far ahead");
    if (table_get(admission->by_id, request_id) != NULL) {
        failure_set(error, FAILURE_DENIED, "the request '%s' was admitted before", request_id);
        error->code = ERROR_ALREADY_EXISTS;
        return false;
    }
    if (table_count(admission->by_id) >= EXEC_ADMITTED_LIMIT) {
        failure_set(error, FAILURE_DENIED, "more than %d requests at one time",
                    EXEC_ADMITTED_LIMIT);
        error->code = ERROR_RESOURCE_EXHAUSTED;
        return false;
    }
    keep(admission, request_id, expiry);
    return true;
}
