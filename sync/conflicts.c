/* SPDX-License-Identifier: MIT */
#include "sync/conflicts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/apply_journal.h"
#include "sync/conflicts_impl.h"
#include "sync/graft.h"
#include "sync/held.h"
#include "sync/parked.h"
#include "sync/slot.h"

/* ---- a file of the workspace ---- */

/*
 * Changes a file, and notes its folder in the store meanwhile. After a kill, the next apply_run
 * sweeps the remains. On success this removes the note, unless there were notes before or a
 * temporary file was left behind.
 */
static bool set_noted(struct slot *slot, const char *path, const char *root,
	const struct store_entry versions[2], struct error *err)
{
	struct journal journal;
	char *folder = mem_strdup(path);
	char *slash = strrchr(folder, '/');
	*(slash ? slash : folder) = '\0';
	journal_init(&journal, slot->store, root);
	bool is_first = faccessat(slot->store->folder_fd, journal.name, F_OK, 0) != 0;
	bool set = journal_note(&journal, folder, err) &&
	           slot_set(slot, &versions[0], &versions[1], err) != SLOT_FAILED;
	if (set && is_first && !slot->is_untidy) {
		journal_forget(&journal);
	}
	journal_finish(&journal);
	free(folder);
	return set;
}

struct place {
	const char *path;
	int fd;
};

/* Changes the file at `path` to `to`. If it was left unchanged, slot->why says why. */
static bool set_file(struct slot *slot, char *path, const struct place *root,
	const struct store_entry versions[2], struct error *err)
{
	char *slash = strrchr(path, '/');
	slot->name = slash ? slash + 1 : path;
	slot->path = path;
	if (slash) {
		*slash = '\0';
	}
	ATTR_CLEANUP(fd_cleanup)
	int folder =
		beneath_open_folder(root->fd, slash ? path : "", versions[1].mode != ENTRY_NONE);
	int errnum = errno;
	if (slash) {
		*slash = '/';
	}
	slot->why = NULL;
	if (folder < 0) {
		return slot_give_up(slot, errnum, "opening the folder of", err) == SLOT_LEFT;
	}
	slot->folder = folder;
	if (!set_noted(slot, path, root->path, versions, err)) {
		return false;
	}
	return fsync(folder) == 0 || errno == EINVAL ||
	       error_set_errno(err, errno, "syncing the folder of %s", path);
}

static bool set_below(struct slot *slot, const char *root, char *path,
	const struct store_entry versions[2], struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return error_set_errno(err, errno, "opening %s", root);
	}
	return set_file(slot, path, &(struct place){root, fd}, versions, err);
}

/* ---- parking ---- */

/*
 * What is parked already, sorted by path; and for each conflict of the merge, in order, the one
 * that equals it.
 */
struct known {
	struct store *store;
	struct list list;
	struct parked **sorted; // owned
	size_t count;
	struct parked **same; // owned; NULL: the conflict is new
};

/* A batch that cannot be read is ignored: it must not prevent parking. */
static bool load_known(void *data, const char *name, struct error *err)
{
	struct known *known = data;
	struct error damage;
	(void)!batch_load(known->store, name, &known->list, &damage);
	return true;
}

static int compare_parked(const void *a, const void *b)
{
	return strcmp((*(struct parked *const *)a)->conflict.path,
		(*(struct parked *const *)b)->conflict.path);
}

static bool known_load(struct known *known, struct store *store, struct error *err)
{
	*known = (struct known){.store = store};
	list_init(&known->list);
	if (!batch_each(store, load_known, known, err)) {
		return false;
	}
	LIST_FOR_EACH(parked, &known->list, struct parked, link) {
		known->count++;
	}
	size_t at = 0;
	known->sorted = mem_alloc((known->count + 1) * sizeof(*known->sorted));
	LIST_FOR_EACH(parked, &known->list, struct parked, link) {
		known->sorted[at++] = parked;
	}
	qsort(known->sorted, known->count, sizeof(*known->sorted), compare_parked);
	return true;
}

static void known_finish(struct known *known)
{
	conflicts_finish(&known->list);
	free(known->sorted);
	free(known->same);
}

/* The index of the first parked conflict of this path. */
static size_t known_find(const struct known *known, const char *path)
{
	size_t low = 0, high = known->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(known->sorted[middle]->conflict.path, path) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/*
 * Whether it is the same conflict, found again by another attempt of the same sync, or after a
 * kill. The local version may have changed since.
 */
static bool is_again(const struct conflict *parked, const struct conflict *conflict)
{
	return store_entry_equal(&parked->base, &conflict->base) &&
	       store_entry_equal(&parked->runtime, &conflict->runtime);
}

static struct parked *find_same(const struct known *known, const struct conflict *conflict)
{
	for (size_t i = known_find(known, conflict->path); i < known->count; i++) {
		struct parked *parked = known->sorted[i];
		if (strcmp(parked->conflict.path, conflict->path) != 0) {
			break;
		}
		if (is_again(&parked->conflict, conflict) &&
			parked->conflict.is_held == conflict->is_held &&
			store_entry_equal(&parked->conflict.local, &conflict->local)) {
			return parked;
		}
	}
	return NULL;
}

/* Ends a conflict whose versions are no longer useful. */
static bool drop(struct store *store, const struct parked *parked, struct error *err)
{
	struct parked_place place = {store, parked->id, parked->conflict.path};
	parked_remove(&place, PARKED_RUNTIME, &parked->conflict.runtime);
	return batch_drop(store, parked->id, err);
}

/* Ends the former conflict if it is parked again with another local version, or is held now. */
static bool drop_former(
	const struct known *known, const struct conflict *conflict, struct error *err)
{
	bool dropped = true;
	for (size_t i = known_find(known, conflict->path); dropped && i < known->count; i++) {
		const struct parked *parked = known->sorted[i];
		if (strcmp(parked->conflict.path, conflict->path) != 0) {
			break;
		}
		dropped = !is_again(&parked->conflict, conflict) || drop(known->store, parked, err);
	}
	return dropped;
}

static bool keep_batch(struct store *store, const git_oid *tree, const char *stamp,
	char name[BATCH_NAME_MAX], struct error *err)
{
	text_whole(name, BATCH_NAME_MAX, "%s-%02x%02x%02x%02x%02x%02x", stamp, tree->id[0],
		tree->id[1], tree->id[2], tree->id[3], tree->id[4], tree->id[5]);
	return batch_keep(store, name, tree, err);
}

/* The store already has the version, so that a file that cannot be written is no error. */
static void write_file(struct store *store, const char *id, struct conflict *conflict)
{
	struct error err;
	struct parked_place place = {store, id, conflict->path};
	free(conflict->file);
	conflict->file = parked_file(&place, PARKED_RUNTIME);
	if (!parked_write_once(&place, PARKED_RUNTIME, &conflict->runtime, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "parking a version of %s: %s", conflict->path,
			err.text);
	}
	point("park.written");
}

/* After a kill a conflict may be stored without its file, so all are checked again. */
static bool write_all(
	const struct known *known, const struct merge *merge, const char *batch, struct error *err)
{
	char id[BATCH_ID_MAX];
	size_t at = 0;
	size_t fresh = 0;
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		const struct parked *same = known->same[at++];
		if (!conflict->runtime.mode) {
			continue;
		}
		if (!same) {
			batch_id(id, batch, ++fresh);
		}
		if (!same && !drop_former(known, conflict, err)) {
			return error_prefix(err, "parking a version of %s", conflict->path);
		}
		write_file(known->store, same ? same->id : id, conflict);
	}
	return true;
}

/* Makes no batch if there is nothing new. */
static bool park_new(const struct known *known, const struct merge *merge, const char *stamp,
	char batch[BATCH_NAME_MAX], struct error *err)
{
	git_oid tree;
	if (!batch_write(known->store, merge, known->same, &tree, err)) {
		return false;
	}
	if (memcmp(&tree, &store_empty_tree, sizeof(tree)) == 0) {
		return true;
	}
	point("park.stored");
	if (!keep_batch(known->store, &tree, stamp, batch, err)) {
		return false;
	}
	point("park.kept");
	return true;
}

bool conflicts_park(
	struct store *store, const struct merge *merge, const char *stamp, struct error *err)
{
	struct known known;
	char batch[BATCH_NAME_MAX] = "";
	size_t at = 0;
	if (merge->conflict_count == 0) {
		return true;
	}
	bool parked = known_load(&known, store, err);
	known.same = mem_alloc(merge->conflict_count * sizeof(*known.same));
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		known.same[at++] = find_same(&known, conflict);
	}
	parked = parked && park_new(&known, merge, stamp, batch, err) &&
	         write_all(&known, merge, batch, err);
	known_finish(&known);
	return parked;
}

/* ---- bringing back ---- */

struct list_request {
	struct store *store;
	struct list *list;
};

static bool load_batch(void *data, const char *name, struct error *err)
{
	struct list_request *request = data;
	return batch_load(request->store, name, request->list, err);
}

bool conflicts_list(struct store *store, struct list *out_list, struct error *err)
{
	list_init(out_list);
	struct list_request request = {store, out_list};
	return batch_each(store, load_batch, &request, err);
}

struct parked *conflicts_find(struct list *list, const char *id_or_path)
{
	struct parked *found = NULL;
	size_t count = 0;
	LIST_FOR_EACH(parked, list, struct parked, link) {
		if (strcmp(parked->id, id_or_path) == 0) {
			return parked;
		}
		if (strcmp(parked->conflict.path, id_or_path) == 0) {
			found = parked;
			count++;
		}
	}
	return count == 1 ? found : NULL;
}

bool conflicts_show(struct store *store, const struct parked *parked, enum conflict_side side,
	int fd, struct error *err)
{
	const struct store_entry *version =
		side == CONFLICT_LOCAL ? &parked->conflict.local : &parked->conflict.runtime;
	if (!version->mode) {
		return error_set(err, ERROR_NOT_FOUND, "conflict %s: %s was deleted on that side",
			parked->id, parked->conflict.path);
	}
	return store_copy_out(store, version, fd, err);
}

static bool replace(struct store *store, const char *root, const struct parked *parked,
	const struct store_entry versions[2], struct error *err)
{
	struct slot slot = {.store = store};
	char *path = mem_strdup(parked->conflict.path);
	bool replaced = set_below(&slot, root, path, versions, err);
	if (replaced && slot.why) {
		replaced = error_set(err, ERROR_UNAVAILABLE,
			"conflict %s: %s was not replaced: %s; merge both versions with "
			"acp-broker conflicts edit",
			parked->id, path, slot.why);
	}
	free(path);
	return replaced;
}

bool conflicts_resolve(struct store *store, const char *root, const struct parked *parked,
	const struct store_entry *was, const struct store_entry *becomes, struct error *err)
{
	const struct store_entry versions[2] = {*was, *becomes};
	struct parked_place place = {store, parked->id, parked->conflict.path};
	if (!parked_write(&place, PARKED_LOCAL, was, err) ||
		!replace(store, root, parked, versions, err)) {
		return false;
	}
	point("take.replaced");
	parked_remove(&place, PARKED_RUNTIME, becomes);
	parked_remove(&place, PARKED_MERGED, becomes);
	parked_remove(&place, PARKED_BASE, &parked->conflict.base);
	point("take.removed");
	return batch_drop(store, parked->id, err);
}

bool conflicts_take(struct store *store, const char *root, const struct parked *parked,
	enum conflict_side side, struct error *err)
{
	const struct conflict *conflict = &parked->conflict;
	struct parked_place place = {store, parked->id, conflict->path};
	if (side == CONFLICT_RUNTIME) {
		return conflicts_resolve(
			store, root, parked, &conflict->local, &conflict->runtime, err);
	}
	return parked_write_once(&place, PARKED_RUNTIME, &conflict->runtime, err) &&
	       batch_drop(store, parked->id, err);
}

static bool is_open(void *data, const char *id)
{
	LIST_FOR_EACH(parked, (struct list *)data, struct parked, link) {
		if (strcmp(parked->id, id) == 0) {
			return true;
		}
	}
	return false;
}

bool conflicts_sweep(struct store *store, time_t cutoff, struct error *err)
{
	struct list list;
	bool listed = conflicts_list(store, &list, err);
	if (listed) {
		parked_sweep(store, &(struct parked_sweeping){cutoff, is_open, &list});
	}
	conflicts_finish(&list);
	return listed;
}

static bool has_entry(
	struct store *store, const git_oid *tree, const char *path, const struct store_entry *entry)
{
	struct graft found;
	struct error missing;
	return graft_find(store, tree, path, &found, &missing) &&
	       store_entry_equal(&(struct store_entry){found.mode, found.id}, entry);
}

static bool is_conflict(const struct merge *merge, const char *path)
{
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		if (strcmp(conflict->path, path) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_allowed(struct store *store, const struct settle_request *request, const char *path)
{
	struct graft found;
	struct error missing;
	struct held_change change = {.path = (char *)path};
	if (request->always && graft_find(store, request->always, path, &found, &missing)) {
		return found.mode != TREE_VIEW_FOLDER;
	}
	if (!graft_find(store, &request->merge->merged, path, &found, &missing)) {
		return false;
	}
	change.made = (struct store_entry){found.mode, found.id};
	return held_tree_has(store, request->once, &change);
}

static bool is_settled(
	struct store *store, const struct settle_request *request, const struct conflict *conflict)
{
	return has_entry(store, &request->merge->merged, conflict->path, &conflict->runtime) ||
	       (has_entry(store, request->runtime, conflict->path, &conflict->runtime) &&
		       !is_conflict(request->merge, conflict->path) &&
		       is_allowed(store, request, conflict->path));
}

bool conflicts_settle(struct store *store, const struct settle_request *request, struct error *err)
{
	struct known known = {.store = store};
	list_init(&known.list);
	bool ok = batch_each(store, load_known, &known, err);
	LIST_FOR_EACH(parked, &known.list, struct parked, link) {
		if (ok && is_settled(store, request, &parked->conflict)) {
			ok = drop(store, parked, err);
		}
	}
	known_finish(&known);
	return ok;
}
