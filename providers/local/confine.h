/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CONFINE_H
#define PROVIDERS_LOCAL_CONFINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/impl.h"
#include "providers/local/owner.h"

/*
 * Paths held inside a set of roots. A path is walked name by name with
 * openat2(2), each step from the descriptor of the folder before it and never
 * through a link; links are read and walked by the same rules, so that one
 * that points into a root works, absolute or relative, and one that points out
 * is refused - also when somebody swaps names while we walk. Magic links, and
 * everything else in /proc, are refused.
 *
 * A set does not change once it is shared with a worker thread.
 */
struct confine_root {
	char *name; // owned; absolute, as users and agents spell it
	char *real; // owned; the same folder without links when it was added
};

struct confine {
	struct confine_root *roots; // owned
	size_t count;
	size_t references;  // loop thread only
	struct owner owner; // who walks, having entered (owner_enter); not the way to a root
};

struct confine *confine_create(void); // empty, one reference
bool confine_has(const struct confine *confine, const char *name, const char *real);
struct confine *confine_extend(const struct confine *confine, const char *name, const char *real);
struct confine *confine_reference(struct confine *confine);
void confine_release(struct confine *confine); // NULL is fine

/* The root with the longest name that the path begins with, and that length; NULL: none. */
const struct confine_root *confine_find_root(
	const struct confine *confine, const char *path, size_t *out_len);

enum confine_missing {
	CONFINE_MUST_EXIST,
	CONFINE_MAY_MISS,     // names at the end that do not exist are kept
	CONFINE_MAKE_PARENTS, // folders are made, so that only the last name may be missing
};

/* Where a path leads. */
struct confined {
	char path[PATH_MAX];     // root's name, then names without links or dots
	int parent;              // O_PATH of the folder that holds `name`; -1 where that is missing
	char name[NAME_MAX + 1]; // the last name; "" for a root itself, whose folder is `parent`
	bool exists;
	struct stat status; // valid if it exists
};

/*
 * Walks an absolute path. ERROR_NOT_FOUND; ERROR_DENIED with reason
 * SECURITY_VIOLATION for a way out of the roots, and for a link where links are
 * refused: then the path is taken as one that a walk has given, from the longest
 * root whose name it begins with. ERROR_LIMIT for one too long. Blocks; any
 * thread. On success the result is to be finished.
 */
bool confine_walk(const struct confine *confine, const char *path, enum confine_missing missing,
	enum file_links links, struct confined *out, struct error *err) ATTR_NODISCARD;
void confined_finish(struct confined *confined);

/*
 * Opens what was found, never through a link and without waiting for a FIFO's
 * other side. -1 with ERROR_UNAVAILABLE where it was swapped since: walk again.
 */
int confined_open(const struct confined *confined, int flags, struct error *err) ATTR_NODISCARD;

/* Says that a path breaks a rule of confinement; returns false. */
bool confine_refuse(struct error *err, const char *path, const char *rule);

#endif
