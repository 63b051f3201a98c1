/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_OWNER_H
#define PROVIDERS_LOCAL_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/owner.h"

/*
 * Gives a folder and everything in it to the owner: folders, links, and files with one name. A file
 * with several names may also belong to another folder, so it is skipped and counted; so is
 * everything deeper than OWNER_DEPTH_MAX. Works on descriptors, so it follows no link and enters no
 * other mount even if somebody changes the folder meanwhile. ERROR_UNAVAILABLE once cancelled.
 * Blocks.
 */
enum { OWNER_DEPTH_MAX = 200 };
struct owner_left {
	size_t linked; // files with several names
	size_t deep;   // folders that are too deep
};
bool owner_give(const char *folder, const struct owner *owner, const atomic_bool *is_cancelled,
	struct owner_left *left, struct error *err) ATTR_NODISCARD;

/* The same for the folder alone, by its descriptor (O_PATH will do). Returns false with errno. */
bool owner_give_one(int folder, const struct owner *owner) ATTR_NODISCARD;

#endif
