/* SPDX-License-Identifier: MIT */
#include "sync/graft.h"

#include <stdlib.h>
#include <string.h>

#include "base/path_quote.h"
#include "sync/snapshot.h"

static const struct tree_view_entry *entry_of(const struct tree_view *view, struct span name)
{
	for (size_t i = 0; i < view->count; i++) {
		if (span_equals(view->entries[i].name, name)) {
			return &view->entries[i];
		}
	}
	return NULL;
}

static struct span first_part(const char *path)
{
	return (struct span){path, strcspn(path, "/")};
}

static bool fail_missing(const char *path, struct error *err)
{
	char *quoted = path_quote(span_of(path));
	error_set(err, ERROR_NOT_FOUND, "there is no %s", quoted);
	free(quoted);
	return false;
}

bool graft_find(struct store *store, const git_oid *tree, const char *path, struct graft *out,
	struct error *err)
{
	struct graft found = {TREE_VIEW_FOLDER, *tree};
	struct trail trail = {0};
	for (const char *rest = path; *rest;) {
		struct tree_view view;
		size_t mark;
		struct span name = first_part(rest);
		if (found.mode != TREE_VIEW_FOLDER) {
			return fail_missing(path, err);
		}
		bool loaded = tree_view_load(&view, store, &found.id, &trail, err);
		const struct tree_view_entry *entry = loaded ? entry_of(&view, name) : NULL;
		if (entry) {
			found = (struct graft){entry->mode, entry->id};
		}
		tree_view_finish(&view);
		if (!entry) {
			return loaded && fail_missing(path, err);
		}
		if (!trail_push(&trail, name, &mark, err)) {
			return false;
		}
		rest += name.len + (rest[name.len] == '/');
	}
	*out = found;
	return true;
}

/* Replaces one entry of a folder, and writes the folder. */
static bool write_with(struct store *store, const struct tree_view *view,
	const struct tree_view_entry *added, git_oid *out_tree, struct error *err)
{
	struct tree_view_entry *entries = mem_alloc((view->count + 1) * sizeof(*entries));
	size_t count = 0;
	for (size_t i = 0; i < view->count; i++) {
		if (!span_equals(view->entries[i].name, added->name)) {
			entries[count++] = view->entries[i];
		}
	}
	entries[count++] = *added;
	bool written = tree_view_write(store, entries, count, out_tree, err);
	free(entries);
	return written;
}

struct planting {
	struct store *store;
	const struct graft *graft;
	struct trail trail;
};

/* `tree` may be NULL. trail_push limits the depth. */
static bool set_below(struct planting *planting, const git_oid *tree, const char *rest,
	git_oid *out_tree, struct error *err)
{
	struct tree_view view;
	struct tree_view_entry added = {
		first_part(rest), planting->graft->mode, planting->graft->id};
	bool ok = tree_view_load(&view, planting->store, tree, &planting->trail, err);
	if (ok && rest[added.name.len] == '/') {
		size_t mark;
		const git_oid *below = tree_view_folder(entry_of(&view, added.name));
		added.mode = TREE_VIEW_FOLDER;
		ok = trail_push(&planting->trail, added.name, &mark, err) &&
		     set_below(planting, below, rest + added.name.len + 1, &added.id, err);
	}
	ok = ok && write_with(planting->store, &view, &added, out_tree, err);
	tree_view_finish(&view);
	return ok;
}

bool graft_set(struct store *store, const git_oid *tree, const char *path,
	const struct graft *graft, git_oid *out_tree, struct error *err)
{
	struct planting planting = {.store = store, .graft = graft};
	if (!snapshot_path_is_safe(span_of(path))) {
		char *quoted = path_quote(span_of(path));
		error_set(err, ERROR_CONFIG, "%s is a path that is never synced", quoted);
		free(quoted);
		return false;
	}
	return set_below(&planting, tree, path, out_tree, err);
}

/* ---- missing entries ---- */

static bool add_missing(struct store *store, struct trail *trail, const git_oid *from,
	const git_oid *into, git_oid *out_tree, struct error *err);

/* One name: the existing entry, the missing one, or a folder merged from both. */
static bool merge_name(struct store *store, struct trail *trail, const struct tree_view_row *row,
	struct tree_view_entry *out, struct error *err)
{
	const struct tree_view_entry *from = row->sides[0];
	const struct tree_view_entry *into = row->sides[1];
	size_t mark;
	*out = into ? *into : *from;
	if (!tree_view_folder(from) || !tree_view_folder(into) || tree_view_is_same(from, into)) {
		return true;
	}
	if (!trail_push(trail, row->name, &mark, err) ||
		!add_missing(store, trail, &from->id, &into->id, &out->id, err)) {
		return false;
	}
	trail_pop(trail, mark);
	return true;
}

static bool merge_views(struct store *store, struct trail *trail, const struct tree_view views[2],
	git_oid *out_tree, struct error *err)
{
	size_t most = views[0].count + views[1].count;
	struct tree_view_entry *entries = mem_alloc((most + 1) * sizeof(*entries));
	struct tree_view_walk walk = {.views = views, .count = 2};
	struct tree_view_row row;
	size_t count = 0;
	bool ok = true;
	while (ok && tree_view_next(&walk, &row)) {
		ok = merge_name(store, trail, &row, &entries[count++], err);
	}
	ok = ok && tree_view_write(store, entries, count, out_tree, err);
	free(entries);
	return ok;
}

/* trail_push limits the depth. */
static bool add_missing(struct store *store, struct trail *trail, const git_oid *from,
	const git_oid *into, git_oid *out_tree, struct error *err)
{
	struct tree_view views[2] = {0};
	bool ok = tree_view_load(&views[0], store, from, trail, err) &&
	          tree_view_load(&views[1], store, into, trail, err) &&
	          merge_views(store, trail, views, out_tree, err);
	tree_view_finish(&views[0]);
	tree_view_finish(&views[1]);
	return ok;
}

bool graft_missing(struct store *store, const git_oid *from, const git_oid *into, git_oid *out_tree,
	struct error *err)
{
	struct trail trail = {0};
	return add_missing(store, &trail, from, into, out_tree, err);
}
