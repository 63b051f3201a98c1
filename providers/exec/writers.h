/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_WRITERS_H
#define PROVIDERS_EXEC_WRITERS_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/span.h"

/*
 * Whether somebody besides the user and root can write a file of this machine: by its owner, its
 * mode, its POSIX access list, or a folder above it. recipe.c and the finders of recipe.h use it.
 * It knows no access lists of other kinds (NFSv4). Blocks: for the worker pool.
 */
struct writers {
	gid_t own_group; // the group of the user alone; or (gid_t)-1
};
void writers_init(struct writers *writers);

/*
 * These return NULL if nobody else can write there. Otherwise they return why not, as the end of a
 * sentence that begins with the path; static.
 */
const char *writers_of_file(const struct writers *writers, int fd); // an open file or folder
/* An entry of an open folder, which is no link. `status` is its own. */
const char *writers_of_entry(
	const struct writers *writers, int folder, const char *name, const struct stat *status);
/*
 * Whoever can write to a folder above the file can put another file there, unless the folder is
 * sticky. The path is absolute and has no links. *out_folder is set with the answer, and owned.
 */
const char *writers_above(const struct writers *writers, const char *path, char **out_folder);

/* ---- for tests ---- */

/*
 * What a POSIX access list (acl(5), as the kernel stores it) says. `user` is the user, and `group`
 * the file's.
 */
const char *writers_of_list(
	const struct writers *writers, struct span list, uid_t user, gid_t group);

/* Whether an entry of the text, as in passwd(5), gives the group to another user. */
bool writers_share_group(struct span passwd, uid_t user, gid_t group);

#endif
