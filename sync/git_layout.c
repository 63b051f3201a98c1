/* SPDX-License-Identifier: MIT */
#include "sync/git_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/text.h"
#include "sync/snapshot_impl.h"

unsigned git_layout_part(struct span name)
{
	static const struct {
		const char *name;
		enum git_part part;
	} parts[] = {{"head", GIT_PART_HEAD}, {"objects", GIT_PART_OBJECTS},
		{"refs", GIT_PART_REFS}, {"commondir", GIT_PART_COMMON},
		{"config", GIT_PART_CONFIG}, {"config.worktree", GIT_PART_CONFIG},
		{"hooks", GIT_PART_HOOKS}};
	unsigned part = 0;
	char *folded = mem_strndup(name);
	snapshot_name_fold(folded);
	for (size_t i = 0; i < ARRAY_LENGTH(parts) && !part; i++) {
		part = strcmp(folded, parts[i].name) == 0 ? parts[i].part : 0;
	}
	free(folded);
	return part;
}

bool git_layout_is_repository(unsigned parts)
{
	const unsigned own = GIT_PART_OBJECTS | GIT_PART_REFS;
	return (parts & GIT_PART_HEAD) && ((parts & GIT_PART_COMMON) || (parts & own) == own);
}

bool git_layout_may_change(unsigned parts, unsigned part)
{
	if (git_layout_is_repository(parts)) {
		return !(part & GIT_PARTS_RUN);
	}
	return !git_layout_is_repository(parts | part);
}

/* ---- writing a file ---- */

/* The names that git looks for; without the first it sees no repository. */
static const struct mark {
	const char *name;
	enum git_part part;
} marks[] = {{"HEAD", GIT_PART_HEAD}, {"commondir", GIT_PART_COMMON}, {"objects", GIT_PART_OBJECTS},
	{"refs", GIT_PART_REFS}};

void git_write_begin(struct git_write *write, const char *path)
{
	*write = (struct git_write){.path = path};
}

static bool is_decided(const struct git_write *write)
{
	bool has_head = (write->found | write->part) & GIT_PART_HEAD;
	return write->mark == ARRAY_LENGTH(marks) || (write->mark > 0 && !has_head);
}

enum git_write_answer git_write_next(struct git_write *write, char *probe, size_t size)
{
	for (;;) {
		if (write->part && !is_decided(write)) {
			text_whole(probe, size, "%.*s%s", (int)write->folder, write->path,
				marks[write->mark].name);
			return GIT_WRITE_PROBE;
		}
		if (write->part && !git_layout_may_change(write->found, write->part)) {
			return GIT_WRITE_REFUSED;
		}
		write->at += strspn(write->path + write->at, "/");
		struct span name = {write->path + write->at, strcspn(write->path + write->at, "/")};
		if (name.len == 0) {
			return GIT_WRITE_FINE;
		}
		if (snapshot_name_is_git(name)) {
			return GIT_WRITE_REFUSED;
		}
		*write = (struct git_write){.path = write->path,
			.at = write->at + name.len,
			.folder = write->at,
			.part = git_layout_part(name)};
	}
}

void git_write_tell(struct git_write *write, bool exists)
{
	write->found |= exists ? marks[write->mark].part : 0;
	write->mark++;
}
