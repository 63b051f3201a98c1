/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_OWNER_H
#define PROVIDERS_LOCAL_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The user of a cell that a broker makes as root, and to whom the files in the cell belong. Nothing
 * that is root can be confined (docs/decisions/confinement.md). A broker of an ordinary user has no
 * such owner: everything is its own.
 */
struct owner {
	bool is_other; // otherwise everything is the broker's own
	uid_t uid;     // never root's where it is another one; nor is the group
	gid_t gid;
};

enum { OWNER_OF_ROOTS = 65533 }; // user and group where the workspace is root's

/*
 * Who owns the folder, with the main group of that user; where that is root, or nobody knows it,
 * OWNER_OF_ROOTS. `folder` NULL: the broker's working folder. Loop thread.
 */
struct owner owner_find(const char *folder);

/*
 * The calling thread uses files as the owner until owner_leave, as far as permissions and new files
 * go. Its supplementary groups are gone for good: root needs none. For worker threads.
 */
bool owner_enter(const struct owner *owner, struct error *err) ATTR_NODISCARD;
void owner_leave(const struct owner *owner);

/*
 * Gives a folder and all in it to the owner: folders, links, and files with one name. A file with
 * several names may be another folder's, too: it stays as it is and is counted, as is all below a
 * depth of OWNER_DEPTH_MAX. By descriptors, through no link and into no other mount, whoever
 * changes the folder meanwhile. ERROR_UNAVAILABLE once cancelled. Blocks.
 */
enum { OWNER_DEPTH_MAX = 200 };
struct owner_left {
	size_t linked; // files with several names
	size_t deep;   // folders that are too deep
};
bool owner_give(const char *folder, const struct owner *owner, const atomic_bool *is_cancelled,
	struct owner_left *left, struct error *err) ATTR_NODISCARD;

/* The same of one folder, by its descriptor (O_PATH will do), and nothing in it. False with errno.
 */
bool owner_give_one(int folder, const struct owner *owner) ATTR_NODISCARD;

#endif
