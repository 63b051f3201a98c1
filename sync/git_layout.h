/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_LAYOUT_H
#define SYNC_GIT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/*
 * Knows which folders git takes for repositories, and which of their files name commands that git
 * runs (gitrepository-layout(5)). A repository is every `.git`, and each folder, whatever its name,
 * that has HEAD, objects and refs, or HEAD and commondir. Names match in any spelling that some
 * file system treats as equal. Does no I/O.
 */
enum git_part {
	GIT_PART_HEAD = 1,
	GIT_PART_OBJECTS = 2,
	GIT_PART_REFS = 4,
	GIT_PART_COMMON = 8, // commondir: objects, refs and config are in another folder
	GIT_PART_CONFIG = 16,
	GIT_PART_HOOKS = 32,
	GIT_PARTS_RUN =
		GIT_PART_COMMON | GIT_PART_CONFIG | GIT_PART_HOOKS, // parts that name commands
	GIT_PARTS_ALL = 63,
};

unsigned git_layout_part(struct span name); // of enum git_part; 0: none
bool git_layout_is_repository(unsigned parts);

/*
 * Whether this part may be changed in a folder with these parts without making git run a command.
 */
bool git_layout_may_change(unsigned parts, unsigned part);

/*
 * Decides whether a file may be written. It asks the caller whether certain files exist:
 *
 *     git_write_begin(&write, path);
 *     while ((answer = git_write_next(&write, probe, sizeof(probe))) == GIT_WRITE_PROBE) {
 *             git_write_tell(&write, exists(probe));
 *     }
 */
enum git_write_answer { GIT_WRITE_FINE, GIT_WRITE_REFUSED, GIT_WRITE_PROBE };

struct git_write {
	const char *path; // borrowed; without links
	size_t at;        // the names before this offset are checked
	size_t folder;    // length of the folder being checked, with its slash
	unsigned part;    // the part of that folder that is written; 0: no folder is checked
	unsigned found;
	size_t mark;
};

/*
 * `path` is absolute: the names of all folders above it count, not only those below a session's
 * root.
 */
void git_write_begin(struct git_write *write, const char *path);
enum git_write_answer git_write_next(struct git_write *write, char *probe, size_t size);
void git_write_tell(struct git_write *write, bool exists);

#endif
