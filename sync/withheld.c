/* SPDX-License-Identifier: MIT */
#include "sync/withheld.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/fd.h"
#include "sync/git_layout.h"
#include "sync/id.h"
#include "sync/tree_view.h"
#include "sync/walk_names.h"

static const char reason[] = "git would run commands that it names";

/* ---- taking ---- */

enum side { BASE, LOCAL, RUNTIME, SIDE_COUNT };

struct taker {
	struct store *store;
	int root_fd;
	struct stuck *paths;
	struct trail trail;
	struct names names;
};

struct folder {
	const git_oid *ids[SIDE_COUNT];
	git_oid taken;
	bool is_withheld; // as a whole
};

/* Whether the agent has changed it, to something other than the local version. */
static bool is_changed(const struct tree_view_row *row)
{
	const struct tree_view_entry *runtime = row->sides[RUNTIME];
	return runtime && !tree_view_is_same(row->sides[BASE], runtime) &&
	       !tree_view_is_same(row->sides[LOCAL], runtime);
}

/*
 * The parts that the local folder at the trail has, members or not. An unreadable folder has none.
 */
static unsigned parts_here(struct taker *taker)
{
	struct error ignored;
	unsigned parts = 0;
	const char *path = taker->trail.len > 0 ? taker->trail.path : ".";
	int fd ATTR_CLEANUP(fd_cleanup) =
		beneath_open(taker->root_fd, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || !names_read(&taker->names, fd, &ignored)) {
		return 0;
	}
	for (size_t i = 0; i < taker->names.count; i++) {
		parts |=
			git_layout_part(span_of(names_text(&taker->names, &taker->names.items[i])));
	}
	return parts;
}

/* The parts in which the runtime's changes are withheld. May withhold the whole folder instead. */
static unsigned find_withheld(
	struct taker *taker, struct folder *folder, const struct tree_view views[SIDE_COUNT])
{
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	unsigned changed = 0;
	unsigned there = 0;
	while (tree_view_next(&walk, &row)) {
		unsigned part = row.sides[RUNTIME] ? git_layout_part(row.name) : 0;
		there |= part;
		changed |= is_changed(&row) ? part : 0;
	}
	unsigned here = changed ? parts_here(taker) : 0;
	if (!changed || !git_layout_is_repository(there | here)) {
		return 0;
	}
	if (git_layout_is_repository(here)) {
		return GIT_PARTS_RUN;
	}
	folder->is_withheld = !folder->ids[BASE];
	return GIT_PARTS_ALL;
}

static bool take_folder(struct taker *taker, struct folder *folder, struct error *err);

/* *out is NULL if the entry is gone. */
static bool take_row(struct taker *taker, const struct tree_view_row *row, unsigned withheld,
	struct tree_view_entry *made, const struct tree_view_entry **out, struct error *err)
{
	const struct tree_view_entry *base = row->sides[BASE];
	const struct tree_view_entry *runtime = row->sides[RUNTIME];
	*out = runtime;
	if (!is_changed(row)) {
		return true;
	}
	size_t mark;
	if (!trail_push(&taker->trail, row->name, &mark, err)) {
		return false;
	}
	bool taken = true;
	if (git_layout_part(row->name) & withheld) {
		stuck_add(taker->paths, taker->trail.path, reason);
		*out = base;
	} else if (runtime->mode == TREE_VIEW_FOLDER) {
		struct folder below = {.ids = {tree_view_folder(base),
					       tree_view_folder(row->sides[LOCAL]), &runtime->id}};
		taken = take_folder(taker, &below, err);
		*made = (struct tree_view_entry){row->name, TREE_VIEW_FOLDER, below.taken};
		*out = below.is_withheld ? base : made;
	}
	trail_pop(&taker->trail, mark);
	return taken;
}

static bool take_rows(struct taker *taker, struct folder *folder,
	const struct tree_view views[SIDE_COUNT], unsigned withheld, struct error *err)
{
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	struct tree_view_entry *entries =
		mem_alloc((views[BASE].count + views[RUNTIME].count + 1) * sizeof(*entries));
	size_t count = 0;
	bool is_less = false;
	bool taken = true;
	while (taken && tree_view_next(&walk, &row)) {
		struct tree_view_entry made;
		const struct tree_view_entry *entry;
		taken = take_row(taker, &row, withheld, &made, &entry, err);
		if (!taken) {
			break;
		}
		is_less = is_less || !tree_view_is_same(entry, row.sides[RUNTIME]);
		if (entry &&
			!id_equal(&entry->id, &store_empty_tree)) { // trees have no empty folders
			entries[count] = *entry;
			entries[count++].name = row.name;
		}
	}
	folder->taken = count > 0 ? *folder->ids[RUNTIME] : store_empty_tree;
	if (taken && is_less && count > 0) {
		taken = tree_view_write(taker->store, entries, count, &folder->taken, err);
	}
	free(entries);
	return taken;
}

static bool take_folder(struct taker *taker, struct folder *folder, struct error *err)
{
	struct tree_view views[SIDE_COUNT] = {{0}};
	bool taken = true;
	folder->taken = *folder->ids[RUNTIME];
	for (int i = 0; i < RUNTIME; i++) {
		if (folder->ids[i] && id_equal(folder->ids[i], folder->ids[RUNTIME])) {
			return true;
		}
	}
	for (int i = 0; i < SIDE_COUNT; i++) {
		taken = taken &&
		        tree_view_load(&views[i], taker->store, folder->ids[i], &taker->trail, err);
	}
	unsigned withheld = taken ? find_withheld(taker, folder, views) : 0;
	if (folder->is_withheld) {
		stuck_add(taker->paths, taker->trail.path, reason);
	} else {
		taken = taken && take_rows(taker, folder, views, withheld, err);
	}
	for (int i = 0; i < SIDE_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
	return taken;
}

bool withheld_has(const char *path)
{
	char probe[PATH_MAX];
	struct git_write write;
	enum git_write_answer answer;
	git_write_begin(&write, path);
	while ((answer = git_write_next(&write, probe, sizeof(probe))) == GIT_WRITE_PROBE) {
		struct stat status;
		git_write_tell(&write,
			lstat(probe, &status) == 0 || (errno != ENOENT && errno != ENOTDIR));
	}
	return answer == GIT_WRITE_REFUSED;
}

/* Returns true, and takes nothing, if the local directory belongs to git. */
static bool take_none(
	const struct withheld_request *request, const git_oid *runtime, struct stuck *paths)
{
	if (!withheld_has(request->root)) {
		return false;
	}
	if (!id_equal(request->base, runtime)) {
		stuck_add(paths, ".", reason);
	}
	return true;
}

bool withheld_take(struct store *store, const struct withheld_request *request,
	const git_oid *runtime, struct stuck *paths, git_oid *out_tree, struct error *err)
{
	struct folder root = {.ids = {request->base, request->local, runtime}};
	if (take_none(request, runtime, paths)) {
		*out_tree = *request->base;
		return true;
	}
	struct taker *taker = mem_alloc_zero(sizeof(*taker));
	taker->store = store;
	taker->paths = paths;
	names_init(&taker->names);
	taker->root_fd = open(request->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool taken = taker->root_fd >= 0
	                     ? take_folder(taker, &root, err)
	                     : error_set_errno(err, errno, "the workspace %s", request->root);
	*out_tree = root.taken;
	fd_close(&taker->root_fd);
	names_finish(&taker->names);
	free(taker);
	return taken;
}

/* ---- adding ---- */

enum layer { TREE, PART, FULL, LAYER_COUNT };

struct adder {
	struct store *store;
	struct trail trail;
};

static bool add_folder(struct adder *adder, const git_oid *const ids[LAYER_COUNT], git_oid *out_id,
	struct error *err);

static bool add_below(
	struct adder *adder, const struct tree_view_row *row, git_oid *out_id, struct error *err)
{
	const git_oid *ids[LAYER_COUNT];
	size_t mark;
	bool is_any = false;
	for (int i = 0; i < LAYER_COUNT; i++) {
		ids[i] = tree_view_folder(row->sides[i]);
		is_any = is_any || ids[i];
	}
	*out_id = store_empty_tree;
	if (!is_any) {
		return true;
	}
	if (!trail_push(&adder->trail, row->name, &mark, err)) {
		return false;
	}
	bool added = add_folder(adder, ids, out_id, err);
	trail_pop(&adder->trail, mark);
	return added;
}

/*
 * The file and the folder of a name are separate entries. If there would be both, the one that
 * `full` has wins.
 */
static bool add_names(struct adder *adder, const struct tree_view_row *row,
	struct tree_view_entry *made, struct error *err)
{
	struct store_entry part = tree_view_leaf(row->sides[PART]);
	struct store_entry full = tree_view_leaf(row->sides[FULL]);
	struct store_entry tree = tree_view_leaf(row->sides[TREE]);
	bool is_full = !store_entry_equal(&part, &full);
	const struct store_entry *leaf = is_full ? &full : &tree;
	git_oid folder;
	*made = (struct tree_view_entry){.name = row->name};
	if (!add_below(adder, row, &folder, err)) {
		return false;
	}
	bool has_folder = !id_equal(&folder, &store_empty_tree);
	if (leaf->mode && (is_full || !has_folder)) {
		made->mode = leaf->mode;
		made->id = leaf->id;
	} else if (has_folder) {
		made->mode = TREE_VIEW_FOLDER;
		made->id = folder;
	}
	return true;
}

/* *out is NULL if there is no entry. */
static bool add_row(struct adder *adder, const struct tree_view_row *row,
	struct tree_view_entry *made, const struct tree_view_entry **out, struct error *err)
{
	const struct tree_view_entry *part = row->sides[PART];
	bool added = true;
	if (tree_view_is_same(part, row->sides[FULL])) {
		*out = row->sides[TREE];
	} else if (tree_view_is_same(part, row->sides[TREE])) {
		*out = row->sides[FULL];
	} else {
		added = add_names(adder, row, made, err);
		*out = made->mode ? made : NULL;
	}
	return added;
}

static bool add_rows(struct adder *adder, const struct tree_view views[LAYER_COUNT],
	git_oid *out_id, struct error *err)
{
	struct tree_view_walk walk = {.views = views, .count = LAYER_COUNT};
	struct tree_view_row row;
	size_t most = views[TREE].count + views[PART].count + views[FULL].count;
	struct tree_view_entry *entries = mem_alloc((most + 1) * sizeof(*entries));
	size_t count = 0;
	bool added = true;
	while (added && tree_view_next(&walk, &row)) {
		const struct tree_view_entry *entry;
		struct tree_view_entry made;
		added = add_row(adder, &row, &made, &entry, err);
		if (added && entry) {
			entries[count] = *entry;
			entries[count++].name = row.name;
		}
	}
	*out_id = store_empty_tree;
	added = added && (count == 0 || tree_view_write(adder->store, entries, count, out_id, err));
	free(entries);
	return added;
}

static bool add_folder(struct adder *adder, const git_oid *const ids[LAYER_COUNT], git_oid *out_id,
	struct error *err)
{
	struct tree_view views[LAYER_COUNT] = {{0}};
	bool added = true;
	for (int i = 0; i < LAYER_COUNT; i++) {
		added = added &&
		        tree_view_load(&views[i], adder->store, ids[i], &adder->trail, err);
	}
	added = added && add_rows(adder, views, out_id, err);
	for (int i = 0; i < LAYER_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
	return added;
}

bool withheld_add(struct store *store, const git_oid *tree, const git_oid *part,
	const git_oid *full, git_oid *out_tree, struct error *err)
{
	*out_tree = *tree;
	if (id_equal(part, full)) {
		return true;
	}
	const git_oid *ids[LAYER_COUNT] = {tree, part, full};
	struct adder *adder = mem_alloc_zero(sizeof(*adder));
	adder->store = store;
	bool added = add_folder(adder, ids, out_tree, err);
	free(adder);
	return added;
}
