/* SPDX-License-Identifier: MIT */
#include "sync/plan.h"

#include <string.h>

#include "base/text.h"
#include "sync/tree_view.h"
#include "sync/workspace.h"

enum { PLAN_TREES = 5, PLAN_ENTRIES };

/* `delivered` may be missing. */
struct part {
	const char *name;
	git_oid *tree;
};

static void list_parts(struct plan *plan, struct part parts[PLAN_TREES])
{
	const struct part all[PLAN_TREES] = {
		{"base", &plan->base},
		{"local", &plan->trees.local},
		{"merged", &plan->trees.merged},
		{"runtime", &plan->trees.runtime},
		{"delivered", &plan->delivered},
	};
	memcpy(parts, all, sizeof(all));
}

static const char renames_name[] = "renames";

static void plan_name(char name[SYNC_NAME_MAX], const char *sandbox)
{
	text_whole(name, SYNC_NAME_MAX, "merges/%s", sandbox);
}

bool plan_keep(struct store *store, const char *sandbox, const struct plan *plan, struct error *err)
{
	char name[SYNC_NAME_MAX];
	struct part parts[PLAN_TREES];
	struct tree_view_entry entries[PLAN_ENTRIES];
	struct plan copy = *plan;
	git_oid tree, commit, empty, followed;
	size_t count = plan->has_delivered ? PLAN_TREES : PLAN_TREES - 1;
	plan_name(name, sandbox);
	list_parts(&copy, parts);
	for (size_t i = 0; i < count; i++) {
		entries[i] = (struct tree_view_entry){
			span_of(parts[i].name), TREE_VIEW_FOLDER, *parts[i].tree};
	}
	if (plan->renames.count > 0) {
		if (!renames_put(&plan->renames, store, &followed, err)) {
			return false;
		}
		entries[count++] =
			(struct tree_view_entry){SPAN_LITERAL(renames_name), ENTRY_FILE, followed};
	}
	/* One of the trees may be the empty one, which may not be written yet. */
	return tree_view_write(store, NULL, 0, &empty, err) &&
	       tree_view_write(store, entries, count, &tree, err) &&
	       store_keep(store, name, &tree, NULL, "merge", &commit, err);
}

static bool read_parts(
	struct store *store, const git_oid *tree, struct plan *plan, struct error *err)
{
	struct tree_view view;
	struct trail trail = {0};
	struct part parts[PLAN_TREES];
	size_t found = 0;
	bool read = true;
	list_parts(plan, parts);
	bool loaded = tree_view_load(&view, store, tree, &trail, err);
	for (size_t i = 0; loaded && read && i < view.count; i++) {
		const git_oid *id = tree_view_folder(&view.entries[i]);
		if (!id && span_is(view.entries[i].name, renames_name)) {
			read = renames_read(&plan->renames, store, &view.entries[i].id, err);
		}
		for (size_t k = 0; id && k < PLAN_TREES; k++) {
			if (span_is(view.entries[i].name, parts[k].name)) {
				*parts[k].tree = *id;
				found++;
			}
		}
	}
	tree_view_finish(&view);
	plan->has_delivered = found == PLAN_TREES;
	return loaded && read &&
	       (found + 1 >= PLAN_TREES ||
		       error_set(err, ERROR_SYSTEM, "store %s: a merge's plan lacks trees",
			       store->path));
}

bool plan_read(struct store *store, const char *sandbox, struct plan *out_plan, bool *out_found,
	struct error *err)
{
	char name[SYNC_NAME_MAX];
	struct plan plan = {.has_delivered = false};
	git_oid tree;
	plan_name(name, sandbox);
	*out_found = store_find(store, name, &tree, err);
	if (!*out_found) {
		return err->code == ERROR_NOT_FOUND;
	}
	if (!read_parts(store, &tree, &plan, err)) {
		plan_finish(&plan);
		return false;
	}
	*out_plan = plan;
	return true;
}

void plan_finish(struct plan *plan)
{
	renames_finish(&plan->renames);
}

bool plan_forget(struct store *store, const char *sandbox, struct error *err)
{
	char name[SYNC_NAME_MAX];
	plan_name(name, sandbox);
	return store_forget(store, name, err) || err->code == ERROR_NOT_FOUND;
}
