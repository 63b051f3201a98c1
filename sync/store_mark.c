/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/stat_cache.h"
#include "sync/store_impl.h"
#include "sync/store_mark.h"

#define REFS_FOLDER "refs/acp-broker"

/* Commits, trees and tags still to be read. All other objects refer to nothing. */
struct marking {
	struct store *store;
	struct id_set *set;
	git_oid *pending; // owned
	size_t count, capacity;
	long long deadline_ms; // clock_now_ms; 0: none
};

static void push(struct marking *marking, const git_oid *id)
{
	if (!id_set_add(marking->set, id)) {
		return;
	}
	if (marking->count == marking->capacity) {
		marking->capacity = marking->capacity * 2 + 64;
		marking->pending = mem_realloc(
			marking->pending, marking->capacity * sizeof(marking->pending[0]));
	}
	marking->pending[marking->count++] = *id;
}

/*
 * Also marks what a delta needs. If a delta cannot be read, its needs are unknown: then nothing may
 * be removed.
 */
static bool mark_big(struct marking *marking, const git_oid *id)
{
	struct store_entry entry = {ENTRY_BIG, *id};
	struct delta delta;
	struct error err;
	git_oid content;
	store_big_content(&entry, &content);
	if (!id_set_add(marking->set, &content)) {
		return true;
	}
	if (!delta_read(marking->store, &content, &delta, &err)) {
		return err.code == ERROR_NOT_FOUND;
	}
	for (uint32_t i = 0; i < delta.part_count; i++) {
		id_set_add(marking->set, &delta.parts[i]);
	}
	delta_finish(&delta);
	return true;
}

/* "MODE NAME\0" and the bytes of an id, repeatedly. */
static bool mark_tree(struct marking *marking, struct span tree)
{
	while (tree.len > 0) {
		git_oid id;
		const char *end = memchr(tree.data, '\0', tree.len);
		size_t length = end ? (size_t)(end - tree.data) + 1 : 0;
		if (length == 0 || tree.len - length < GIT_OID_RAWSZ) {
			return false;
		}
		memcpy(id.id, tree.data + length, GIT_OID_RAWSZ);
		if (span_starts_with(tree, SPAN_LITERAL("40000 "))) {
			push(marking, &id);
		} else if (span_starts_with(tree, SPAN_LITERAL("160000 "))) {
			if (!mark_big(marking, &id)) {
				return false;
			}
		} else {
			id_set_add(marking->set, &id);
		}
		length += GIT_OID_RAWSZ;
		tree = (struct span){tree.data + length, tree.len - length};
	}
	return true;
}

/* A commit's tree and parents, a tag's object. Parents beyond a shallow history may be missing. */
static bool mark_header_line(struct marking *marking, struct span line)
{
	static const char *const words[] = {"tree ", "parent ", "object "};
	const struct git *git = marking->store->git;
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		struct span word = span_of(words[i]);
		git_oid id;
		char hex[ID_TEXT_SIZE] = "";
		if (!span_starts_with(line, word) || line.len != word.len + GIT_OID_HEXSZ) {
			continue;
		}
		memcpy(hex, line.data + word.len, GIT_OID_HEXSZ);
		if (git->oid_fromstr(&id, hex) < 0) {
			return false;
		}
		if (i != 1 || git->odb_exists_ext(
				      marking->store->odb, &id, GIT_ODB_LOOKUP_NO_REFRESH) == 1) {
			push(marking, &id);
		}
	}
	return true;
}

static bool mark_header(struct marking *marking, struct span text)
{
	for (;;) {
		const char *end = text.len ? memchr(text.data, '\n', text.len) : NULL;
		size_t length = end ? (size_t)(end - text.data) : 0;
		if (length == 0) {
			return true;
		}
		if (!mark_header_line(marking, (struct span){text.data, length})) {
			return false;
		}
		text = (struct span){end + 1, text.len - length - 1};
	}
}

static bool mark_object(struct marking *marking, const git_oid *id, struct error *err)
{
	const struct git *git = marking->store->git;
	git_odb_object *object = NULL;
	char hex[ID_TEXT_SIZE];
	if (git->odb_read(&object, marking->store->odb, id) < 0) {
		return error_set_git(
			git, err, "store %s: %s", marking->store->path, id_text(hex, id));
	}
	struct span content = {git->odb_object_data(object), git->odb_object_size(object)};
	git_object_t type = git->odb_object_type(object);
	bool marked = type == GIT_OBJECT_BLOB ||
	              (type == GIT_OBJECT_TREE ? mark_tree(marking, content)
					       : mark_header(marking, content));
	git->odb_object_free(object);
	return marked || error_set(err, ERROR_SYSTEM, "store %s: %s is damaged",
				 marking->store->path, id_text(hex, id));
}

static bool is_in_time(const struct marking *marking, struct error *err)
{
	return marking->deadline_ms <= 0 || clock_now_ms() < marking->deadline_ms ||
	       error_set(err, ERROR_TIMEOUT, "store %s: there is too much in it",
		       marking->store->path);
}

/* Marks everything that the pending objects lead to. */
static bool mark_pending(struct marking *marking, struct error *err)
{
	while (marking->count > 0) {
		git_oid id = marking->pending[--marking->count];
		if (!mark_object(marking, &id, err) || !is_in_time(marking, err)) {
			return false;
		}
	}
	return true;
}

/* ---- where references begin ---- */

/* What the file referred to is unknown, and whoever repairs it will need all of that. */
static bool fail_file(
	const struct marking *marking, const char *path, const char *loss, struct error *err)
{
	return err->code == ERROR_SYSTEM &&
	       error_set(err, ERROR_SYSTEM,
		       "%s; nothing is removed from the store until everything that %s leads to "
		       "can "
		       "be read again, because it may still be repaired; to do without it, "
		       "remove %s/%s: %s",
		       err->text, path, marking->store->path, path, loss);
}

static const char *loss_of_ref(const char *path)
{
	static const struct {
		const char *folder, *loss;
	} losses[] = {
		{REFS_FOLDER "/checkpoints/", "then this checkpoint is lost"},
		{REFS_FOLDER "/bases/", "then its sandbox is compared from scratch"},
		{REFS_FOLDER "/merges/", "then the work of an interrupted sync is merged again"},
		{REFS_FOLDER "/conflicts/", "then the parked versions of these conflicts are lost"},
		{REFS_FOLDER "/agent/", "then these commits of the agent are lost"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(losses); i++) {
		if (strncmp(path, losses[i].folder, strlen(losses[i].folder)) == 0) {
			return losses[i].loss;
		}
	}
	return "then everything that only it keeps is lost";
}

static bool mark_ref(struct marking *marking, const char *path, struct error *err)
{
	git_oid id;
	if (!ref_read(marking->store, path, &id, err)) {
		return err->code == ERROR_NOT_FOUND || // removed meanwhile
		       fail_file(marking, path, loss_of_ref(path), err);
	}
	push(marking, &id);
	return mark_pending(marking, err) || fail_file(marking, path, loss_of_ref(path), err);
}

/* NAME.lock is not a ref: libgit2 or git is about to write the ref NAME. */
static bool is_ref_name(const char *name)
{
	static const char lock[] = ".lock";
	size_t length = strlen(name);
	bool is_lock = length >= strlen(lock) && strcmp(name + length - strlen(lock), lock) == 0;
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_lock;
}

/* One name in a folder of refs; a subfolder is added to the list. */
static bool mark_name(struct marking *marking, const char *path, char ***folders, struct error *err)
{
	struct stat status;
	int result = fstatat(marking->store->folder_fd, path, &status, AT_SYMLINK_NOFOLLOW);
	if (result == 0 && S_ISDIR(status.st_mode)) {
		words_append(folders, path);
		return is_in_time(marking, err);
	}
	return mark_ref(marking, path, err) && is_in_time(marking, err);
}

static bool mark_names(struct marking *marking, DIR *stream, const char *folder, char ***folders,
	struct error *err)
{
	char path[PATH_MAX];
	struct dirent *entry;
	while (errno = 0, (entry = readdir(stream)) != NULL) {
		if (!is_ref_name(entry->d_name)) {
			continue;
		}
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= PATH_MAX) {
			errno = ENAMETOOLONG;
			break;
		}
		if (!mark_name(marking, path, folders, err)) {
			return false;
		}
	}
	return errno == 0 ||
	       error_set_errno(err, errno, "store %s: %s", marking->store->path, folder);
}

static bool mark_folder(
	struct marking *marking, const char *folder, char ***folders, struct error *err)
{
	int fd = openat(marking->store->folder_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int errnum = errno;
		fd_close(&fd);
		return errnum == ENOENT ||
		       error_set_errno(err, errnum, "store %s: %s", marking->store->path, folder);
	}
	bool marked = mark_names(marking, stream, folder, folders, err);
	closedir(stream);
	return marked;
}

/* Reads the files one by one, because libgit2 does not report a ref that it cannot read. */
static bool mark_ref_files(struct marking *marking, struct error *err)
{
	char **folders = NULL;
	bool marked = true;
	words_append(&folders, REFS_FOLDER);
	for (size_t i = 0; marked && folders[i]; i++) {
		marked = mark_folder(marking, folders[i], &folders, err);
	}
	words_free(folders);
	return marked;
}

/* Also marks refs that somebody has packed with git, or made elsewhere. */
static bool mark_other_refs(struct marking *marking, struct error *err)
{
	const struct git *git = marking->store->git;
	git_reference_iterator *iterator = NULL;
	const char *name;
	git_oid id;
	int result = git->reference_iterator_new(&iterator, marking->store->repository);
	while (result == 0 && (result = git->reference_next_name(&name, iterator)) == 0) {
		result = git->reference_name_to_id(&id, marking->store->repository, name);
		if (result == 0) {
			push(marking, &id);
		} else if (result == GIT_ENOTFOUND) {
			result = 0; // removed meanwhile
		}
	}
	git->reference_iterator_free(iterator);
	return result == GIT_ITEROVER ? mark_pending(marking, err)
	                              : error_set_git(git, err, "store %s: reading the names",
						marking->store->path);
}

static bool mark_cache(struct marking *marking, const char *name, struct error *err)
{
	char path[NAME_MAX + 8];
	git_oid tree;
	const struct git *git = marking->store->git;
	if (!stat_cache_tree(marking->store, name, &tree) ||
		git->odb_exists(marking->store->odb, &tree) != 1) {
		return true;
	}
	push(marking, &tree);
	text_whole(path, sizeof(path), "cache/%s", name);
	return mark_pending(marking, err) ||
	       fail_file(marking, path, "then the next sync reads all files again", err);
}

static bool mark_caches(struct marking *marking, struct error *err)
{
	int fd = openat(marking->store->folder_fd, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool marked = true;
	while (marked && stream && (entry = readdir(stream))) {
		marked = mark_cache(marking, entry->d_name, err);
	}
	if (stream) {
		closedir(stream);
	} else {
		fd_close(&fd);
	}
	return marked;
}

bool store_mark(struct store *store, struct id_set *set, long long deadline_ms, struct error *err)
{
	struct marking marking = {.store = store, .set = set, .deadline_ms = deadline_ms};
	push(&marking, &store_empty_tree);
	bool marked = mark_ref_files(&marking, err) && mark_other_refs(&marking, err) &&
	              mark_caches(&marking, err);
	free(marking.pending);
	return marked;
}
