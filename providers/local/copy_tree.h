/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_TREE_H
#define PROVIDERS_LOCAL_COPY_TREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/owner.h"

/*
 * Copies the files that git ignores in the folder `from`, and all .gitignore files, to the existing
 * folder `to`. Existing files there stay. `own` is a folder beside `to` that this function makes,
 * uses and removes; copy_lock.h ensures that only one copy uses it. `home` is where the user's own
 * ignore rules are, or NULL. Follows no link on either side. Keeps modes and times. Leaves out
 * FIFOs, sockets and devices, and files that `owner` cannot read. ERROR_UNAVAILABLE once cancelled.
 * Blocks.
 */
struct ignored_copy {
	const char *from, *to, *own, *home;
	struct owner owner;    // reads the files; base/owner.h
	size_t *out_forbidden; // number of files and folders that the owner may not read
	const atomic_bool *is_cancelled;
};
bool copy_ignored(const struct ignored_copy *copy, struct error *err) ATTR_NODISCARD;

#endif
