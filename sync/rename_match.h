/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RENAME_MATCH_H
#define SYNC_RENAME_MATCH_H

#include <stdatomic.h>

#include "sync/store.h"

/*
 * Which of the files that are gone on one side stand there under another name, and which folders
 * do. It knows files by path and content; where they come from is the caller's (sync/renames.h).
 */
enum {
	/* Files of one content; more on either side are matched only where both have as many. */
	RENAME_ALIKE_MAX = 20,
	/* Files without an equal on a side that are compared with all others, and their pieces. */
	RENAME_SIMILAR_MAX = 500,
	RENAME_SIMILAR_PIECES_MAX = 1 << 20,
	/* Bytes of all that are read for that, and the pieces that are compared with others, each
	 * as often as it is. */
	RENAME_SIMILAR_BYTES_MAX = 128 << 20,
	RENAME_SIMILAR_WORK_MAX = 1 << 27,
	RENAME_FOLDERS_BYTES_MAX = 64 << 20, // of their names; over it no folder is known
};

enum { RENAME_NO_MATCH = -1 };

struct rename_file {
	char *path; // owned
	struct store_entry entry;
	struct store_entry other; // what the other side has at the path; a mode of 0: nothing
	int match; // index of the file that it is among those of the other list, or RENAME_NO_MATCH
};

struct rename_files {
	struct rename_file *items; // owned
	size_t count;
};

void rename_files_add(struct rename_files *files, const char *path, const struct store_entry *entry,
	const struct store_entry *other);
void rename_files_sort(struct rename_files *files); // by path, bytewise
void rename_files_finish(struct rename_files *files);
/* In sorted ones; NULL: there is none. */
struct rename_file *rename_files_find(const struct rename_files *files, const char *path);

/*
 * Sets `match` in both lists, which are sorted: each file has one match at most. Equal contents
 * come first, then those that are SIMILAR_LEAST percent alike; of several, the one with more names
 * of its path in common, from the end. Empty files match none, nor do those that cannot be read
 * and have no equal. Once it is cancelled, no more contents are compared. `is_cancelled` may be
 * NULL.
 */
void rename_match(struct store *store, struct rename_files *gone, struct rename_files *fresh,
	const atomic_bool *is_cancelled);

/* Folders that stand elsewhere, by what most of their files that were moved say. */
struct rename_folder {
	char *from, *to; // owned; "" is the root
	size_t count;    // of files
};

struct rename_folders {
	struct rename_folder *items; // owned; by `from`, each once
	size_t count;
	size_t bytes; // of names
};

void rename_folders_find(struct rename_folders *folders, const struct rename_files *gone,
	const struct rename_files *fresh);
void rename_folders_finish(struct rename_folders *folders);

/* The nearest folder above the path that stands elsewhere; NULL: none. */
const struct rename_folder *rename_folders_above(
	const struct rename_folders *folders, const char *path);

/* The path in the new place of a folder that is above it; owned by the caller. */
char *rename_folder_path(const struct rename_folder *folder, const char *path);

#endif
