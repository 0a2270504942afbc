/* A sandbox's record as the driver needs it to start one generation. */
#ifndef GATEWAY_LAUNCH_H
#define GATEWAY_LAUNCH_H

#include "gateway/gateway.h"
#include "openshell.pb-c.h"

/* The directory of a root given as "dir:/absolute/path", or NULL for the composed root. */
const char *launch_from_directory(const Openshell__V1__Sandbox *sandbox);

/* The generation and epoch that the record says may speak for the sandbox; "" and 0 without. */
const char *launch_generation(const Openshell__V1__Sandbox *sandbox);
uint64_t launch_auth_epoch(const Openshell__V1__Sandbox *sandbox);

/* "COLUMNSxROWS", each from 1 to 65535; nothing is written for anything else, which is false. */
bool launch_parse_terminal_size(const char *text, uint32_t *ret_columns, uint32_t *ret_rows);

/* Signs the launch's tokens and hands it to the driver. `done` as driver_start. */
void launch_start(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox, driver_done done,
                  void *user);

#endif
