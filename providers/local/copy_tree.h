/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_TREE_H
#define PROVIDERS_LOCAL_COPY_TREE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Copies what git would ignore in the folder `from`, and all .gitignore files, to the folder `to`,
 * which is there. What is there already stays. `own` is a folder beside that, which is made,
 * used and removed: one copy at a time has it (copy_lock.h). `home` is where the user's own
 * ignore rules are, or NULL. Follows no link on either side. Modes and times are kept, FIFOs,
 * sockets and devices left out, and so is what cannot be read. ERROR_UNAVAILABLE once cancelled.
 * Blocks.
 */
struct ignored_copy {
	const char *from, *to, *own, *home;
	const atomic_bool *is_cancelled;
};
bool copy_ignored(const struct ignored_copy *copy, struct error *err) ATTR_NODISCARD;

/*
 * Removes a folder and all in it, or what else has that name; one that is not there is no error.
 * Follows no link below the path's last name, nor that, whatever is changed meanwhile. Blocks.
 */
bool remove_folder(const char *path, struct error *err) ATTR_NODISCARD;

#endif
