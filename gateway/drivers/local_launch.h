/* The local driver's places, and how one launch is put together. */
#ifndef GATEWAY_DRIVERS_LOCAL_LAUNCH_H
#define GATEWAY_DRIVERS_LOCAL_LAUNCH_H

#include <stdbool.h>

#include "base/table.h"
#include "gateway/drivers/driver.h"
#include "gateway/drivers/local_process.h"
#include "rpc/tls_stream.h"

enum {
    LOCAL_STOP_GRACE_MILLISECONDS = 10000,
    LOCAL_PROCESS_LIMIT = 2048, /* behaviour reference 7.1 */
};

struct local_driver {
    struct driver base;
    struct reactor *reactor;
    struct table *sandboxes; /* id -> struct local_sandbox */
    char *run;               /* R/sandboxes */
    char *state;             /* S/sandboxes */
    char *cache;             /* S/cache */
    char *trash;             /* S/trash */
    char *gateway_id;
    char *gateway_socket;
    char *key_id;
    char *key_pem;
    struct local_spawner spawner;
    struct tls_identity *spare; /* made ahead, so that a create need not wait for it */
    bool preparing;
    bool emptying;       /* the trash */
    bool emptying_again; /* more came while it was being emptied */
};

/* Fills in everything but base and sandboxes, makes the directories, starts emptying the trash. */
bool local_launch_open(struct local_driver *driver, const struct local_driver_options *options,
                       struct error *error);
/* Frees everything but sandboxes, and the driver. */
void local_launch_close(struct local_driver *driver);

/* R/sandboxes/ID/NAME, newly allocated. */
char *local_run_path(const struct local_driver *driver, const char *id, const char *name);

/* Starts both processes. After a failure one of them may run. */
bool local_launch(struct local_driver *driver, const struct driver_launch *launch,
                  struct local_process *supervisor, struct local_process *runtime,
                  struct error *error);

/* Renames the sandbox's state away, to be removed in the background, and removes its run
 * directory. */
bool local_discard_state(struct local_driver *driver, const char *id, struct error *error);

#endif
