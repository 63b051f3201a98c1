/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_PLACE_H
#define PROVIDERS_LOCAL_COPY_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/local/owner.h"
#include "providers/provider.h"

/*
 * Where the copy of a workspace lies below the profile's folder: HOME/HASH/NAME, with a file beside
 * it that says whose it is. That of a part of a repository is HOME/HASH/REPOSITORY/WAY/NAME, so
 * that the repository has a place above it; a file says so, and a copy that was made before stays
 * where it is. All of this may block for as long as a few system calls do.
 */
struct copy_place {
	char folder[PATH_MAX];  // HOME/HASH: what belongs to one workspace
	char runtime[PATH_MAX]; // the root: it keeps the workspace's name
	char place[PATH_MAX];   // is there where it lies deeper: REPOSITORY/WAY/NAME
	size_t top;             // as of struct sandbox_root: HOME/HASH/NAME, or /REPOSITORY
	char made[PATH_MAX];    // is there once the first copy is; holds the workspace's path
};

bool copy_put_path(char path[PATH_MAX], struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4);
bool copy_place_of(struct copy_place *place, const char *home, const char *real,
	struct error *err) ATTR_NODISCARD;
/* The same once the folder is there, and makes the root in it: where that is, is decided now. */
bool copy_place_make(struct copy_place *place, const char *home, const char *real,
	struct error *err) ATTR_NODISCARD;
/* Gives the folder and the way to the root to somebody, and nothing that is in the root. */
bool copy_place_give(const struct copy_place *place, const struct owner *owner,
	struct error *err) ATTR_NODISCARD;
bool copy_mark_made(const struct copy_place *place, const char *real, struct error *err);

enum { COPY_KNOWN_MAX = 256 }; // copies that are told; the rest is found once it is opened

/* The copies that are there: an array of *out_count, the caller's with its texts; or NULL. */
struct sandbox_root *copy_known(const char *home, size_t *out_count);

/*
 * The folder in which the agent starts, made where it is missing, and held (a shared lock) until
 * copy_start_end. The descriptor, or -1: it is not to be had, and the agent starts elsewhere.
 */
int copy_start(const char *home, const char *directory, struct copy_place *out_place);

/* Lets go of it, and removes it where no session has come to work in it and nobody else has it. */
void copy_start_end(int fd, const char *home, const struct copy_place *place);

/*
 * Removes the copy with all that lies beside it. Where another broker's agent has been started in
 * it the folder itself stays, empty, and that broker's copy_start_end removes it. `held` is what
 * copy_start gave for it, which loses its lock, or -1. Blocks.
 */
bool copy_place_remove(const struct sandbox_root *root, int held, struct error *err) ATTR_NODISCARD;

/* A copy of what the copies lie in would have no end. */
bool copy_check_outside(const char *home, const char *real, struct error *err);

#endif
