/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MERGE_IMPL_H
#define SYNC_MERGE_IMPL_H

#include "sync/guard_links.h"
#include "sync/merge.h"
#include "sync/tree_view.h"

/* What merge.c (folders) and merge_leaf.c (files) share; nobody else includes this. */

enum side { BASE, LOCAL, RUNTIME, DELIVERED, SIDE_COUNT };

struct merger {
	struct merge *merge;
	struct store *store;
	struct trail trail;
	size_t rows;
	bool is_blocked;  // we are below a local file that stays
	bool is_replaced; // we are below a guarded file that the user has allowed
	struct merge_options options;
	const git_oid *local;      // tree
	struct guard_links *links; // of the local tree; NULL until it is first needed
};

/* ---- merge_leaf.c ---- */

/* Merges the file at the trail; if it cannot be decided, adds a conflict. */
bool merge_leaf(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	struct store_entry *out, struct error *err) ATTR_NODISCARD;

/* `why` is NULL if both sides changed it. ERROR_LIMIT. */
bool merge_add_conflict(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	const char *why, struct error *err) ATTR_NODISCARD;

/* ---- merge_guard.c ---- */

/* Whether `made` is at the trail, and guarded there. */
bool merge_has_guarded(const struct merger *merger, const struct store_entry *made);

/* Whether the file at the trail needs the user's permission to become `made`. */
bool merge_guards(struct merger *merger, const struct store_entry *local,
	const struct store_entry *made, bool *out_guards, struct error *err) ATTR_NODISCARD;

/* Holds the change at the trail; `is_moved`: without a question. ERROR_LIMIT. */
bool merge_hold(struct merger *merger, const struct held_change *change, bool is_moved,
	struct error *err) ATTR_NODISCARD;

#endif
