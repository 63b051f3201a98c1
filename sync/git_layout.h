/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_LAYOUT_H
#define SYNC_GIT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/*
 * Which folders git takes for repositories, and what in them names commands that git runs
 * (gitrepository-layout(5)): every `.git`, and each folder, whatever its name, that has HEAD,
 * objects and refs, or HEAD and commondir. Names count in any spelling that some file system takes
 * for them. Pure.
 */
enum git_part {
	GIT_PART_HEAD = 1,
	GIT_PART_OBJECTS = 2,
	GIT_PART_REFS = 4,
	GIT_PART_COMMON = 8, // commondir: another folder has objects, refs and config
	GIT_PART_CONFIG = 16,
	GIT_PART_HOOKS = 32,
	GIT_PARTS_RUN = GIT_PART_COMMON | GIT_PART_CONFIG | GIT_PART_HOOKS, // what names commands
	GIT_PARTS_ALL = 63,
};

unsigned git_layout_part(struct span name); // of enum git_part; 0: none
bool git_layout_is_repository(unsigned parts);

/* Whether the part may be changed in a folder that has these parts: it makes no command run. */
bool git_layout_may_change(unsigned parts, unsigned part);

/*
 * Whether a file may be written. The caller says whether files are there that it is asked about:
 *
 *     git_write_begin(&write, path);
 *     while ((answer = git_write_next(&write, probe, sizeof(probe))) == GIT_WRITE_PROBE) {
 *             git_write_tell(&write, exists(probe));
 *     }
 */
enum git_write_answer { GIT_WRITE_FINE, GIT_WRITE_REFUSED, GIT_WRITE_PROBE };

struct git_write {
	const char *path; // borrowed; without links
	size_t at;        // names up to here are looked at
	size_t folder;    // length of the folder in question, with its slash
	unsigned part;    // of that folder, the name that is written; 0: none is in question
	unsigned found;
	size_t mark;
};

/* An absolute path: the names of all folders above it count, a session's root or not. */
void git_write_begin(struct git_write *write, const char *path);
enum git_write_answer git_write_next(struct git_write *write, char *probe, size_t size);
void git_write_tell(struct git_write *write, bool exists);

#endif
