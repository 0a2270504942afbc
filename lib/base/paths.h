/* Where things are (decision B14, command-line reference 1.4). All results are newly allocated and
 * owned by the caller. */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

#include "base/error.h"

/* root: /run/openshell; else $XDG_RUNTIME_DIR/openshell; else /run/user/UID/openshell when
 * /run/user/UID is ours; else $XDG_STATE_HOME/openshell/run. OPENSHELL_RUN_DIR wins over all of
 * them. Made 0700 and checked (no link, owner). */
char *paths_run_directory(struct error *error);
/* $XDG_STATE_HOME/openshell, else ~/.local/state/openshell. Root without XDG_STATE_HOME:
 * /var/lib/openshell. Made 0700. */
char *paths_state_directory(struct error *error);
/* $XDG_CONFIG_HOME/openshell, else ~/.config/openshell. Made 0700. */
char *paths_config_directory(struct error *error);
/* The same place, neither made nor checked: for readers, to whom its absence says something. */
char *paths_config_location(struct error *error);

/* An executable of ours that is not for PATH: $OPENSHELL_EXEC_PATH/NAME when that is set, else
 * PKGLIBEXECDIR/NAME. */
char *paths_libexec(const char *name);

#endif
