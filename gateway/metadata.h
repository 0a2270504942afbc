/* What commands and SDKs read to find this gateway (decision W8, command-line reference 1.4). */
#ifndef GATEWAY_METADATA_H
#define GATEWAY_METADATA_H

#include "base/error.h"

/* Writes C/gateways/openshell/metadata.json, and C/active_gateway where there is none. */
bool metadata_write(const char *config_directory, const char *socket_path, struct error *error);

#endif
