/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/conflicts_impl.h"
#include "sync/parked.h"

enum { REF_NAME_MAX = 2 * BATCH_NAME_MAX };

static const char refs_folder[] = "refs/acp-broker/conflicts";

/* ---- writing ---- */

static void add_version(struct tree_view_entry *entries, size_t *count, const char *name,
	const struct store_entry *version)
{
	if (version->mode) {
		entries[(*count)++] =
			(struct tree_view_entry){span_of(name), version->mode, version->id};
	}
}

static bool write_one(
	struct store *store, const struct conflict *conflict, git_oid *out_tree, struct error *err)
{
	struct store_entry path = {.mode = ENTRY_FILE};
	struct store_entry mark = {.mode = conflict->is_held ? ENTRY_FILE : ENTRY_NONE};
	struct tree_view_entry entries[5];
	size_t count = 0;
	if (!store_put_bytes(store, span_of(conflict->path), &path.id, err) ||
		!store_put_bytes(store, (struct span){"", 0}, &mark.id, err)) {
		return false;
	}
	add_version(entries, &count, "base", &conflict->base);
	add_version(entries, &count, "held", &mark);
	add_version(entries, &count, "local", &conflict->local);
	add_version(entries, &count, "path", &path);
	add_version(entries, &count, "runtime", &conflict->runtime);
	return tree_view_write(store, entries, count, out_tree, err);
}

void batch_id(char id[BATCH_ID_MAX], const char *name, size_t number)
{
	text_whole(id, BATCH_ID_MAX, "%s/%06zu", name, number);
}

bool batch_write(struct store *store, const struct merge *merge, struct parked *const *known,
	git_oid *out_tree, struct error *err)
{
	size_t most = merge->conflict_count + 1;
	struct tree_view_entry *entries = mem_alloc(most * sizeof(*entries));
	char(*names)[BATCH_INDEX_MAX] = mem_alloc(most * sizeof(*names));
	size_t count = 0;
	size_t at = 0;
	bool written = true;
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		if (known[at++] || !written || !conflict->runtime.mode) {
			continue;
		}
		snprintf(names[count], sizeof(names[count]), "%06zu", count + 1);
		entries[count] = (struct tree_view_entry){
			.name = span_of(names[count]), .mode = TREE_VIEW_FOLDER};
		written = write_one(store, conflict, &entries[count].id, err);
		count++;
	}
	written = written && tree_view_write(store, entries, count, out_tree, err);
	free(names);
	free(entries);
	return written;
}

static bool ref_name(char ref[REF_NAME_MAX], const char *name, struct error *err)
{
	int len = snprintf(ref, REF_NAME_MAX, "conflicts/%s", name);
	return (len > 0 && len < REF_NAME_MAX) ||
	       error_set(err, ERROR_NOT_FOUND, "there is no conflict %s", name);
}

bool batch_keep(struct store *store, const char *name, const git_oid *tree, struct error *err)
{
	char ref[REF_NAME_MAX];
	git_oid commit;
	return ref_name(ref, name, err) &&
	       store_keep(store, ref, tree, NULL, "parked conflicts", &commit, err);
}

/* ---- reading ---- */

static void collect_names(DIR *folder, char ***out_names, size_t *out_count)
{
	struct dirent *entry;
	while ((entry = readdir(folder)) != NULL) {
		if (*entry->d_name == '.') {
			continue;
		}
		*out_names = mem_realloc(*out_names, (*out_count + 1) * sizeof(char *));
		(*out_names)[(*out_count)++] = mem_strdup(entry->d_name);
	}
	if (*out_count > 0) {
		qsort(*out_names, *out_count, sizeof(char *), words_compare);
	}
}

bool batch_each(struct store *store, bool (*visit)(void *data, const char *name, struct error *err),
	void *data, struct error *err)
{
	int fd = openat(store->folder_fd, refs_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int errnum = errno;
	if (fd < 0) {
		return errnum == ENOENT ||
		       error_set_errno(err, errnum, "store %s: %s", store->path, refs_folder);
	}
	DIR *folder = fdopendir(fd);
	if (!folder) {
		errnum = errno;
		fd_close(&fd);
		return error_set_errno(err, errnum, "store %s: %s", store->path, refs_folder);
	}
	char **names = NULL;
	size_t count = 0;
	collect_names(folder, &names, &count);
	closedir(folder);
	bool visited = true;
	for (size_t i = 0; i < count; i++) {
		visited = visited && visit(data, names[i], err);
		free(names[i]);
	}
	free(names);
	return visited;
}

static void parked_destroy(struct parked *parked)
{
	free(parked->id);
	free(parked->file);
	free(parked->conflict.path);
	free(parked);
}

void conflicts_finish(struct list *list)
{
	LIST_FOR_EACH(parked, list, struct parked, link) {
		list_remove(&parked->link);
		parked_destroy(parked);
	}
}

static bool read_path(
	struct store *store, const git_oid *id, struct conflict *conflict, struct error *err)
{
	struct buf path;
	buf_init(&path, PATH_MAX);
	bool is_read = store_read(store, id, PATH_MAX - 1, &path, err);
	if (is_read) {
		conflict->path = mem_strndup(buf_span(&path));
	}
	buf_finish(&path);
	return is_read;
}

static bool take_version(struct store *store, const struct tree_view_entry *entry,
	struct conflict *conflict, struct error *err)
{
	if (span_is(entry->name, "base")) {
		conflict->base = tree_view_leaf(entry);
	} else if (span_is(entry->name, "local")) {
		conflict->local = tree_view_leaf(entry);
	} else if (span_is(entry->name, "runtime")) {
		conflict->runtime = tree_view_leaf(entry);
	} else if (span_is(entry->name, "held")) {
		conflict->is_held = true;
	} else if (span_is(entry->name, "path")) {
		return read_path(store, &entry->id, conflict, err);
	}
	return true;
}

static bool load_one(struct store *store, const char *batch, const struct tree_view_entry *entry,
	struct list *list, struct error *err)
{
	struct trail trail = {0};
	struct tree_view view;
	struct parked *parked = mem_alloc_zero(sizeof(*parked));
	bool loaded = tree_view_load(&view, store, tree_view_folder(entry), &trail, err);
	for (size_t i = 0; loaded && i < view.count; i++) {
		loaded = take_version(store, &view.entries[i], &parked->conflict, err);
	}
	tree_view_finish(&view);
	if (loaded && !parked->conflict.path) {
		loaded = error_set(err, ERROR_SYSTEM, "store %s: %s/%s names no path", store->path,
			refs_folder, batch);
	}
	if (!loaded) {
		parked_destroy(parked);
		return false;
	}
	char id[REF_NAME_MAX];
	text_whole(id, sizeof(id), "%s/%.*s", batch, (int)entry->name.len, entry->name.data);
	parked->id = mem_strdup(id);
	parked->file = parked_file(
		&(struct parked_place){store, id, parked->conflict.path}, PARKED_RUNTIME);
	list_append(list, &parked->link);
	return true;
}

static bool open_batch(
	struct store *store, const char *name, struct tree_view *view, struct error *err)
{
	char ref[REF_NAME_MAX];
	git_oid tree;
	struct trail trail = {0};
	*view = (struct tree_view){0};
	return ref_name(ref, name, err) && store_find(store, ref, &tree, err) &&
	       tree_view_load(view, store, &tree, &trail, err);
}

bool batch_load(struct store *store, const char *name, struct list *list, struct error *err)
{
	struct tree_view view;
	bool loaded = open_batch(store, name, &view, err);
	for (size_t i = 0; loaded && i < view.count; i++) {
		loaded = load_one(store, name, &view.entries[i], list, err);
	}
	tree_view_finish(&view);
	return loaded;
}

/* ---- removing one ---- */

static bool drop_entry(struct store *store, const char *batch, struct tree_view *view,
	struct span index, struct error *err)
{
	char ref[REF_NAME_MAX];
	git_oid tree;
	size_t kept = 0;
	for (size_t i = 0; i < view->count; i++) {
		if (!span_equals(view->entries[i].name, index)) {
			view->entries[kept++] = view->entries[i];
		}
	}
	if (kept == view->count) {
		return error_set(err, ERROR_NOT_FOUND, "there is no conflict %s/%.*s", batch,
			(int)index.len, index.data);
	}
	if (kept == 0) {
		return ref_name(ref, batch, err) && store_forget(store, ref, err);
	}
	return tree_view_write(store, view->entries, kept, &tree, err) &&
	       batch_keep(store, batch, &tree, err);
}

bool batch_drop(struct store *store, const char *id, struct error *err)
{
	const char *slash = strchr(id, '/');
	if (!slash || slash - id >= BATCH_NAME_MAX) {
		return error_set(err, ERROR_NOT_FOUND, "there is no conflict %s", id);
	}
	char batch[BATCH_NAME_MAX];
	struct tree_view view;
	text_whole(batch, sizeof(batch), "%.*s", (int)(slash - id), id);
	bool dropped = open_batch(store, batch, &view, err) &&
	               drop_entry(store, batch, &view, span_of(slash + 1), err);
	tree_view_finish(&view);
	return dropped;
}
