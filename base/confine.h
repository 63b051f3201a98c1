/* SPDX-License-Identifier: MIT */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/owner.h"

/*
 * Paths that must stay inside a set of roots. A path is walked name by name with openat2(2), each
 * step from the descriptor of the previous folder and never through a link. Links are read and
 * walked by the same rules. So a link to a place in a root works, absolute or relative, and a link
 * to another place is refused, even if somebody swaps names meanwhile. Magic links, and everything
 * else in /proc, are refused.
 *
 * A set must not change once a worker thread uses it.
 */
struct confine_root {
	char *name; // owned; absolute, as users and agents write it
	char *real; // owned; the same folder, without links when it was added
	dev_t disk; // its device, if reads from its cache never wait (file_disk_of); else 0
};

struct confine {
	struct confine_root *roots; // owned
	size_t count;
	size_t references;  // loop thread only
	struct owner owner; // user who walks (owner_enter), except on the way to a root
};

struct confine *confine_create(void); // empty, one reference
bool confine_has(const struct confine *confine, const char *name, const char *real);
struct confine *confine_extend(const struct confine *confine, const char *name, const char *real);
struct confine *confine_without(const struct confine *confine, const char *name);
/* Sets `disk` of the root added last. */
void confine_set_disk(struct confine *confine, dev_t disk);
struct confine *confine_reference(struct confine *confine);
void confine_release(struct confine *confine); // NULL is fine

/* The root with the longest name with which the path begins, and the name's length; NULL: none. */
const struct confine_root *confine_find_root(
	const struct confine *confine, const char *path, size_t *out_len);

/* Whether a file operation may follow links, or its path must contain none. */
enum file_links { FILE_LINKS_FOLLOWED, FILE_LINKS_REFUSED };

enum confine_missing {
	CONFINE_MUST_EXIST,
	CONFINE_MAY_MISS,     // names at the end may be missing, and are kept
	CONFINE_MAKE_PARENTS, // makes folders, so that only the last name may be missing
};

/* The place to which a path leads. */
struct confined {
	char path[PATH_MAX];     // the root's name, then names without links or dots
	int parent;              // O_PATH of the folder that contains `name`; -1 if it is missing
	char name[NAME_MAX + 1]; // the last name; "" for a root itself, which is then `parent`
	bool exists;
	struct stat status; // valid if it exists
};

/*
 * Walks an absolute path. Fails with ERROR_NOT_FOUND. ERROR_DENIED with the reason
 * SECURITY_VIOLATION: the path leads out of the roots, or contains a link although links are
 * refused. When links are refused, the path must be the result of an earlier walk, and begins in
 * the longest root that matches. ERROR_LIMIT if the path is too long. Blocks; any thread. On
 * success finish the result.
 */
bool confine_walk(const struct confine *confine, const char *path, enum confine_missing missing,
	enum file_links links, struct confined *out, struct error *err) ATTR_NODISCARD;
void confined_finish(struct confined *confined);

/*
 * Opens the file that was found. Never follows a link, and does not wait for the other side of a
 * FIFO. Returns -1 with ERROR_UNAVAILABLE if the file was replaced meanwhile: then walk again.
 */
int confined_open(const struct confined *confined, int flags, struct error *err) ATTR_NODISCARD;

/* Reports that a path violates a rule of confinement; returns false. */
bool confine_refuse(struct error *err, const char *path, const char *rule);

#endif
