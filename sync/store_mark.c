/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/id.h"
#include "sync/stat_cache.h"
#include "sync/store_mark.h"

/* Commits, trees and tags that are yet to be read. What is in none of them is a leaf. */
struct marking {
	struct store *store;
	struct id_set *set;
	git_oid *pending; // owned
	size_t count, capacity;
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

/* "MODE NAME\0" and the id's bytes, again and again. */
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
			struct store_entry entry = {ENTRY_BIG, id};
			store_big_content(&entry, &id);
			id_set_add(marking->set, &id);
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

/* ---- what is referred to ---- */

static bool mark_refs(struct marking *marking, struct error *err)
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
			result = 0; // forgotten meanwhile
		}
	}
	git->reference_iterator_free(iterator);
	return result == GIT_ITEROVER ||
	       error_set_git(git, err, "store %s: reading the names", marking->store->path);
}

static void mark_caches(struct marking *marking)
{
	int fd = openat(marking->store->folder_fd, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	git_oid tree;
	const struct git *git = marking->store->git;
	while (stream && (entry = readdir(stream))) {
		if (stat_cache_tree(marking->store, entry->d_name, &tree) &&
			git->odb_exists(marking->store->odb, &tree) == 1) {
			push(marking, &tree);
		}
	}
	if (stream) {
		closedir(stream);
	} else {
		fd_close(&fd);
	}
}

bool store_mark(struct store *store, struct id_set *set, long long deadline_ms, struct error *err)
{
	struct marking marking = {.store = store, .set = set};
	push(&marking, &store_empty_tree);
	bool marked = mark_refs(&marking, err);
	mark_caches(&marking);
	while (marked && marking.count > 0) {
		git_oid id = marking.pending[--marking.count];
		marked = mark_object(&marking, &id, err);
		if (marked && deadline_ms > 0 && clock_now_ms() >= deadline_ms) {
			marked = error_set(err, ERROR_TIMEOUT, "store %s: there is too much in it",
				store->path);
		}
	}
	free(marking.pending);
	return marked;
}
