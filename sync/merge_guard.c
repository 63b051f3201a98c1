/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "sync/graft.h"
#include "sync/held.h"
#include "sync/merge_impl.h"

/* Files that may only come from the runtime after the user was asked. */

enum {
	GUARDED_CONTENT_MAX = 1 << 20
}; // bytes that are checked; in a longer file any change counts

/* An absent file is empty. False: it is not text, or is too large to check. */
static bool read_content(const struct merger *merger, const struct store_entry *entry,
	struct buf *out, bool *out_is_text, struct error *err)
{
	uint64_t size;
	*out_is_text = entry->mode == ENTRY_NONE;
	if (entry->mode != ENTRY_FILE && entry->mode != ENTRY_EXECUTABLE) {
		return true;
	}
	if (!store_size(merger->store, entry, &size, err)) {
		return false;
	}
	*out_is_text = size <= GUARDED_CONTENT_MAX;
	return !*out_is_text ||
	       store_read(merger->store, &entry->id, GUARDED_CONTENT_MAX, out, err);
}

static bool content_counts(const struct merger *merger, const char *name,
	const struct store_entry *local, const struct store_entry *made, bool *out_counts,
	struct error *err)
{
	struct buf old, content;
	bool old_is_text = false, content_is_text = false;
	buf_init(&old, GUARDED_CONTENT_MAX);
	buf_init(&content, GUARDED_CONTENT_MAX);
	bool ok = read_content(merger, local, &old, &old_is_text, err) &&
	          read_content(merger, made, &content, &content_is_text, err);
	*out_counts = !old_is_text || !content_is_text ||
	              guard_content_counts(name, buf_span(&old), buf_span(&content));
	buf_finish(&old);
	buf_finish(&content);
	return ok;
}

/* An unreadable answer counts as none: the user is asked again. */
static bool is_allowed(const struct merger *merger, const struct store_entry *local,
	const struct store_entry *made)
{
	const struct merge_options *options = &merger->options;
	const char *path = merger->trail.path;
	struct graft found;
	struct error err;
	if (options->allowed_always &&
		graft_find(merger->store, options->allowed_always, path, &found, &err) &&
		found.mode != TREE_VIEW_FOLDER) {
		return true;
	}
	const struct held_change change = {.path = (char *)path, .local = *local, .made = *made};
	return options->allowed_once &&
	       held_tree_has(merger->store, options->allowed_once, &change);
}

bool merge_has_guarded(const struct merger *merger, const struct store_entry *made)
{
	const struct guard_paths *guard = merger->options.guard;
	return guard && made->mode &&
	       guard_paths_have(
		       guard, merger->options.root, merger->trail.path, made->mode == ENTRY_LINK);
}

/* The same for the names that local links give the file. */
static bool linked_content_counts(struct merger *merger, const struct store_entry *local,
	const struct store_entry *made, bool *out_counts, struct error *err)
{
	const struct merge_options *options = &merger->options;
	if (!merger->links) {
		merger->links = guard_links_find(
			options->guard, merger->store, merger->local, options->root, err);
	}
	bool ok = merger->links != NULL;
	bool is_link = (made->mode ? made : local)->mode == ENTRY_LINK;
	size_t at = 0;
	char *name;
	while (ok && !*out_counts &&
		(name = guard_links_next(merger->links, merger->trail.path, is_link, &at))) {
		ok = content_counts(merger, name, local, made, out_counts, err);
		free(name);
	}
	return ok;
}

bool merge_guards(struct merger *merger, const struct store_entry *local,
	const struct store_entry *made, bool *out_guards, struct error *err)
{
	const struct guard_paths *guard = merger->options.guard;
	*out_guards = false;
	if (!guard || store_entry_equal(made, local) || (merger->is_replaced && !made->mode)) {
		return true;
	}
	const char *path = merger->trail.path;
	bool counts = false;
	if (merge_has_guarded(merger, made->mode ? made : local) &&
		!content_counts(merger, path, local, made, &counts, err)) {
		return false;
	}
	if (!counts && !linked_content_counts(merger, local, made, &counts, err)) {
		return false;
	}
	*out_guards = counts && !is_allowed(merger, local, made);
	return true;
}

bool merge_hold(
	struct merger *merger, const struct held_change *change, bool is_moved, struct error *err)
{
	struct merge *merge = merger->merge;
	if (merge->held_count + merge->moved_count == MERGE_HELD_MAX) {
		merge->is_over = true;
		return error_set(err, ERROR_LIMIT,
			"merging: more than %d changes of guarded files (guard-paths)",
			MERGE_HELD_MAX);
	}
	struct held_change *held = mem_alloc(sizeof(*held));
	*held = *change;
	held->path = mem_strdup(merger->trail.path);
	list_append(is_moved ? &merge->moved : &merge->held, &held->link);
	++*(is_moved ? &merge->moved_count : &merge->held_count);
	return true;
}
