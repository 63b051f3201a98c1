/* SPDX-License-Identifier: MIT */
#include "sync/moved.h"

#include <stdlib.h>

#include "base/buf.h"
#include "sync/id.h"
#include "sync/merge.h"
#include "sync/tree_view.h"

enum layer { PART, FULL, LAYER_COUNT };

struct finder {
	struct store *store;
	struct id_set *ids;
	size_t names;
	struct trail trail;
	struct error ignored; // kept here, not on the stack: folders may be nested
	                      // TREE_VIEW_DEPTH_MAX deep
};

static void find_folder(struct finder *finder, const git_oid *part, const git_oid *full);

static void find_row(struct finder *finder, const struct tree_view_row *row)
{
	const struct tree_view_entry *part = row->sides[PART];
	const struct tree_view_entry *full = row->sides[FULL];
	size_t mark;
	finder->names++;
	if (!full || tree_view_is_same(part, full) || !id_set_add(finder->ids, &full->id) ||
		full->mode != TREE_VIEW_FOLDER ||
		!trail_push(&finder->trail, row->name, &mark, &finder->ignored)) {
		return;
	}
	find_folder(finder, tree_view_folder(part), &full->id);
	trail_pop(&finder->trail, mark);
}

static void find_folder(struct finder *finder, const git_oid *part, const git_oid *full)
{
	const git_oid *const ids[LAYER_COUNT] = {part, full};
	struct tree_view views[LAYER_COUNT] = {{0}};
	struct tree_view_walk walk = {.views = views, .count = LAYER_COUNT};
	struct tree_view_row row;
	bool loaded = true;
	for (int i = 0; i < LAYER_COUNT; i++) {
		loaded = loaded && tree_view_load(&views[i], finder->store, ids[i], &finder->trail,
					   &finder->ignored);
	}
	while (loaded && finder->names < MOVED_NAMES_MAX && tree_view_next(&walk, &row)) {
		find_row(finder, &row);
	}
	for (int i = 0; i < LAYER_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
}

void moved_find(struct id_set *out, struct store *store, const git_oid *part, const git_oid *full,
	const struct list *held)
{
	struct finder *finder = mem_alloc_zero(sizeof(*finder));
	finder->store = store;
	finder->ids = out;
	if (!id_equal(part, full)) {
		find_folder(finder, part, full);
	}
	LIST_FOR_EACH(one, held, struct held_change, link) {
		if (one->runtime.mode) {
			id_set_add(out, &one->runtime.id);
		}
		if (one->is_whole) {
			id_set_add(out, &one->runtime_folder);
			find_folder(finder, NULL, &one->runtime_folder);
		}
	}
	free(finder);
}

bool moved_has_file(
	const struct id_set *moved, struct store *store, const struct store_entry *entry)
{
	uint64_t size;
	struct error ignored;
	return entry->mode && id_set_has(moved, &entry->id) &&
	       (!store_size(store, entry, &size, &ignored) || size > 0);
}

bool moved_has_folder(const struct id_set *moved, const git_oid *folder)
{
	return id_set_has(moved, folder);
}
