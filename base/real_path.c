/* SPDX-License-Identifier: MIT */
#include "base/real_path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"

enum { LINKS_MAX = 40 }; // the kernel's limit

static char *join(const char *folder, const char *rest)
{
	size_t size = strlen(folder) + strlen(rest) + 2;
	char *path = mem_alloc(size);
	const char *slash = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
	text_whole(path, size, "%s%s%s", folder, rest[0] ? slash : "", rest);
	return path;
}

/*
 * The path with its last part, a symbolic link, replaced by the target; NULL if it is not a link.
 */
static char *follow(const char *path)
{
	char target[PATH_MAX];
	ssize_t len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0) {
		return NULL;
	}
	target[len] = '\0';
	if (target[0] == '/') {
		return mem_strdup(target);
	}
	const char *slash = strrchr(path, '/');
	char *folder = mem_strndup((struct span){path, (size_t)(slash - path) + 1});
	char *followed = join(folder, target);
	free(folder);
	return followed;
}

/* Removes trailing slashes, except the root's. */
static void trim(char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/') {
		path[--len] = '\0';
	}
}

/* Removes the last part; the root stays. */
static void shorten(char *path)
{
	trim(path);
	char *slash = strrchr(path, '/');
	slash[slash == path ? 1 : 0] = '\0';
}

/*
 * A path being resolved: the front, which is still to be checked, and the missing parts behind it.
 */
struct walk {
	char *front; // owned
	char *rest;  // owned
	int up;      // parts of the front that ".." in the missing part removes
	int links;   // followed so far
};

static void set_front(struct walk *walk, char *front)
{
	free(walk->front);
	walk->front = front;
}

/* The rest may contain links again, once something before it has changed. */
static void look_again(struct walk *walk)
{
	set_front(walk, join(walk->front, walk->rest));
	mem_set_text(&walk->rest, "");
}

/*
 * Moves the last part, which does not exist, to the front of the rest. After a missing part the
 * kernel would fail at "..", but a reader of the name takes it for going up, and so does this.
 */
static void cut(struct walk *walk)
{
	trim(walk->front);
	const char *part = strrchr(walk->front, '/') + 1;
	bool is_parent = strcmp(part, "..") == 0;
	if (is_parent) {
		walk->up++;
		shorten(walk->front);
	} else if (strcmp(part, ".") == 0) {
		shorten(walk->front);
	} else if (walk->up > 0) {
		shorten(walk->front);
		if (--walk->up == 0) {
			look_again(walk);
		}
	} else {
		char *longer = join(part, walk->rest);
		free(walk->rest);
		walk->rest = longer;
		shorten(walk->front);
	}
}

/* One step; sets *out_path once the path is known. False: it cannot be resolved. */
static bool step(struct walk *walk, char **out_path)
{
	char *resolved = realpath(walk->front, NULL);
	if (resolved && walk->up == 0) {
		*out_path = join(resolved, walk->rest);
		free(resolved);
		return true;
	}
	if (resolved) {
		set_front(walk, resolved);
		for (; walk->up > 0; walk->up--) {
			shorten(walk->front);
		}
		look_again(walk);
		return true;
	}
	if (errno != ENOENT) {
		return false;
	}
	char *followed = walk->up == 0 && ++walk->links <= LINKS_MAX ? follow(walk->front) : NULL;
	if (followed) {
		set_front(walk, followed);
	} else {
		cut(walk);
	}
	return true;
}

char *real_path_find(const char *path)
{
	struct walk walk = {.front = mem_strdup(path), .rest = mem_strdup("")};
	char *result = NULL;
	bool goes_on = path[0] == '/';
	while (goes_on && !result) {
		goes_on = step(&walk, &result);
	}
	free(walk.front);
	free(walk.rest);
	return result;
}

char *real_path(const char *path)
{
	char *result = real_path_find(path);
	return result ? result : mem_strdup(path);
}

/* Goes down by one part. If that is a link, *rest becomes its target and what followed. */
static bool take_part(char **place, const char *part, char **rest, char ***places)
{
	if (strcmp(part, ".") == 0) {
		return false;
	}
	if (strcmp(part, "..") == 0) {
		shorten(*place);
		return false;
	}
	char *next = join(*place, part);
	char *target = follow(next);
	if (!target) {
		free(*place);
		*place = next;
		return false;
	}
	words_append(places, next);
	char *longer = join(target, *rest);
	free(*rest);
	*rest = longer;
	mem_set_text(place, "/");
	free(target);
	free(next);
	return true;
}

void path_places(const char *path, char ***places)
{
	char *place = mem_strdup("/");
	char *rest = mem_strdup(path);
	for (int links = 0; path[0] == '/' && links <= LINKS_MAX;) {
		const char *at = rest + strspn(rest, "/");
		size_t len = strcspn(at, "/");
		char *part = mem_strndup((struct span){at, len});
		char *left = mem_strdup(at + len);
		free(rest);
		rest = left;
		links += len > 0 && take_part(&place, part, &rest, places);
		free(part);
		if (len == 0) {
			words_append(places, place);
			break;
		}
	}
	free(place);
	free(rest);
}

bool path_is_at_or_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool paths_overlap(const char *one, const char *other)
{
	return path_is_at_or_below(one, other) || path_is_at_or_below(other, one) ||
	       strcmp(one, "/") == 0 || strcmp(other, "/") == 0;
}

bool path_goes_up(const char *path)
{
	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");
		if (len == 2 && strncmp(at, "..", 2) == 0) {
			return true;
		}
		at += len;
		at += strspn(at, "/");
	}
	return false;
}

char *path_join(const char *folder, const char *name)
{
	size_t size = strlen(folder) + strlen(name) + 2;
	char *path = mem_alloc(size);
	text_whole(path, size, "%s/%s", folder, name);
	return path;
}

const char *path_last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

bool path_is_program(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

char *path_find_program(const char *name, const char *path)
{
	size_t size = strlen(path) + strlen(name) + 3;
	char *candidate = mem_alloc(size);
	for (const char *at = path;; at++) {
		size_t len = strcspn(at, ":");
		text_whole(candidate, size, "%.*s/%s", len ? (int)len : 1, len ? at : ".", name);
		if (path_is_program(candidate)) {
			return candidate;
		}
		at += len;
		if (!*at) {
			free(candidate);
			return NULL;
		}
	}
}
