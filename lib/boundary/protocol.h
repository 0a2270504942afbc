/* Short names for the Sandbox Protocol's generated types, and its bounds. */
#ifndef BOUNDARY_PROTOCOL_H
#define BOUNDARY_PROTOCOL_H

#include "isolation_backend.pb-c.h"
#include "sandbox_protocol.pb-c.h"

/* EXCHANGE_FRAME(EXEC) is the case of a frame that carries `exec`. */
#define EXCHANGE_FRAME(name) OPENSHELL__SANDBOX__PROTOCOL__V1__EXCHANGE_FRAME__FRAME_##name
#define EXCHANGE_FRAME_INIT OPENSHELL__SANDBOX__PROTOCOL__V1__EXCHANGE_FRAME__INIT
#define EXCHANGE_STATUS(name) OPENSHELL__SANDBOX__PROTOCOL__V1__EXIT_STATUS__STATUS_##name

typedef Openshell__Sandbox__Protocol__V1__ExchangeFrame exchange_frame;
typedef Openshell__Sandbox__Protocol__V1__Evidence exchange_evidence;
typedef Openshell__Sandbox__Protocol__V1__ExitStatus exchange_exit_status;

#define BACKEND_NAME "openshell-sandbox"

enum {
    EXCHANGE_CHUNK_LIMIT = 64 * 1024, /* bytes of input or output in one frame */
    BOUNDARY_ID_LIMIT = 128,          /* bytes of a handle (behaviour reference 8.2) */
    DESCRIPTOR_LIMIT = 64 * 1024,     /* bytes of a driver descriptor */
};

/* The name of the main process in every operation that names a process. */
#define MAIN_PROCESS_ID "main"

#endif
