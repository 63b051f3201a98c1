/* SPDX-License-Identifier: MIT */
#include "sync/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_utf8.h"
#include "base/path_quote.h"
#include "sync/graft.h"
#include "sync/id.h"
#include "sync/path_order.h"
#include "sync/tree_view.h"

static const struct store_entry *version_of(
	const struct held_change *held, enum held_version version)
{
	static const struct store_entry none = {.mode = ENTRY_NONE};
	const struct store_entry *const versions[] = {
		[HELD_BASE] = &held->base,
		[HELD_RUNTIME] = &held->runtime,
		[HELD_MADE] = &held->made,
		[HELD_GONE] = held->made.mode ? &none : &held->local,
	};
	return versions[version];
}

/* A folder that is held as a whole; NULL: none. */
static const git_oid *folder_of(const struct held_change *held, enum held_version version)
{
	const git_oid *const folders[] = {
		[HELD_BASE] = &held->base_folder,
		[HELD_RUNTIME] = &held->runtime_folder,
		[HELD_GONE] = NULL,
	};
	const git_oid *folder = held->is_whole ? folders[version] : NULL;
	return folder && !id_equal(folder, &store_empty_tree) ? folder : NULL;
}

/* ---- in a tree ---- */

struct grafter {
	struct store *store;
	const struct held_change **items; // sorted by path, so that those of a folder are together
	enum held_version version;
	struct trail trail;
};

/* Some of the items in one folder; the names in it begin at offset `name`. */
struct range {
	size_t first, end;
	size_t name;
};

static struct span name_at(const struct grafter *grafter, size_t item, size_t name)
{
	const char *text = grafter->items[item]->path + name;
	return (struct span){text, strcspn(text, "/")};
}

/* The items at the beginning of a range that have the same name. */
static struct range take_name(const struct grafter *grafter, struct range range)
{
	struct span name = name_at(grafter, range.first, range.name);
	size_t end = range.first + 1;
	while (end < range.end && span_equals(name_at(grafter, end, range.name), name)) {
		end++;
	}
	return (struct range){range.first, end, range.name};
}

static int compare_names(const void *name, const void *entry)
{
	return span_compare(
		*(const struct span *)name, ((const struct tree_view_entry *)entry)->name);
}

static bool graft_folder(struct grafter *grafter, const git_oid *tree, struct range range,
	git_oid *out_tree, struct error *err);

static bool is_nothing(const struct grafter *grafter, size_t item)
{
	const struct held_change *held = grafter->items[item];
	return !version_of(held, grafter->version)->mode && !folder_of(held, grafter->version);
}

/* Whether the item's path ends at `end`. */
static bool ends_at(const struct grafter *grafter, size_t item, size_t end)
{
	return !grafter->items[item]->path[end];
}

/* Refuses a file or link that also has something below it: one of the two would be lost. */
static bool check_leaf(struct grafter *grafter, struct range range, size_t end, struct error *err)
{
	for (size_t i = range.first + 1; i < range.end; i++) {
		if (!ends_at(grafter, i, end) && !is_nothing(grafter, i)) {
			char *path = path_quote(span_of(grafter->items[range.first]->path));
			error_set(err, ERROR_SYSTEM,
				"%s would be a file and a folder at once: this is a defect of the "
				"broker; nothing was changed",
				path);
			free(path);
			return false;
		}
	}
	return true;
}

/* The new entry for the range's name; `old` is the former one. NULL: none. */
static bool graft_name(struct grafter *grafter, const struct tree_view_entry *old,
	struct range range, struct tree_view_entry *out, struct error *err)
{
	const struct held_change *held = grafter->items[range.first];
	size_t mark;
	out->name = name_at(grafter, range.first, range.name);
	size_t path_end = range.name + out->name.len;
	while (range.first + 1 < range.end && ends_at(grafter, range.first, path_end) &&
		is_nothing(grafter, range.first)) {
		held = grafter->items[++range.first];
	}
	if (ends_at(grafter, range.first, path_end)) {
		const struct store_entry *entry = version_of(held, grafter->version);
		const git_oid *folder = entry->mode ? NULL : folder_of(held, grafter->version);
		out->mode = folder ? TREE_VIEW_FOLDER : entry->mode;
		out->id = folder ? *folder : entry->id;
		return folder || !entry->mode || check_leaf(grafter, range, path_end, err);
	}
	range.name += out->name.len + 1;
	if (!trail_push(&grafter->trail, out->name, &mark, err)) {
		return false;
	}
	bool grafted = graft_folder(grafter, tree_view_folder(old), range, &out->id, err);
	trail_pop(&grafter->trail, mark);
	out->mode = id_equal(&out->id, &store_empty_tree) ? ENTRY_NONE : TREE_VIEW_FOLDER;
	return grafted;
}

/* `made` has room for all entries of the view and the range. */
static bool graft_names(struct grafter *grafter, const struct tree_view *view, struct range range,
	struct tree_view_entry *made, git_oid *out_tree, struct error *err)
{
	size_t count = view->count;
	size_t kept = 0;
	bool grafted = true;
	for (size_t i = 0; i < view->count; i++) {
		made[i] = view->entries[i];
	}
	while (grafted && range.first < range.end) {
		struct range one = take_name(grafter, range);
		struct span name = name_at(grafter, one.first, one.name);
		struct tree_view_entry *old = view->count == 0
		                                      ? NULL
		                                      : bsearch(&name, view->entries, view->count,
								sizeof(*old), compare_names);
		size_t at = old ? (size_t)(old - view->entries) : count++;
		grafted = graft_name(grafter, old, one, &made[at], err);
		range.first = one.end;
	}
	for (size_t i = 0; grafted && i < count; i++) {
		if (made[i].mode != ENTRY_NONE) {
			made[kept++] = made[i];
		}
	}
	*out_tree = store_empty_tree;
	return grafted && (kept == 0 || tree_view_write(grafter->store, made, kept, out_tree, err));
}

static bool graft_folder(struct grafter *grafter, const git_oid *tree, struct range range,
	git_oid *out_tree, struct error *err)
{
	struct tree_view view;
	bool grafted = tree_view_load(&view, grafter->store, tree, &grafter->trail, err);
	if (grafted) {
		size_t most = view.count + (range.end - range.first);
		struct tree_view_entry *made = mem_alloc(most * sizeof(*made));
		grafted = graft_names(grafter, &view, range, made, out_tree, err);
		free(made);
	}
	tree_view_finish(&view);
	return grafted;
}

static int compare_paths(const void *a, const void *b)
{
	const struct held_change *const *left = a;
	const struct held_change *const *right = b;
	return path_compare((*left)->path, (*right)->path);
}

/* Those in this state; HELD_STATES: all of them. */
static bool graft_some(struct store *store, const struct list *held, enum held_state state,
	enum held_version version, const git_oid *tree, git_oid *out_tree, struct error *err)
{
	struct range all = {0};
	git_oid made;
	LIST_FOR_EACH(one, held, struct held_change, link) {
		all.end += state == HELD_STATES || state == one->state;
	}
	if (all.end == 0) {
		*out_tree = *tree;
		return true;
	}
	struct grafter *grafter = mem_alloc_zero(sizeof(*grafter));
	grafter->store = store;
	grafter->version = version;
	grafter->items = mem_alloc(all.end * sizeof(*grafter->items));
	LIST_FOR_EACH(one, held, struct held_change, link) {
		if (state == HELD_STATES || state == one->state) {
			grafter->items[all.first++] = one;
		}
	}
	all.first = 0;
	qsort(grafter->items, all.end, sizeof(*grafter->items), compare_paths);
	bool grafted = graft_folder(grafter, tree, all, &made, err);
	if (grafted) {
		*out_tree = made;
	}
	free(grafter->items);
	free(grafter);
	return grafted;
}

bool held_graft(struct store *store, const struct list *held, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err)
{
	return graft_some(store, held, HELD_STATES, version, tree, out_tree, err);
}

/* ---- the tree that identifies changes ---- */

/* Folders of that tree. A deletion is in "gone", with the version that would be deleted. */
static const char made_name[] = "made";
static const char gone_name[] = "gone";

static bool is_deletion(const struct held_change *held)
{
	return held->made.mode == ENTRY_NONE;
}

bool held_tree(struct store *store, const struct list *held, enum held_state state,
	git_oid *out_tree, struct error *err)
{
	struct tree_view_entry entries[] = {
		{SPAN_LITERAL(gone_name), TREE_VIEW_FOLDER, store_empty_tree},
		{SPAN_LITERAL(made_name), TREE_VIEW_FOLDER, store_empty_tree},
	};
	return graft_some(store, held, state, HELD_GONE, &store_empty_tree, &entries[0].id, err) &&
	       graft_some(store, held, state, HELD_MADE, &store_empty_tree, &entries[1].id, err) &&
	       tree_view_write(store, entries, ARRAY_LENGTH(entries), out_tree, err);
}

bool held_tree_has(struct store *store, const git_oid *tree, const struct held_change *held)
{
	bool is_gone = is_deletion(held);
	struct graft found;
	struct error missing;
	return graft_find(store, tree, is_gone ? gone_name : made_name, &found, &missing) &&
	       found.mode == TREE_VIEW_FOLDER &&
	       graft_find(store, &found.id, held->path, &found, &missing) &&
	       store_entry_equal(&(struct store_entry){found.mode, found.id},
		       is_gone ? &held->local : &held->made);
}

/* ---- the question ---- */

static size_t depth_of(const char *path)
{
	size_t depth = 0;
	for (; *path; path++) {
		depth += *path == '/';
	}
	return depth;
}

static int compare_depths(const void *a, const void *b)
{
	size_t left = depth_of((*(struct held_change *const *)a)->path);
	size_t right = depth_of((*(struct held_change *const *)b)->path);
	return left == right ? compare_paths(a, b) : (left > right) - (left < right);
}

static void sort_by_depth(struct list *held)
{
	size_t count = 0;
	LIST_FOR_EACH(one, held, struct held_change, link) {
		count++;
	}
	struct held_change **all = mem_alloc((count + 1) * sizeof(*all));
	count = 0;
	LIST_FOR_EACH(one, held, struct held_change, link) {
		all[count++] = one;
		list_remove(&one->link);
	}
	qsort(all, count, sizeof(*all), compare_depths);
	for (size_t i = 0; i < count; i++) {
		list_append(held, &all[i]->link);
	}
	free(all);
}

size_t held_choose(
	struct store *store, struct list *held, const git_oid *refused, size_t refused_count)
{
	size_t asked = 0;
	sort_by_depth(held);
	LIST_FOR_EACH(one, held, struct held_change, link) {
		bool is_refused = false;
		for (size_t i = 0; !is_refused && i < refused_count; i++) {
			is_refused = !id_equal(&refused[i], &store_empty_tree) &&
			             held_tree_has(store, &refused[i], one);
		}
		one->state = is_refused               ? HELD_REFUSED
		             : asked < HELD_ASKED_MAX ? HELD_ASKED
		                                      : HELD_WAITS;
		asked += one->state == HELD_ASKED;
	}
	return asked;
}

/* ---- the texts ---- */

static bool is_text(struct span text)
{
	return (text.len == 0 || !memchr(text.data, '\0', text.len)) &&
	       utf8_valid_length(text.data ? text.data : "", text.len) == text.len;
}

/*
 * *out stays NULL if there is no text, or none to show; *left is how many bytes may still be read.
 */
static bool read_text(struct store *store, const struct store_entry *entry, size_t *left,
	char **out, struct error *err)
{
	uint64_t size;
	struct buf text;
	if (entry->mode == ENTRY_NONE || entry->mode == ENTRY_BIG) {
		return true;
	}
	if (!store_size(store, entry, &size, err)) {
		return false;
	}
	if (size > HELD_TEXT_MAX || size > *left) {
		return true;
	}
	buf_init(&text, HELD_TEXT_MAX + 16);
	bool ok = (entry->mode != ENTRY_LINK || buf_append(&text, SPAN_LITERAL("link to "), err)) &&
	          store_read(store, &entry->id, HELD_TEXT_MAX + 16, &text, err);
	if (ok && is_text(buf_span(&text))) {
		*out = mem_strndup(buf_span(&text));
		*left -= size;
	}
	buf_finish(&text);
	return ok;
}

bool held_read(struct store *store, const struct list *held, struct error *err)
{
	size_t left = HELD_TEXTS_MAX;
	LIST_FOR_EACH(one, held, struct held_change, link) {
		if (one->state != HELD_ASKED) {
			continue;
		}
		if (!read_text(store, &one->local, &left, &one->old_text, err) ||
			!read_text(store, &one->made, &left, &one->new_text, err)) {
			return false;
		}
	}
	return true;
}

/* ---- what the user always allows ---- */

static const char always_name[] = "guards/always";

bool held_find_always(struct store *store, git_oid *out_tree, bool *out_found, struct error *err)
{
	struct error missing;
	*out_found = store_find(store, always_name, out_tree, &missing);
	return *out_found || missing.code == ERROR_NOT_FOUND ||
	       error_set(err, missing.code,
		       "%s; if this does not go away, remove refs/acp-broker/%s in that store: "
		       "then "
		       "you are asked again about guarded files",
		       missing.text, always_name);
}

static bool has_path(struct store *store, const git_oid *tree, const char *path)
{
	struct graft found;
	struct error missing;
	return graft_find(store, tree, path, &found, &missing) && found.mode == ENTRY_FILE;
}

bool held_keep_always(struct store *store, char *const *paths, git_oid *out_tree, bool *out_found,
	struct error *err)
{
	git_oid commit;
	git_oid tree = store_empty_tree;
	struct graft mark = {.mode = ENTRY_FILE};
	bool is_new = false;
	bool ok = held_find_always(store, &tree, out_found, err) &&
	          (!paths || store_put_bytes(store, (struct span){"", 0}, &mark.id, err));
	for (; ok && paths && *paths; paths++) {
		if (!has_path(store, &tree, *paths)) {
			is_new = true;
			ok = graft_set(store, &tree, *paths, &mark, &tree, err);
		}
	}
	if (!ok ||
		(is_new && !store_keep(store, always_name, &tree, NULL, "always", &commit, err))) {
		return false;
	}
	*out_tree = tree;
	*out_found = *out_found || is_new;
	return true;
}

/* ---- parking ---- */

void held_finish(struct list *held)
{
	LIST_FOR_EACH(one, held, struct held_change, link) {
		list_remove(&one->link);
		free(one->path);
		free(one->old_text);
		free(one->new_text);
		free(one);
	}
}

bool held_park(struct store *store, const struct list *held, const char *stamp, struct error *err)
{
	struct merge merge;
	merge_init(&merge);
	LIST_FOR_EACH(one, held, struct held_change, link) {
		if (one->runtime.mode == ENTRY_NONE) {
			continue; // no version to keep
		}
		struct conflict *conflict = mem_alloc_zero(sizeof(*conflict));
		conflict->path = mem_strdup(one->path);
		conflict->base = one->base;
		conflict->local = one->local;
		conflict->runtime = one->runtime;
		conflict->is_held = true;
		list_append(&merge.conflicts, &conflict->link);
		merge.conflict_count++;
	}
	bool parked = conflicts_park(store, &merge, stamp, err);
	merge_finish(&merge);
	return parked;
}
