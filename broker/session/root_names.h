/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_ROOT_NAMES_H
#define BROKER_SESSION_ROOT_NAMES_H

#include "broker/session/hop.h"

/* The names that the directories of a peer's sandbox have on either side. */

void root_names_init(struct peer *peer);
void root_names_finish(struct peer *peer);

/* The sandbox is ready: what its agent may remember; it has a further root. */
void root_names_read_known(struct peer *peer);
void root_names_read_roots(struct peer *peer);

/* A path as the other side calls it; owned by the caller. */
char *relay_map_path(const struct peer *peer, enum path_direction direction, const char *path);

/* The editor has asked for the sessions of a directory by this name; what it is without links. */
void relay_know_as(struct peer *peer, const char *name, const char *real);

/* The names of the directories in a message of this method, or in its answer; NULL: any. */
const struct path_map *relay_map_of(const struct peer *peer, const struct method *method);

#endif
