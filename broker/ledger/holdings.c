/* SPDX-License-Identifier: MIT */
#include "broker/ledger/holdings.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/real_path.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/config/sync_settings.h"
#include "broker/ledger/record_owner.h"
#include "broker/ledger/state_folder.h"
#include "broker/ledger/store_weight.h"
#include "sync/store_end.h"
#include "sync/store_lock.h"

/* A record, and whether a broker holds its lock. */
struct owned_record {
	struct record record;
	bool is_held;
};

struct finding {
	const char *state_folder;
	struct holdings *out;
	bool measures;
	int folder_fd;
	struct owned_record *records; // owned
	size_t count;
	size_t unreadable; // records whose content is unknown
};

const char *holding_kind_name(enum holding_kind kind)
{
	static const char *const names[] = {"copy", "store", "mirror", "home", "record"};
	assert((size_t)kind < ARRAY_LENGTH(names));
	return names[kind];
}

const char *holding_state_name(enum holding_state state)
{
	static const char *const names[] = {"in use", "not collected", "needed", "finished"};
	assert((size_t)state < ARRAY_LENGTH(names));
	return names[state];
}

static struct holding *add(struct finding *finding, enum holding_kind kind, char *path)
{
	struct holdings *out = finding->out;
	out->list = mem_realloc(out->list, (out->count + 1) * sizeof(*out->list));
	struct holding *holding = &out->list[out->count++];
	*holding = (struct holding){.kind = kind,
		.state = HOLDING_FINISHED,
		.path = path,
		.bytes = finding->measures ? folder_weight(path, LLONG_MAX) : -1};
	return holding;
}

static void set_workspace(struct holding *holding, const char *workspace)
{
	holding->workspace = mem_strdup(workspace);
	holding->is_gone = access(workspace, F_OK) < 0 && errno != EACCES;
}

/* Keeps the first reason, unless the new one is that somebody uses it. */
static void hold(struct holding *holding, enum holding_state state, const char *why)
{
	if (holding->state > state) {
		holding->state = state;
		text_format(holding->why, sizeof(holding->why), "%s", why);
	}
}

/* ---- records ---- */

/* "2026-01-31T12:00:00.000Z" */
static time_t time_of(const char *text)
{
	struct tm utc = {0};
	return strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) ? timegm(&utc) : 0;
}

static char *record_path(const struct finding *finding, const char *id)
{
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/sessions/%s.json", finding->state_folder, id);
	return mem_strdup(path);
}

/* Adds it without a workspace, because nobody knows to which workspace it belongs. */
static void add_unreadable(struct finding *finding, const char *id, const struct error *why)
{
	struct holding *holding = add(finding, HOLDING_RECORD, record_path(finding, id));
	char text[HOLDING_WHY_MAX];
	text_format(text, sizeof(text), "it cannot be read: %s", why->text);
	text_whole(holding->record, sizeof(holding->record), "%s", id);
	hold(holding, HOLDING_KEPT, text);
	finding->unreadable++;
}

static void load_record(void *data, const char *id)
{
	struct finding *finding = data;
	struct owned_record found = {.is_held = false};
	struct record_owner owner;
	struct error err;
	if (!record_load(finding->folder_fd, id, &found.record, &err)) {
		if (err.code != ERROR_NOT_FOUND) {
			add_unreadable(finding, id, &err);
		}
		return;
	}
	record_owner_find(finding->folder_fd, id, &owner);
	found.is_held = owner.is_held;
	record_owner_finish(&owner);
	finding->records =
		mem_realloc(finding->records, (finding->count + 1) * sizeof(*finding->records));
	finding->records[finding->count++] = found;
}

static bool load_records(struct finding *finding, struct error *err)
{
	finding->folder_fd = record_folder_open(finding->state_folder, err);
	bool ok = finding->folder_fd >= 0 &&
	          record_visit(finding->folder_fd, load_record, finding, err);
	fd_close(&finding->folder_fd);
	return ok;
}

static bool is_never_synced(const struct record *record)
{
	return strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) == 0;
}

/* The record holds it, unless the record is stopped and no broker has it. */
static void hold_by(struct holding *holding, const struct owned_record *owned)
{
	char why[HOLDING_WHY_MAX];
	const struct record *record = &owned->record;
	text_format(why, sizeof(why), "session %s", record->id);
	if (owned->is_held) {
		hold(holding, HOLDING_USED, why);
	} else if (record->state != RECORD_STOPPED) {
		hold(holding, HOLDING_UNCOLLECTED, why);
	}
}

static void add_records(struct finding *finding)
{
	for (size_t i = 0; i < finding->count; i++) {
		const struct record *record = &finding->records[i].record;
		struct holding *holding =
			add(finding, HOLDING_RECORD, record_path(finding, record->id));
		set_workspace(holding, record->local_root);
		holding->used = time_of(record->updated);
		holding->profile = mem_strdup(record->profile);
		memcpy(holding->record, record->id, sizeof(holding->record));
		hold_by(holding, &finding->records[i]);
		holding->why[0] = '\0'; // the reason would be the session itself
	}
}

/*
 * ---- copies: copies/PROFILE/WORKSPACE/.made, or copies/PROFILE.KEY/WORKSPACE/.made for the copies
 * of one session (providers/local/copy_place.h) ----
 */

static char *read_made(const char *folder)
{
	char text[PATH_MAX];
	char *path = path_join(folder, ".made");
	/* A confined agent can put anything in its place. */
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	free(path);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[count > 0 ? count : 0] = '\0';
	return text[0] == '/' ? mem_strdup(text) : NULL;
}

/* Whether the record's root lies in the folder. */
static bool is_in(const struct record *record, const char *folder)
{
	size_t length = strlen(folder);
	const char *root = record->runtime_root;
	return root && strncmp(root, folder, length) == 0 && root[length] == '/';
}

static void look_at_copy(struct finding *finding, char *folder)
{
	struct stat status;
	struct holding *copy = add(finding, HOLDING_COPY, folder);
	char *made = read_made(folder);
	if (made) {
		set_workspace(copy, made);
	} else { // a folder for an agent to start in, or the rest of a copy
		hold(copy, HOLDING_KEPT, "nothing was copied into it");
	}
	free(made);
	copy->used = lstat(folder, &status) == 0 ? status.st_mtime : 0;
	for (size_t i = 0; i < finding->count; i++) {
		const struct record *record = &finding->records[i].record;
		if (!is_in(record, folder)) {
			continue;
		}
		hold_by(copy, &finding->records[i]);
		if (is_never_synced(record)) {
			hold(copy, HOLDING_UNCOLLECTED, "it is never synced (sync = none)");
		}
		time_t used = time_of(record->updated);
		if (!*copy->record || used >= copy->used) {
			memcpy(copy->record, record->id, sizeof(copy->record));
			mem_set_text(&copy->profile, record->profile);
			copy->used = used;
		}
	}
	if (copy->workspace && !*copy->record) {
		hold(copy, HOLDING_KEPT, "no record says that it was collected");
	} else if (copy->is_gone) {
		hold(copy, HOLDING_KEPT,
			"its workspace is gone: collect it with acp-broker sessions collect "
			"--into");
	}
}

enum { HASH_DIGITS = 16 };

/* "3f2a9c51d07be846", or two such names with a dot between them. */
static bool is_hash(const char *name)
{
	size_t digits = strspn(name, "0123456789abcdef");
	const char *rest = name + digits;
	return digits == HASH_DIGITS &&
	       (*rest == '\0' || (*rest == '.' && rest[1] != '\0' && !strchr(rest + 1, '.') &&
					 is_hash(rest + 1)));
}

/* Calls the visitor for each such folder; the visitor owns the path. */
static void each_folder(struct finding *finding, const char *folder,
	bool (*is_one)(const char *name), void (*visit)(struct finding *finding, char *path))
{
	DIR *open_folder = opendir(folder);
	struct dirent *entry;
	while (open_folder && (entry = readdir(open_folder))) {
		if (is_one(entry->d_name)) {
			visit(finding, path_join(folder, entry->d_name));
		}
	}
	if (open_folder) {
		closedir(open_folder);
	}
}

static void look_at_copies(struct finding *finding, char *folder)
{
	each_folder(finding, folder, is_hash, look_at_copy);
	free(folder);
}

/* ---- stores ---- */

static bool is_store_of(const struct finding *finding, const char *store, const char *workspace)
{
	char *path = state_folder_store(finding->state_folder, workspace);
	bool is_same = strcmp(strrchr(path, '/'), strrchr(store, '/')) == 0;
	free(path);
	return is_same;
}

/* Finds the workspace from the store itself, or from other holdings of the same workspace. */
static void find_workspace(const struct finding *finding, struct holding *store)
{
	char root[PATH_MAX];
	const char *found = store_read_root(store->path, root) ? root : NULL;
	for (size_t i = 0; !found && i < finding->out->count; i++) {
		const char *workspace = finding->out->list[i].workspace;
		if (workspace && is_store_of(finding, store->path, workspace)) {
			found = workspace;
		}
	}
	if (found) {
		set_workspace(store, found);
	}
}

static void look_at_mirrors(struct finding *finding, size_t store)
{
	char *rsync = path_join(finding->out->list[store].path, "rsync");
	DIR *open_folder = opendir(rsync);
	struct dirent *entry;
	while (open_folder && (entry = readdir(open_folder))) {
		if (entry->d_name[0] == '.') {
			continue;
		}
		struct holding *mirror =
			add(finding, HOLDING_MIRROR, path_join(rsync, entry->d_name));
		struct holding *of = &finding->out->list[store];
		of->bytes -= finding->measures ? mirror->bytes : 0;
		mirror->workspace = mem_strdup_or_null(of->workspace);
		mirror->is_gone = of->is_gone;
		mirror->used = of->used;
		mirror->state = of->state;
		text_format(mirror->why, sizeof(mirror->why), "%s", of->why);
	}
	if (open_folder) {
		closedir(open_folder);
	}
	free(rsync);
}

/* Whether somebody is syncing its workspace, or working on the store. */
static bool is_locked(const char *folder)
{
	struct error ignored;
	int fd = -1;
	bool is_known = store_lock_find(folder, &fd, &ignored);
	bool is_free = is_known && (fd < 0 || store_lock_try(fd));
	fd_close(&fd);
	return !is_free;
}

/*
 * Sandboxes that were the workspace itself; they hold no files of their own. The caller frees the
 * list.
 */
static char **sandboxes_in_place(const struct finding *finding)
{
	char **names = NULL;
	for (size_t i = 0; i < finding->count; i++) {
		const struct record *record = &finding->records[i].record;
		char name[STATE_FOLDER_NAME_SIZE];
		if (record->runtime_root && strcmp(record->runtime_root, record->local_root) == 0) {
			words_append(
				&names, state_folder_sandbox(name, record->backend, record->profile,
						record->runtime_root, record->instance));
		}
	}
	return names;
}

static bool is_over(const struct finding *finding, const char *folder, char need[STORE_NEED_MAX])
{
	char **in_place = sandboxes_in_place(finding);
	bool over = store_is_over(folder, (const char *const *)in_place, need);
	words_free(in_place);
	return over;
}

static void look_at_store(struct finding *finding, char *folder)
{
	char need[STORE_NEED_MAX];
	struct holding *store = add(finding, HOLDING_STORE, folder);
	size_t at = finding->out->count - 1;
	find_workspace(finding, store);
	store->used = store_used(folder);
	if (is_locked(folder)) {
		hold(store, HOLDING_USED, "it is locked");
	}
	for (size_t i = 0; i < at; i++) {
		const struct holding *other = &finding->out->list[i];
		if (other->kind == HOLDING_COPY && other->workspace &&
			is_store_of(finding, folder, other->workspace)) {
			hold(store, HOLDING_KEPT, "the copy of its workspace is there");
		}
	}
	for (size_t i = 0; i < finding->count; i++) {
		if (is_store_of(finding, folder, finding->records[i].record.local_root)) {
			hold_by(store, &finding->records[i]);
		}
	}
	if (!is_over(finding, folder, need)) {
		hold(store, HOLDING_KEPT, need);
	}
	look_at_mirrors(finding, at);
}

/*
 * ---- homes: homes/PROFILE[.USER], locked while they are in use (providers/local/agent_home.c)
 * ----
 */

enum { PROFILE_HASH_SIZE = 16 };
static const char gone_end[] = ".gone"; // ends the name of a home that is being removed

static bool is_home(const char *name)
{
	char hash[PROFILE_HASH_SIZE + 1];
	text_format(hash, sizeof(hash), "%s", name);
	const char *user = strlen(name) > PROFILE_HASH_SIZE ? name + PROFILE_HASH_SIZE : NULL;
	return is_hash(hash) &&
	       (!user || (user[0] == '.' && user[1] &&
				 user[1 + strspn(user + 1, "0123456789")] == '\0'));
}

static bool is_of_profile(const char *folder, const char *profile)
{
	char hash[PROFILE_HASH_SIZE + 1];
	text_whole(hash, sizeof(hash), "%016" PRIx64, hash_bytes(HASH_START, span_of(profile)));
	return strncmp(path_last_part(folder), hash, PROFILE_HASH_SIZE) == 0;
}

/* The lock ends with the descriptor. */
static int lock_home(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && lock_file_try(fd, LOCK_ALONE) != LOCK_TAKEN) {
		fd_close(&fd);
	}
	return fd;
}

static void look_at_home(struct finding *finding, char *folder)
{
	char why[HOLDING_WHY_MAX];
	struct stat status;
	struct holding *home = add(finding, HOLDING_HOME, folder);
	home->used = finding->measures             ? folder_changed(folder)
	             : lstat(folder, &status) == 0 ? status.st_mtime
	                                           : 0;
	for (size_t i = 0; i < finding->count && !home->profile; i++) {
		const struct record *record = &finding->records[i].record;
		if (is_of_profile(folder, record->profile)) {
			home->profile = mem_strdup(record->profile);
			text_format(why, sizeof(why), "session %s belongs to its profile, %s",
				record->id, record->profile);
			hold(home, HOLDING_KEPT, why);
		}
	}
	ATTR_CLEANUP(fd_cleanup) int lock = lock_home(folder);
	if (lock < 0) {
		hold(home, HOLDING_USED, "a confined agent uses it");
	}
}

/* Nobody begins to use it under its new name. */
bool holding_home_remove(const char *path, struct error *err)
{
	char gone[PATH_MAX];
	ATTR_CLEANUP(fd_cleanup) int lock = lock_home(path);
	if (lock < 0) {
		return error_set(err, ERROR_UNAVAILABLE, "a confined agent uses it");
	}
	if (!text_whole(gone, sizeof(gone), "%s%s", path, gone_end)) {
		return error_set(err, ERROR_LIMIT, "%s: the path is too long", path);
	}
	if (rename(path, gone) != 0) {
		return error_set_errno(err, errno, "renaming %s", path);
	}
	return remove_folder(gone, err);
}

static bool is_gone_home(const char *name)
{
	size_t len = strlen(name);
	size_t end = sizeof(gone_end) - 1;
	return len > end && strcmp(name + len - end, gone_end) == 0;
}

static void remove_gone(struct finding *finding, char *folder)
{
	(void)!remove_folder(folder, NULL);
	free(folder);
}

void holding_homes_sweep(const char *state_folder)
{
	char *homes = path_join(state_folder, "homes");
	each_folder(NULL, homes, is_gone_home, remove_gone);
	free(homes);
}

/* ---- everything ---- */

/* An unreadable record may hold any of them. */
static void hold_all(struct finding *finding)
{
	for (size_t i = 0; finding->unreadable > 0 && i < finding->out->count; i++) {
		struct holding *holding = &finding->out->list[i];
		if (holding->kind != HOLDING_RECORD) {
			hold(holding, HOLDING_KEPT,
				"a record cannot be read: acp-broker sessions list names it");
		}
	}
}

static int compare(const void *a, const void *b)
{
	const struct holding *x = a;
	const struct holding *y = b;
	if (x->kind != y->kind) {
		return x->kind < y->kind ? -1 : 1;
	}
	if (x->used != y->used) {
		return x->used > y->used ? -1 : 1;
	}
	return strcmp(x->path, y->path);
}

static void find_all(struct finding *finding)
{
	char *copies = path_join(finding->state_folder, "copies");
	char *stores = path_join(finding->state_folder, "stores");
	char *homes = path_join(finding->state_folder, "homes");
	add_records(finding);
	each_folder(finding, copies, is_hash, look_at_copies);
	each_folder(finding, stores, is_hash, look_at_store);
	each_folder(finding, homes, is_home, look_at_home);
	free(copies);
	free(stores);
	free(homes);
	hold_all(finding);
	if (finding->out->count > 0) {
		qsort(finding->out->list, finding->out->count, sizeof(*finding->out->list),
			compare);
	}
}

bool holdings_find(struct holdings *out, const char *state_folder, bool measures, struct error *err)
{
	*out = (struct holdings){NULL, 0};
	struct finding finding = {
		.state_folder = state_folder, .out = out, .measures = measures, .folder_fd = -1};
	bool ok = access(state_folder, F_OK) != 0 || load_records(&finding, err);
	if (ok) {
		find_all(&finding);
	}
	for (size_t i = 0; i < finding.count; i++) {
		record_finish(&finding.records[i].record);
	}
	free(finding.records);
	return ok;
}

void holdings_finish(struct holdings *holdings)
{
	for (size_t i = 0; i < holdings->count; i++) {
		struct holding *holding = &holdings->list[i];
		free(holding->path);
		free(holding->workspace);
		free(holding->profile);
	}
	free(holdings->list);
	*holdings = (struct holdings){NULL, 0};
}
