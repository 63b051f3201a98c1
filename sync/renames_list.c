/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sync/renames.h"

/*
 * The list as the bytes of a blob. For each rename: one byte for who renamed it; the mode
 * (big-endian) and the id of both entries; and both paths, each terminated by NUL.
 */

enum {
	MODE_BYTES = 4,
	ENTRY_BYTES = MODE_BYTES + sizeof(((git_oid *)NULL)->id),
	HEAD_BYTES = 1 + 2 * ENTRY_BYTES,
	LIST_BYTES_MAX = RENAMES_MAX * (HEAD_BYTES + 2 * PATH_MAX),
};

static void put_entry(char *out, const struct store_entry *entry)
{
	for (int i = 0; i < MODE_BYTES; i++) {
		out[i] = (char)((unsigned)entry->mode >> (8 * (MODE_BYTES - 1 - i)));
	}
	memcpy(out + MODE_BYTES, entry->id.id, sizeof(entry->id.id));
}

static struct store_entry take_entry(const char *bytes)
{
	struct store_entry entry;
	unsigned mode = 0;
	for (int i = 0; i < MODE_BYTES; i++) {
		mode = mode << 8 | (unsigned char)bytes[i];
	}
	entry.mode = (enum entry_mode)mode;
	memcpy(entry.id.id, bytes + MODE_BYTES, sizeof(entry.id.id));
	return entry;
}

bool renames_put(
	const struct renames *renames, struct store *store, git_oid *out_id, struct error *err)
{
	struct buf bytes;
	bool put = true;
	buf_init(&bytes, LIST_BYTES_MAX);
	for (size_t i = 0; put && i < renames->count; i++) {
		const struct rename *one = &renames->items[i];
		char head[HEAD_BYTES] = {(char)one->by};
		put_entry(head + 1, &one->base);
		put_entry(head + 1 + ENTRY_BYTES, &one->other);
		put = buf_append(&bytes, (struct span){head, sizeof(head)}, err) &&
		      buf_append(&bytes, (struct span){one->from, strlen(one->from) + 1}, err) &&
		      buf_append(&bytes, (struct span){one->to, strlen(one->to) + 1}, err);
	}
	put = put && store_put_bytes(store, buf_span(&bytes), out_id, err);
	buf_finish(&bytes);
	return put;
}

/* NULL if there is no path that is not empty and has an end. */
static char *take_path(struct span *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\0', rest->len) : NULL;
	if (!end || end == rest->data) {
		return NULL;
	}
	char *path = mem_strndup((struct span){rest->data, (size_t)(end - rest->data)});
	rest->len -= (size_t)(end - rest->data) + 1;
	rest->data = end + 1;
	return path;
}

static bool is_entry(const struct store_entry *entry)
{
	return entry->mode == ENTRY_NONE || store_entry_is_file(entry);
}

static bool take_one(struct renames *renames, struct span *rest)
{
	struct rename one;
	if (rest->len < HEAD_BYTES || renames->count == RENAMES_MAX) {
		return false;
	}
	one.by = (enum rename_by)rest->data[0];
	one.base = take_entry(rest->data + 1);
	one.other = take_entry(rest->data + 1 + ENTRY_BYTES);
	*rest = (struct span){rest->data + HEAD_BYTES, rest->len - HEAD_BYTES};
	one.from = take_path(rest);
	one.to = one.from ? take_path(rest) : NULL;
	bool is_sound =
		one.to && one.by <= RENAME_BY_BOTH && is_entry(&one.base) && is_entry(&one.other);
	if (!is_sound) {
		free(one.from);
		free(one.to);
		return false;
	}
	renames->items =
		mem_realloc(renames->items, (renames->count + 1) * sizeof(*renames->items));
	renames->items[renames->count++] = one;
	return true;
}

bool renames_read(
	struct renames *renames, struct store *store, const git_oid *id, struct error *err)
{
	struct buf bytes;
	*renames = (struct renames){0};
	buf_init(&bytes, LIST_BYTES_MAX);
	bool read = store_read(store, id, LIST_BYTES_MAX, &bytes, err);
	struct span rest = buf_span(&bytes);
	while (read && rest.len > 0) {
		read = take_one(renames, &rest) ||
		       error_set(err, ERROR_SYSTEM,
			       "store %s: a merge's list of renames is damaged", store->path);
	}
	buf_finish(&bytes);
	return read;
}
