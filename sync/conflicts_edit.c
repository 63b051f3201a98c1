/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "sync/conflicts.h"
#include "sync/merge_text.h"
#include "sync/parked.h"

/* ---- what to merge ---- */

/* Puts the workspace's current content into the store. */
static bool read_now(struct store *store, const char *root, const char *path,
	struct store_entry *out_entry, struct error *err)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ATTR_CLEANUP(fd_cleanup)
	int fd = top < 0 ? -1
	                 : beneath_open(top, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0) {
		return error_set_errno(err, errno, "reading %s in %s", path, root);
	}
	return S_ISREG(status.st_mode)
	               ? store_put_file(store, fd, &status, out_entry, err)
	               : error_set(err, ERROR_UNAVAILABLE, "%s in %s is not a file", path, root);
}

static bool refuse(const struct parked *parked, const char *why, struct error *err)
{
	return error_set(err, ERROR_UNAVAILABLE,
		"conflict %s: %s: %s: acp-broker conflicts take can keep one version", parked->id,
		parked->conflict.path, why);
}

static bool is_text(const struct store_entry *entry)
{
	return entry->mode == ENTRY_FILE || entry->mode == ENTRY_EXECUTABLE;
}

/* A missing version counts as empty. */
static bool id_of(
	struct store *store, const struct store_entry *entry, git_oid *out_id, struct error *err)
{
	*out_id = entry->id;
	return is_text(entry) || store_put_bytes(store, (struct span){"", 0}, out_id, err);
}

/*
 * An earlier edit belongs to the version that the workspace had then. If the workspace has another
 * one now, the edit would undo what the user did since: it is renamed and stays beside the new one.
 */
static void drop_outdated(const struct parked_place *place, const struct store_entry *now)
{
	struct error ignored;
	struct store_entry before;
	if (!parked_read(place, PARKED_LOCAL, &before, &ignored) ||
		!store_entry_same_content(&before, now)) {
		parked_set_aside(place, PARKED_MERGED);
	}
}

static bool write_merged(struct store *store, const struct parked *parked,
	const struct parked_place *place, const struct store_entry *now, struct error *err)
{
	struct merge_texts texts = {.local = now->id, .runtime = parked->conflict.runtime.id};
	struct store_entry merged = {.mode = ENTRY_FILE};
	bool is_merged;
	drop_outdated(place, now);
	return id_of(store, &parked->conflict.base, &texts.base, err) &&
	       merge_text_marked(store, &texts, &merged.id, &is_merged, err) &&
	       (is_merged || refuse(parked, "it is not text, or is too long", err)) &&
	       parked_write_once(place, PARKED_MERGED, &merged, err);
}

bool conflicts_edit_begin(struct store *store, const char *root, const struct parked *parked,
	struct conflict_edit *out_edit, struct error *err)
{
	const struct conflict *conflict = &parked->conflict;
	struct parked_place place = {store, parked->id, conflict->path};
	struct store_entry base = {.mode = ENTRY_FILE};
	*out_edit = (struct conflict_edit){.has_base = is_text(&conflict->base)};
	if (!is_text(&conflict->runtime)) {
		return refuse(parked, "the sandbox's version is not a text file", err);
	}
	if (!read_now(store, root, conflict->path, &out_edit->was, err) ||
		!id_of(store, &conflict->base, &base.id, err)) {
		return false;
	}
	if (!is_text(&out_edit->was)) {
		return refuse(parked, "it is too big", err);
	}
	if (!write_merged(store, parked, &place, &out_edit->was, err) ||
		!parked_write(&place, PARKED_BASE, &base, err) ||
		!parked_write(&place, PARKED_LOCAL, &out_edit->was, err) ||
		!parked_write_once(&place, PARKED_RUNTIME, &conflict->runtime, err)) {
		return false;
	}
	for (int i = 0; i < PARKED_VERSIONS; i++) {
		out_edit->files[i] = parked_file(&place, (enum parked_version)i);
	}
	return true;
}

/* ---- the result ---- */

/* Whether a line begins like the conflict markers of merge_text_marked. */
static bool has_markers(struct span text)
{
	static const char *const marks[] = {MERGE_TEXT_BEGIN, MERGE_TEXT_END};
	const char *end = text.data + text.len;
	for (const char *line = text.data; line && line < end;) {
		for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
			size_t len = strlen(marks[i]);
			if ((size_t)(end - line) >= len && memcmp(line, marks[i], len) == 0) {
				return true;
			}
		}
		line = memchr(line, '\n', (size_t)(end - line));
		line = line ? line + 1 : NULL;
	}
	return false;
}

static bool check(struct store *store, const struct parked *parked,
	const struct conflict_edit *edit, const struct store_entry *merged, struct error *err)
{
	struct buf text;
	if (!is_text(merged)) {
		return error_set(err, ERROR_LIMIT, "conflict %s: %s is too big", parked->id,
			edit->files[PARKED_MERGED]);
	}
	buf_init(&text, store->big_file_bytes + 1);
	bool is_checked = store_read(store, &merged->id, store->big_file_bytes, &text, err);
	if (is_checked && has_markers(buf_span(&text))) {
		is_checked = error_set(err, ERROR_UNAVAILABLE,
			"conflict %s: %s still has conflict markers; it is kept: continue with "
			"acp-broker conflicts edit %s",
			parked->id, edit->files[PARKED_MERGED], parked->id);
	}
	buf_finish(&text);
	return is_checked;
}

/* A broker may have ended the conflict while the user edited. */
static bool check_open(struct store *store, const struct parked *parked,
	const struct conflict_edit *edit, struct error *err)
{
	struct list list;
	bool listed = conflicts_list(store, &list, err);
	bool is_open = listed && conflicts_find(&list, parked->id);
	conflicts_finish(&list);
	return is_open || (listed && error_set(err, ERROR_NOT_FOUND,
					     "conflict %s: it has ended meanwhile; your edit is "
					     "kept in %s, and nothing was changed",
					     parked->id, edit->files[PARKED_MERGED]));
}

bool conflicts_edit_end(struct store *store, const char *root, const struct parked *parked,
	const struct conflict_edit *edit, struct error *err)
{
	struct parked_place place = {store, parked->id, parked->conflict.path};
	struct store_entry merged;
	if (!check_open(store, parked, edit, err) ||
		!parked_read(&place, PARKED_MERGED, &merged, err) ||
		!check(store, parked, edit, &merged, err)) {
		return false;
	}
	merged.mode = edit->was.mode;
	if (!conflicts_resolve(store, root, parked, &edit->was, &merged, err)) {
		return error_prefix(err, "%s is kept", edit->files[PARKED_MERGED]);
	}
	return true;
}

void conflicts_edit_finish(struct conflict_edit *edit)
{
	for (size_t i = 0; i < PARKED_VERSIONS; i++) {
		free(edit->files[i]);
		edit->files[i] = NULL;
	}
}
