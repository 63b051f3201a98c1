/* SPDX-License-Identifier: MIT */
#include "sync/held.h"

#include <stdlib.h>

#include "sync/graft.h"

static const struct store_entry *version_of(
	const struct held_change *held, enum held_version version)
{
	const struct store_entry *const versions[] = {
		[HELD_BASE] = &held->base,
		[HELD_RUNTIME] = &held->runtime,
		[HELD_MADE] = &held->made,
	};
	return versions[version];
}

bool held_graft(struct store *store, const struct list *held, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err)
{
	git_oid made = *tree;
	LIST_FOR_EACH(one, held, struct held_change, link) {
		const struct store_entry *entry = version_of(one, version);
		const struct graft graft = {entry->mode, entry->id};
		if (!graft_set(store, &made, one->path, &graft, &made, err)) {
			return false;
		}
	}
	*out_tree = made;
	return true;
}

void held_finish(struct list *held)
{
	LIST_FOR_EACH(one, held, struct held_change, link) {
		list_remove(&one->link);
		free(one->path);
		free(one);
	}
}

bool held_park(struct store *store, const struct list *held, const struct park_request *parking,
	struct error *err)
{
	struct merge merge = {.merged = store_empty_tree};
	list_init(&merge.conflicts);
	list_init(&merge.held);
	LIST_FOR_EACH(one, held, struct held_change, link) {
		struct conflict *conflict = mem_alloc_zero(sizeof(*conflict));
		conflict->path = mem_strdup(one->path);
		conflict->base = one->base;
		conflict->local = one->local;
		conflict->runtime = one->runtime;
		list_append(&merge.conflicts, &conflict->link);
		merge.conflict_count++;
	}
	bool parked = conflicts_park(store, &merge, parking, err);
	merge_finish(&merge);
	return parked;
}
