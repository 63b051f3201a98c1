/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RENAME_MATCH_H
#define SYNC_RENAME_MATCH_H

#include <stdatomic.h>

#include "sync/store.h"

/*
 * Finds which of the missing files on one side exist there under another name, and which folders
 * do. It knows files by path and content; the caller (sync/renames.h) supplies them.
 */
enum {
	/*
	 * Files with equal content. If a side has more of them, they match only if both sides have
	 * the same number.
	 */
	RENAME_ALIKE_MAX = 20,
	/* Per side: files without an equal that are compared with all others, and their pieces. */
	RENAME_SIMILAR_MAX = 500,
	RENAME_SIMILAR_PIECES_MAX = 1 << 20,
	/*
	 * The bytes that are read for that, and the compared pieces, counted each time they are
	 * compared.
	 */
	RENAME_SIMILAR_BYTES_MAX = 128 << 20,
	RENAME_SIMILAR_WORK_MAX = 1 << 27,
	RENAME_FOLDERS_BYTES_MAX = 64 << 20, // of the paths; above this no folder counts as renamed
};

enum { RENAME_NO_MATCH = -1 };

struct rename_file {
	char *path; // owned
	struct store_entry entry;
	struct store_entry other; // the other side's entry at the path; a mode of 0: none
	int match;                // index in the other list, or RENAME_NO_MATCH
};

struct rename_files {
	struct rename_file *items; // owned
	size_t count;
};

void rename_files_add(struct rename_files *files, const char *path, const struct store_entry *entry,
	const struct store_entry *other);
void rename_files_sort(struct rename_files *files); // by path, bytewise
void rename_files_finish(struct rename_files *files);
/* Searches a sorted list; NULL if there is none. */
struct rename_file *rename_files_find(const struct rename_files *files, const char *path);

/*
 * Sets `match` in both lists, which are sorted: each file has at most one match. Equal contents
 * match first, then contents that are at least SIMILAR_LEAST percent alike. Among several
 * candidates it takes the one whose path has the most components in common, counted from the end.
 * Empty files have no match; neither do files that cannot be read, unless they have an equal. After
 * a cancel it compares no more contents. `is_cancelled` may be NULL.
 */
void rename_match(struct store *store, struct rename_files *gone, struct rename_files *fresh,
	const atomic_bool *is_cancelled);

/* Renamed folders, as the majority of their moved files shows. */
struct rename_folder {
	char *from, *to; // owned; "" is the root
	size_t count;    // of files
};

struct rename_folders {
	struct rename_folder *items; // owned; sorted by `from`, each once
	size_t count;
	size_t bytes; // of the paths
};

void rename_folders_find(struct rename_folders *folders, const struct rename_files *gone,
	const struct rename_files *fresh);
void rename_folders_finish(struct rename_folders *folders);

/* The nearest renamed folder above the path; NULL if there is none. */
const struct rename_folder *rename_folders_above(
	const struct rename_folders *folders, const char *path);

/* The path after the rename of a folder above it; owned by the caller. */
char *rename_folder_path(const struct rename_folder *folder, const char *path);

#endif
