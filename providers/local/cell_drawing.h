/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_DRAWING_H
#define PROVIDERS_LOCAL_CELL_DRAWING_H

#include "base/attr.h"
#include "base/settings.h"
#include "providers/local/cell/plan.h"

/*
 * Builds the entries of a cell's plan from the keys of a profile. Earlier agents may have changed
 * any folder that some profile made writable, so a path by itself proves nothing. Each path is
 * resolved here, once. The only links it may lead through are those directly in the home folder,
 * which no cell can write. Any other link is refused, and the error names the key.
 */
struct cell_drawing {
	struct cell_entry entries[CELL_ENTRIES_MAX];
	char *said[CELL_ENTRIES_MAX]; // "key = value", owned; NULL: not from a user's key
	size_t count;
	const char *home_name;        // the value of HOME
	char *home;                   // the same folder without links; owned
	char **texts;                 // texts that entries borrow; owned
	const char *const *own_files; // borrowed from the provider's context; may be NULL
};

/* Both are borrowed. The struct is allocated because it is large. */
struct cell_drawing *cell_drawing_create(const char *home, const char *const *own_files);
void cell_drawing_destroy(struct cell_drawing *drawing); // NULL is fine

/* Makes a path in the home readable. Leaves it out if it is missing or leads through a link. */
bool cell_drawing_add_default(
	struct cell_drawing *drawing, const char *name, struct error *err) ATTR_NODISCARD;

/*
 * Adds a file or folder that the agent keeps in its home; `name` is its path there. `source` is the
 * folder to show (CELL_KEEP) or the content (CELL_PUT). Call this after the user's paths were
 * added: an entry that overlaps with one of them is left out.
 */
bool cell_drawing_add_own(struct cell_drawing *drawing, enum cell_rule rule, const char *name,
	const char *source, struct error *err) ATTR_NODISCARD;

/*
 * Makes one program executable at its own path, wherever that is: a cell hides /tmp and the home.
 * Like cell_drawing_add_own, leaves it out if it overlaps with a path of the user's.
 */
bool cell_drawing_add_program(
	struct cell_drawing *drawing, const char *program, struct error *err) ATTR_NODISCARD;

/*
 * Adds every value of a key; values are absolute or start with "~/". ERROR_CONFIG names the key and
 * the value.
 */
bool cell_drawing_add_key(struct cell_drawing *drawing, enum cell_rule rule, const char *key,
	const struct settings *settings, struct error *err) ATTR_NODISCARD;

/* Adds a socket, or leaves it out if it is missing; `said` is the user's setting, "key = value". */
bool cell_drawing_add_socket(struct cell_drawing *drawing, const char *said, const char *path,
	struct error *err) ATTR_NODISCARD;

/* Hides the broker's own folder "folder/name", which may be missing. */
bool cell_drawing_hide(struct cell_drawing *drawing, const char *folder, const char *name,
	struct error *err) ATTR_NODISCARD;

/* Hides those of own_files that exist, are no links, and lie outside of the home. */
bool cell_drawing_hide_own_files(struct cell_drawing *drawing, struct error *err) ATTR_NODISCARD;

/*
 * Call this last. Checks that no user's path contains a hidden path or one of own_files, or lies in
 * one, and that no user's path contains another one if one of them is writable. ERROR_CONFIG names
 * both.
 */
bool cell_drawing_check(const struct cell_drawing *drawing, struct error *err) ATTR_NODISCARD;

#endif
