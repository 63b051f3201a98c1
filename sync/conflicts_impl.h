/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CONFLICTS_IMPL_H
#define SYNC_CONFLICTS_IMPL_H

#include "sync/conflicts.h"
#include "sync/tree_view.h"

/* ---- conflicts_batch.c: the conflicts of one sync, as the store holds them ---- */

enum { BATCH_NAME_MAX = 128, BATCH_INDEX_MAX = 16, BATCH_ID_MAX = 160 };

/*
 * Writes the tree of all conflicts in a merge that have something to park, except those in `known`.
 * `known` has one element per conflict.
 */
bool batch_write(struct store *store, const struct merge *merge, struct parked *const *known,
	git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* The id of the `number`th conflict (from 1) in a batch of batch_write. */
void batch_id(char id[BATCH_ID_MAX], const char *name, size_t number);

/* Visits the names below refs/acp-broker/conflicts/, in order. */
bool batch_each(struct store *store, bool (*visit)(void *data, const char *name, struct error *err),
	void *data, struct error *err) ATTR_NODISCARD;

/* Loads one batch; appends a struct parked for each conflict. */
bool batch_load(
	struct store *store, const char *name, struct list *list, struct error *err) ATTR_NODISCARD;

/*
 * Removes one conflict from its batch; removes the ref of an empty batch. `id` is from struct
 * parked.
 */
bool batch_drop(struct store *store, const char *id, struct error *err) ATTR_NODISCARD;

bool batch_keep(struct store *store, const char *name, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

#endif
