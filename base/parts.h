/* SPDX-License-Identifier: MIT */
#ifndef BASE_PARTS_H
#define BASE_PARTS_H

#include <stddef.h>

/*
 * Lets features keep data in a struct that they do not own. Each has a part of its own type, which
 * no other code knows. A part is created, zeroed, when it is first asked for, and freed with the
 * struct. For few parts: the search is linear.
 */
struct part_type {
	size_t size;
	void (*init)(void *part); // called after creation; may be NULL
	/*
	 * Called before the part is freed: frees what it owns. `owner` is as in parts_finish. May
	 * be NULL.
	 */
	void (*finish)(void *part, void *owner);
};

struct part;

struct parts {
	struct part *first; // zeroed: none
};

/* The init of a part that is a struct list: an empty list. */
void part_init_list(void *part);

/* The address of the type identifies the part. */
void *parts_get(struct parts *parts, const struct part_type *type);
void *parts_find(const struct parts *parts, const struct part_type *type); // NULL: there is none

/* The first frees one part, if it exists; the second frees all, the newest first. */
void parts_remove(struct parts *parts, const struct part_type *type, void *owner);
void parts_finish(struct parts *parts, void *owner);

#endif
