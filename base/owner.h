/* SPDX-License-Identifier: MIT */
#ifndef BASE_OWNER_H
#define BASE_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * A broker that runs as root also uses the files of another user, the owner. This is the owner of a
 * workspace, or the user who works in a confined sandbox, because a process that is root cannot be
 * confined (docs/decisions/confinement.md). A broker of an ordinary user has no such owner: all its
 * files belong to its own user.
 */
struct owner {
	bool is_other; // otherwise everything belongs to the broker
	uid_t uid;     // if is_other, neither user nor group is root's
	gid_t gid;
};

enum { OWNER_OF_ROOTS = 65533 }; // user and group for a workspace that belongs to root

/*
 * The folder's owner and the owner's main group. OWNER_OF_ROOTS if that is root or unknown.
 * `folder` NULL: the broker's working folder. May use this machine's name services.
 */
struct owner owner_find(const char *folder);

/* The same, but if the owner is root or unknown, everything belongs to the broker. */
struct owner owner_of_workspace(const char *folder);

/*
 * Until owner_leave, the calling thread uses files with the owner's permissions, and new files
 * belong to the owner. Its supplementary groups are dropped for good, because root does not need
 * them. For worker threads.
 */
bool owner_enter(const struct owner *owner, struct error *err) ATTR_NODISCARD;
void owner_leave(const struct owner *owner); // keeps errno

/*
 * openat(2) as the owner. With O_DIRECTORY the owner must also be allowed to use the folder's
 * files. Returns -1 with errno.
 */
int owner_open(const struct owner *owner, int folder, const char *path, int flags);

#endif
