/* SPDX-License-Identifier: MIT */
#include "sync/rsync/mirror_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/utf8.h"
#include "sync/parked.h"
#include "sync/rsync/mirror.h"
#include "sync/tree_view.h"

enum { PARKED_NAME_MAX = 180 }; // bytes of a name that are kept in its parked name

void mirror_stamp(char *text, size_t size, const char *prefix)
{
	char now[32];
	struct tm utc;
	time_t seconds = time(NULL);
	unsigned random = 0;
	(void)!getrandom(&random, sizeof(random), 0);
	strftime(now, sizeof(now), "%Y%m%dT%H%M%S", gmtime_r(&seconds, &utc));
	text_whole(text, size, "%s%s-%06x", prefix, now, random & 0xffffff);
}

/* ---- walking ---- */

struct walk {
	struct trail trail;
	const struct rules *rules;
	/* Handles an entry; returns true for a folder to enter. */
	bool (*visit)(struct walk *walk, int folder, const char *name, bool is_folder);
	struct mirror_found *found;
	int known; // the folder to compare with; -1: there is none
};

static bool is_folder(int at, const char *name)
{
	struct stat status;
	return fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_stream(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		fd_close(&fd);
	}
	return stream;
}

static void walk_folder(struct walk *walk, int at, const char *name)
{
	DIR *stream = open_stream(at, name);
	const struct dirent *entry;
	while (stream && (entry = readdir(stream))) {
		size_t mark;
		if (is_dots(entry->d_name) ||
			!trail_push(&walk->trail, span_of(entry->d_name), &mark, NULL)) {
			continue;
		}
		bool goes_in = is_folder(dirfd(stream), entry->d_name);
		if (walk->visit(walk, dirfd(stream), entry->d_name, goes_in)) {
			walk_folder(walk, dirfd(stream), entry->d_name);
			if (walk->found) { // an empty folder would be put back, too
				unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR);
			}
		}
		trail_pop(&walk->trail, mark);
	}
	if (stream) {
		closedir(stream);
	}
}

/* ---- removing ---- */

static void remove_below(int at, const char *name, size_t depth)
{
	DIR *stream = open_stream(at, name);
	const struct dirent *entry;
	while (stream && depth > 0 && (entry = readdir(stream))) {
		if (!is_dots(entry->d_name) && unlinkat(dirfd(stream), entry->d_name, 0) < 0 &&
			(errno == EISDIR || errno == EPERM)) {
			remove_below(dirfd(stream), entry->d_name, depth - 1);
		}
	}
	if (stream) {
		closedir(stream);
	}
	unlinkat(at, name, AT_REMOVEDIR);
}

void mirror_remove(int at, const char *name)
{
	if (unlinkat(at, name, 0) < 0 && (errno == EISDIR || errno == EPERM)) {
		remove_below(at, name, TREE_VIEW_DEPTH_MAX);
	}
}

static bool sweep(struct walk *walk, int folder, const char *name, bool goes_in)
{
	if (rules_match(walk->rules, walk->trail.path, goes_in) == RULE_EXCLUDE) {
		mirror_remove(folder, name);
		return false;
	}
	return goes_in;
}

void mirror_sweep(struct mirror *mirror, const struct rules *rules)
{
	struct walk *walk = mem_alloc_zero(sizeof(*walk));
	walk->rules = rules;
	walk->visit = sweep;
	walk_folder(walk, mirror->fd, "mirror");
	free(walk);
}

/* ---- looking ---- */

static bool is_same_link(int folder, int known, const char *name)
{
	char target[PATH_MAX], other[PATH_MAX];
	ssize_t length = readlinkat(folder, name, target, sizeof(target));
	return length >= 0 && readlinkat(known, name, other, sizeof(other)) == length &&
	       memcmp(target, other, (size_t)length) == 0;
}

static bool is_same_file(int folder, int known, const char *name)
{
	struct stat a, b;
	return fstatat(folder, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(known, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(a.st_mode) &&
	       S_ISREG(b.st_mode) && a.st_size == b.st_size &&
	       a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
	       !(a.st_mode & 0111) == !(b.st_mode & 0111);
}

static bool is_known(const struct walk *walk, int folder, const char *name)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(walk->trail.path, '/');
	text_whole(parent, sizeof(parent), "%.*s", slash ? (int)(slash - walk->trail.path) : 0,
		walk->trail.path);
	int fd ATTR_CLEANUP(fd_cleanup) = beneath_open_folder(walk->known, parent, false);
	return fd >= 0 && (is_same_link(folder, fd, name) || is_same_file(folder, fd, name));
}

static bool look(struct walk *walk, int folder, const char *name, bool goes_in)
{
	struct mirror_found *found = walk->found;
	if (goes_in || parked_is_name(span_of(name))) {
		return goes_in;
	}
	if (is_known(walk, folder, name)) {
		unlinkat(folder, name, 0);
		return false;
	}
	if (found->members + found->parked == 0) {
		char *path = path_quote(span_of(walk->trail.path));
		text_format(found->first, sizeof(found->first), "%s", path);
		free(path);
	}
	if (!rules_exclude(walk->rules, walk->trail.path, false)) {
		found->members++;
		return false;
	}
	char parked[NAME_MAX + 1], stamp[40];
	mirror_stamp(stamp, sizeof(stamp), ".");
	struct span kept = {name, strnlen(name, PARKED_NAME_MAX)};
	kept.len = name[kept.len] ? utf8_whole_length(kept) : kept.len;
	text_whole(parked, sizeof(parked), "%.*s%s" PARKED_SUFFIX, (int)kept.len, kept.data, stamp);
	(void)!renameat(folder, name, folder, parked);
	found->parked++;
	return false;
}

void mirror_look(struct mirror *mirror, const char *name, const char *known,
	const struct rules *rules, struct mirror_found *out)
{
	struct walk *walk = mem_alloc_zero(sizeof(*walk));
	*out = (struct mirror_found){0};
	walk->rules = rules;
	walk->visit = look;
	walk->found = out;
	walk->known = openat(mirror->fd, known, O_PATH | O_DIRECTORY | O_CLOEXEC);
	walk_folder(walk, mirror->fd, name);
	fd_close(&walk->known);
	free(walk);
}
