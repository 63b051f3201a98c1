/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_DRAWING_H
#define PROVIDERS_LOCAL_CELL_DRAWING_H

#include "base/attr.h"
#include "base/settings.h"
#include "providers/local/cell/plan.h"

/*
 * The entries of a cell's plan, from what a profile's keys name. An agent of an earlier sandbox may
 * have written into each folder that some profile lets it write, so a name proves nothing: each
 * path is resolved here, once, through no link but one that lies in the home folder itself, which
 * no cell can write. The rest is refused with the key that names it.
 */
struct cell_drawing {
	struct cell_entry entries[CELL_ENTRIES_MAX];
	char *said[CELL_ENTRIES_MAX]; // "key = value", owned; NULL: no user says it
	size_t count;
	const char *home_name; // as HOME says
	char *home;            // the same without links, owned
	char **texts;          // that entries borrow, owned
};

/* `home` is borrowed. Allocated, since it is large. */
struct cell_drawing *cell_drawing_create(const char *home);
void cell_drawing_destroy(struct cell_drawing *drawing); // NULL is fine

/* A path in the home that can be read; left out where it is missing or leads through links. */
bool cell_drawing_add_default(
	struct cell_drawing *drawing, const char *name, struct error *err) ATTR_NODISCARD;

/*
 * What an agent keeps in its home, by its path there: CELL_KEEP with the folder that is shown, or
 * CELL_PUT with the content. After the user's paths: left out where it overlaps with one.
 */
bool cell_drawing_add_own(struct cell_drawing *drawing, enum cell_rule rule, const char *name,
	const char *source, struct error *err) ATTR_NODISCARD;

/* Every value of a key, absolute or below "~/". ERROR_CONFIG names the key and the value. */
bool cell_drawing_add_key(struct cell_drawing *drawing, enum cell_rule rule, const char *key,
	const struct settings *settings, struct error *err) ATTR_NODISCARD;

/* One socket; `said` is what a user says, "key = value". Left out where it is missing. */
bool cell_drawing_add_socket(struct cell_drawing *drawing, const char *said, const char *path,
	struct error *err) ATTR_NODISCARD;

/* The broker's own folder "folder/name". It may be missing. */
bool cell_drawing_hide(struct cell_drawing *drawing, const char *folder, const char *name,
	struct error *err) ATTR_NODISCARD;

/*
 * Last: no user's path contains a hidden one or lies in it, and none contains another one if one of
 * the two is writable. ERROR_CONFIG names both.
 */
bool cell_drawing_check(const struct cell_drawing *drawing, struct error *err) ATTR_NODISCARD;

#endif
