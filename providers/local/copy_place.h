/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_PLACE_H
#define PROVIDERS_LOCAL_COPY_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/local/copy_home.h"
#include "providers/local/owner.h"
#include "providers/provider.h"

/*
 * Where the copy of a workspace lies below the profile's folder: HOME/HASH/NAME. A file beside it
 * names the workspace. If the workspace is a part of a repository, the copy is
 * HOME/HASH/REPOSITORY/WAY/NAME, which leaves a place for the repository above it; a file records
 * this, and copies that were made before this rule stay in place. All functions may block for a few
 * system calls.
 */
struct copy_place {
	char folder[PATH_MAX];  // HOME/HASH: everything of one workspace
	char runtime[PATH_MAX]; // the root; its last part is the workspace's name
	char place[PATH_MAX];   // this file exists if the copy lies deeper: REPOSITORY/WAY/NAME
	size_t top; // as in struct sandbox_root: length of HOME/HASH/NAME or HOME/HASH/REPOSITORY
	char made[PATH_MAX]; // this file exists once the first copy is made; holds the workspace's
	                     // path
};

bool copy_put_path(char path[PATH_MAX], struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4);
bool copy_place_of(struct copy_place *place, const char *home, const char *real,
	struct error *err) ATTR_NODISCARD;
/* Makes the folder, decides where the root lies in it, and makes the root. */
bool copy_place_make(struct copy_place *place, const char *home, const char *real,
	struct error *err) ATTR_NODISCARD;
/* Gives the folder and the folders down to the root to the owner, but nothing in the root. */
bool copy_place_give(const struct copy_place *place, const struct owner *owner,
	struct error *err) ATTR_NODISCARD;
bool copy_mark_made(const struct copy_place *place, const char *real, struct error *err);

enum { COPY_KNOWN_MAX = 256 }; // copies that are reported; others are found when they are opened

/*
 * The profile's existing copies, of all sessions, as an array of *out_count. The caller owns the
 * array and its texts. NULL: none.
 */
struct sandbox_root *copy_known(const struct copy_home *home, size_t *out_count);

/*
 * Makes the folder in which the agent starts, if it is missing, and holds it with a shared lock
 * until copy_start_end. Returns its descriptor, or -1 if it cannot be used; then the agent starts
 * elsewhere.
 */
int copy_start(const char *home, const char *directory, struct copy_place *out_place);

/* Releases the folder. Removes it if no session works in it and nobody else holds it. */
void copy_start_end(int fd, const char *home, const struct copy_place *place);

/*
 * Removes the copy and the files beside it. If another broker's agent started in the folder, the
 * empty folder stays until that broker calls copy_start_end. `held` is the descriptor of
 * copy_start, whose lock is released, or -1. Blocks.
 */
bool copy_place_remove(const struct sandbox_root *root, int held, struct error *err) ATTR_NODISCARD;

/* Refuses a workspace that contains the folder of the copies: its copy would contain itself. */
bool copy_check_outside(const char *home, const char *real, struct error *err);

#endif
