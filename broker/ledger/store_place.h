/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_STORE_PLACE_H
#define BROKER_LEDGER_STORE_PLACE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Finds the workspace that a directory belongs to: the nearest directory with a store, starting at
 * the directory itself and going up. A store is named after the workspace's path as the editor gave
 * it. So this tries the user's spelling ($PWD, through links) as well as the real path.
 */
struct store_place {
	char *root;         // owned; the workspace, absolute
	char *real_root;    // owned
	char *store_folder; // owned
	char *below;        // owned; the directory's path below the root; "" for the root itself
};

/*
 * `directory` is where to start; NULL: the working directory. `pwd` is $PWD, or NULL.
 * ERROR_NOT_FOUND says what was looked for and what to do; then there is nothing to finish.
 */
bool store_place_find(struct store_place *place, const char *state_folder, const char *directory,
	const char *pwd, struct error *err) ATTR_NODISCARD;
void store_place_finish(struct store_place *place);

/*
 * Turns a path that a user typed in the directory into one below the root; "" for the root itself.
 * ERROR_CONFIG if it leads out of the workspace. The caller frees it; NULL on failure.
 */
char *store_place_path(const struct store_place *place, const char *word, struct error *err);

#endif
