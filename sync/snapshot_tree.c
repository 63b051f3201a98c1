/* SPDX-License-Identifier: MIT */
#include "sync/id.h"
#include "sync/snapshot_impl.h"
#include "sync/store_impl.h"

enum { TREE_MAX = 64 << 20 };

/* Trees have no empty folders and no removed files. */
static bool is_in_tree(const struct listed *listed)
{
	static const git_oid none;
	return listed->mode != ENTRY_NONE &&
	       (listed->mode != LISTED_FOLDER || !id_equal(&listed->id, &none));
}

/* Whether all children match the cache: then it is the cached tree. */
static const struct listed *cached_tree(
	const struct listing *listing, const struct listing *cache, const struct listed *folder)
{
	if (folder->cached == LISTED_NONE) {
		return NULL;
	}
	const struct listed *cached = &cache->items[folder->cached];
	if (cached->children != folder->children || (cached->flags & LISTED_FIXED)) {
		return NULL;
	}
	for (uint32_t i = 0; i < folder->children; i++) {
		const struct listed *now = &listing->items[folder->first + i];
		if (now->cached != cached->first + i) {
			return NULL;
		}
		const struct listed *before = &cache->items[now->cached];
		if (now->mode != before->mode || !id_equal(&now->id, &before->id)) {
			return NULL;
		}
	}
	return cached;
}

static bool format_tree(const struct listing *listing, const struct listed *folder,
	struct buf *tree, struct error *err)
{
	for (uint32_t i = folder->first; i < folder->first + folder->children; i++) {
		const struct listed *item = &listing->items[i];
		struct span id = {(const char *)item->id.id, GIT_OID_RAWSZ};
		struct span name = {listing_name(listing, i), item->name_length + 1U};
		if (is_in_tree(item) &&
			(!buf_append_format(tree, err, "%o ", (unsigned)item->mode) ||
				!buf_append(tree, name, err) || !buf_append(tree, id, err))) {
			return false;
		}
	}
	return true;
}

static bool write_tree(struct store *store, const struct listing *listing, struct listed *folder,
	struct buf *text, struct error *err)
{
	static const git_oid none;
	buf_clear(text);
	if (!format_tree(listing, folder, text, err)) {
		return false;
	}
	if (text->len == 0) {
		folder->id = none;
		return true;
	}
	return object_put(store, GIT_OBJECT_TREE, buf_span(text), &folder->id, err);
}

/* Goes from the last to the first, because a folder's content comes after it. */
bool snapshot_write_trees(struct store *store, struct listing *listing, const struct listing *cache,
	struct error *err)
{
	struct buf text;
	bool written = true;
	buf_init(&text, TREE_MAX);
	for (uint32_t i = listing->count; written && i-- > 0;) {
		struct listed *folder = &listing->items[i];
		if (folder->mode != LISTED_FOLDER || (folder->flags & LISTED_FIXED)) {
			continue;
		}
		const struct listed *same = cached_tree(listing, cache, folder);
		if (same) {
			folder->id = same->id;
		} else {
			written = write_tree(store, listing, folder, &text, err);
		}
	}
	buf_finish(&text);
	return written;
}
