/* SPDX-License-Identifier: MIT */
#include "sync/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_utf8.h"
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

/* ---- the texts ---- */

static bool is_text(struct span text)
{
	return (text.len == 0 || !memchr(text.data, '\0', text.len)) &&
	       utf8_valid_length(text.data ? text.data : "", text.len) == text.len;
}

/* *out stays NULL where there is nothing, or nothing to show; *left is what may still be read. */
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
	size_t count = 0;
	LIST_FOR_EACH(one, held, struct held_change, link) {
		if (count++ == HELD_SHOWN_MAX) {
			break;
		}
		if (!read_text(store, &one->local, &left, &one->old_text, err) ||
			!read_text(store, &one->made, &left, &one->new_text, err)) {
			return false;
		}
	}
	return true;
}

/* ---- what is always allowed ---- */

static const char always_name[] = "guards/always";

bool held_find_always(struct store *store, git_oid *out_tree, bool *out_found, struct error *err)
{
	struct error missing;
	*out_found = store_find(store, always_name, out_tree, &missing);
	return *out_found || missing.code == ERROR_NOT_FOUND ||
	       error_set(err, missing.code,
		       "%s; where it stays so, remove refs/acp-broker/%s in that store: you are "
		       "asked "
		       "anew about guarded files then",
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
