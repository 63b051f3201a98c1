/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_ROOT_NAMES_H
#define BROKER_SESSION_ROOT_NAMES_H

#include "broker/session/hop.h"

/* The names of a peer's directories: in its sandbox, and as the editor knows them. */

void root_names_init(struct peer *peer);
void root_names_finish(struct peer *peer);

/*
 * root_names_read_known: call it when the sandbox is ready; reads the names that its agent may
 * remember. root_names_read_roots: call it when the sandbox has a new root; reads the roots' names.
 */
void root_names_read_known(struct peer *peer);
void root_names_read_roots(struct peer *peer);

/* Returns the path as the other side names it; the caller owns it. */
char *relay_map_path(const struct peer *peer, enum path_direction direction, const char *path);

/*
 * The editor has asked for the sessions of directory `name`; `real` is the same path without links.
 */
void relay_know_as(struct peer *peer, const char *name, const char *real);

/* A sandbox that no longer exists had this root; the agent may list sessions in it. */
void relay_know_root(struct peer *peer, const char *local, const char *runtime);

/* The path map for a message of this method, and for its answer; NULL: any method. */
const struct path_map *relay_map_of(const struct peer *peer, const struct method *method);

#endif
