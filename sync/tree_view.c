/* SPDX-License-Identifier: MIT */
#include "sync/tree_view.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"
#include "sync/apply.h"
#include "sync/id.h"
#include "sync/parked.h"
#include "sync/snapshot.h"

enum { MODE_DIGITS_MAX = 6, ENTRY_MORE = 16 };

/* ---- the trail ---- */

bool trail_push(struct trail *trail, struct span name, size_t *out_mark, struct error *err)
{
	size_t slash = trail->len > 0;
	if (trail->len + slash + name.len >= sizeof(trail->path) ||
		trail->depth == TREE_VIEW_DEPTH_MAX) {
		return tree_view_refuse(trail, name, "the path is too long or too deep", err);
	}
	*out_mark = trail->len;
	if (slash) {
		trail->path[trail->len++] = '/';
	}
	memcpy(trail->path + trail->len, name.data, name.len);
	trail->len += name.len;
	trail->path[trail->len] = '\0';
	trail->depth++;
	return true;
}

void trail_pop(struct trail *trail, size_t mark)
{
	trail->len = mark;
	trail->path[mark] = '\0';
	trail->depth--;
}

/* ---- refusing ---- */

static void copy_printable(char *to, size_t size, struct span text)
{
	size_t len = text.len < size ? text.len : size - 1;
	for (size_t i = 0; i < len; i++) {
		char byte = text.data[i];
		to[i] = '?';
		if (byte >= ' ' && byte <= '~') {
			to[i] = byte;
		}
	}
	to[len] = '\0';
	if (len < text.len) {
		memcpy(to + size - sizeof(TEXT_CUT), TEXT_CUT, sizeof(TEXT_CUT));
	}
}

bool tree_view_refuse(
	const struct trail *trail, struct span name, const char *what, struct error *err)
{
	char folder[256];
	char last[256];
	copy_printable(folder, sizeof(folder), (struct span){trail->path, trail->len});
	copy_printable(last, sizeof(last), name);
	return error_set(err, ERROR_PROTOCOL, "the tree of a side is refused: \"%s%s%s\": %s",
		folder, trail->len ? "/" : "", last, what);
}

/* ---- reading ---- */

static bool is_known_mode(unsigned mode)
{
	return mode == TREE_VIEW_FOLDER || mode == ENTRY_FILE || mode == ENTRY_EXECUTABLE ||
	       mode == ENTRY_LINK || mode == ENTRY_BIG;
}

static const char *name_fault(struct span name)
{
	if (name.len > NAME_MAX) {
		return "the name is too long";
	}
	if (memchr(name.data, '/', name.len) || !snapshot_path_is_safe(name)) {
		return "no snapshot may have such a name";
	}
	if (parked_is_name(name) || apply_is_temporary(name)) {
		return "the name is one that never syncs";
	}
	return NULL;
}

/* Takes "MODE NAME\0ID" from the front of *rest. */
static bool entry_parse(struct span *rest, struct tree_view_entry *entry)
{
	size_t at = 0;
	unsigned mode = 0;
	while (at < rest->len && at < MODE_DIGITS_MAX && rest->data[at] >= '0' &&
		rest->data[at] <= '7') {
		mode = mode * 8 + (unsigned)(rest->data[at] - '0');
		at++;
	}
	if (at == 0 || rest->data[0] == '0' || at == rest->len || rest->data[at] != ' ') {
		return false;
	}
	const char *name = rest->data + at + 1;
	const char *end = memchr(name, '\0', rest->len - at - 1);
	if (!end || (size_t)(rest->data + rest->len - end) < 1 + GIT_OID_RAWSZ) {
		return false;
	}
	*entry = (struct tree_view_entry){.name = {name, (size_t)(end - name)}, .mode = mode};
	memcpy(entry->id.id, end + 1, GIT_OID_RAWSZ);
	const char *next = end + 1 + GIT_OID_RAWSZ;
	*rest = (struct span){next, (size_t)(rest->data + rest->len - next)};
	return true;
}

/* Compares names like git: a folder's name as if it ended in a slash. */
static int compare_as_git(const void *a, const void *b)
{
	const struct tree_view_entry *left = a;
	const struct tree_view_entry *right = b;
	size_t len = left->name.len < right->name.len ? left->name.len : right->name.len;
	int order = memcmp(left->name.data, right->name.data, len);
	if (order) {
		return order;
	}
	unsigned char ends[2] = {left->mode == TREE_VIEW_FOLDER ? '/' : 0,
		right->mode == TREE_VIEW_FOLDER ? '/' : 0};
	int left_next = left->name.len > len ? (unsigned char)left->name.data[len] : ends[0];
	int right_next = right->name.len > len ? (unsigned char)right->name.data[len] : ends[1];
	return left_next - right_next;
}

static int compare_by_name(const void *a, const void *b)
{
	return span_compare(((const struct tree_view_entry *)a)->name,
		((const struct tree_view_entry *)b)->name);
}

static bool tree_view_parse(struct tree_view *view, const struct trail *trail, struct error *err)
{
	struct span rest = {
		view->git->odb_object_data(view->object), view->git->odb_object_size(view->object)};
	size_t capacity = 0;
	while (rest.len > 0) {
		if (view->count == capacity) {
			capacity = capacity ? capacity * 2 : ENTRY_MORE;
			view->entries =
				mem_realloc(view->entries, capacity * sizeof(*view->entries));
		}
		struct tree_view_entry *entry = &view->entries[view->count];
		if (!entry_parse(&rest, entry) || !is_known_mode(entry->mode)) {
			return tree_view_refuse(trail, SPAN_LITERAL(""), "it is not a tree", err);
		}
		const char *fault = name_fault(entry->name);
		if (fault) {
			return tree_view_refuse(trail, entry->name, fault, err);
		}
		if (view->count > 0 && compare_as_git(entry - 1, entry) >= 0) {
			return tree_view_refuse(
				trail, entry->name, "the names are not in order", err);
		}
		view->count++;
	}
	return true;
}

/* In git's order other names may come between a file and a folder of one name. */
static bool sort_by_name(struct tree_view *view, const struct trail *trail, struct error *err)
{
	if (view->count == 0) {
		return true;
	}
	qsort(view->entries, view->count, sizeof(*view->entries), compare_by_name);
	for (size_t i = 1; i < view->count; i++) {
		struct span name = view->entries[i].name;
		if (span_equals(view->entries[i - 1].name, name)) {
			return tree_view_refuse(trail, name, "the name occurs twice", err);
		}
	}
	return true;
}

bool tree_view_load(struct tree_view *view, struct store *store, const git_oid *id,
	const struct trail *trail, struct error *err)
{
	*view = (struct tree_view){.git = store->git};
	if (!id) {
		return true;
	}
	size_t size;
	git_object_t type;
	if (store->git->odb_read_header(&size, &type, store->odb, id) < 0) {
		return error_set_git(store->git, err, "reading the tree of \"%s\"", trail->path);
	}
	if (type != GIT_OBJECT_TREE) {
		return tree_view_refuse(trail, SPAN_LITERAL(""), "it is not a tree", err);
	}
	if (size > TREE_VIEW_BYTES_MAX) {
		return error_set(err, ERROR_LIMIT,
			"the folder \"%s\" lists %zu bytes of names; the limit is %d", trail->path,
			size, TREE_VIEW_BYTES_MAX);
	}
	if (store->git->odb_read(&view->object, store->odb, id) < 0) {
		return error_set_git(store->git, err, "reading the tree of \"%s\"", trail->path);
	}
	return tree_view_parse(view, trail, err) && sort_by_name(view, trail, err);
}

void tree_view_finish(struct tree_view *view)
{
	if (view->object) {
		view->git->odb_object_free(view->object);
	}
	free(view->entries);
	*view = (struct tree_view){0};
}

/* ---- side by side ---- */

bool tree_view_next(struct tree_view_walk *walk, struct tree_view_row *out_row)
{
	assert(walk->count <= TREE_VIEW_SIDES_MAX);
	const struct tree_view_entry *first = NULL;
	for (size_t i = 0; i < walk->count; i++) {
		const struct tree_view *view = &walk->views[i];
		if (walk->at[i] == view->count) {
			continue;
		}
		const struct tree_view_entry *entry = &view->entries[walk->at[i]];
		if (!first || span_compare(entry->name, first->name) < 0) {
			first = entry;
		}
	}
	if (!first) {
		return false;
	}
	*out_row = (struct tree_view_row){.name = first->name};
	for (size_t i = 0; i < walk->count; i++) {
		const struct tree_view *view = &walk->views[i];
		if (walk->at[i] < view->count &&
			span_equals(view->entries[walk->at[i]].name, first->name)) {
			out_row->sides[i] = &view->entries[walk->at[i]++];
		}
	}
	return true;
}

struct store_entry tree_view_leaf(const struct tree_view_entry *entry)
{
	if (!entry || entry->mode == TREE_VIEW_FOLDER) {
		return (struct store_entry){.mode = ENTRY_NONE};
	}
	return (struct store_entry){.mode = (enum entry_mode)entry->mode, .id = entry->id};
}

const git_oid *tree_view_folder(const struct tree_view_entry *entry)
{
	return entry && entry->mode == TREE_VIEW_FOLDER ? &entry->id : NULL;
}

bool tree_view_is_same(const struct tree_view_entry *a, const struct tree_view_entry *b)
{
	return a == b || (a && b && a->mode == b->mode && id_equal(&a->id, &b->id));
}

/* ---- writing ---- */

static bool append_entry(struct buf *buf, const struct tree_view_entry *entry, struct error *err)
{
	struct span id = {(const char *)entry->id.id, GIT_OID_RAWSZ};
	return buf_append_format(buf, err, "%o ", entry->mode) &&
	       buf_append(buf, entry->name, err) && buf_append(buf, (struct span){"", 1}, err) &&
	       buf_append(buf, id, err);
}

bool tree_view_write(struct store *store, struct tree_view_entry *entries, size_t count,
	git_oid *out_id, struct error *err)
{
	struct buf buf;
	buf_init(&buf, TREE_VIEW_BYTES_MAX);
	bool written = true;
	if (count > 0) {
		qsort(entries, count, sizeof(*entries), compare_as_git);
	}
	for (size_t i = 0; i < count && written; i++) {
		written = append_entry(&buf, &entries[i], err);
	}
	const char *data = buf.len ? buf_span(&buf).data : "";
	git_forget_error(store->git);
	if (written &&
		store->git->odb_write(out_id, store->odb, data, buf.len, GIT_OBJECT_TREE) < 0) {
		written = error_set_git(store->git, err, "writing a tree to %s", store->path);
	}
	buf_finish(&buf);
	return written;
}
