/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_STORE_PLACE_H
#define BROKER_LEDGER_STORE_PLACE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Which workspace a directory belongs to: the nearest directory, itself or one that holds it,
 * that has a store. A store is named by its workspace's path as the editor gave it, so the path
 * in the user's spelling ($PWD, through links) counts, and the real one.
 */
struct store_place {
	char *root;         // owned; the workspace, absolute
	char *real_root;    // owned
	char *store_folder; // owned
	char *below;        // owned; where the directory is below the root; "" for the root itself
};

/*
 * `directory` is where to look from; NULL: the working directory. `pwd` is $PWD, or NULL.
 * ERROR_NOT_FOUND, saying what was looked for and what to do; then nothing is to be finished.
 */
bool store_place_find(struct store_place *place, const char *state_folder, const char *directory,
	const char *pwd, struct error *err) ATTR_NODISCARD;
void store_place_finish(struct store_place *place);

/*
 * A path that a user wrote, seen from the directory, as one below the root; "" for the root
 * itself. ERROR_CONFIG where it leads out of the workspace. The caller frees it; NULL on failure.
 */
char *store_place_path(const struct store_place *place, const char *word, struct error *err);

#endif
