/* SPDX-License-Identifier: MIT */
#ifndef BASE_PARTS_H
#define BASE_PARTS_H

#include <stddef.h>

/*
 * What features keep in a struct that is not theirs: each has a part of its own type, which nobody
 * else knows. It is made, zeroed, when it is first asked for, and freed with the struct. For a few
 * parts: they are searched one after the other.
 */
struct part_type {
	size_t size;
	void (*init)(void *part); // when it was made; may be NULL
	/* Before it is freed: frees what it owns. `owner` is as in parts_finish. May be NULL. */
	void (*finish)(void *part, void *owner);
};

struct part;

struct parts {
	struct part *first; // zeroed: none
};

/* The init of a part that is a struct list, which begins empty. */
void part_init_list(void *part);

/* The address of the type says which one it is. */
void *parts_get(struct parts *parts, const struct part_type *type);
void *parts_find(const struct parts *parts, const struct part_type *type); // NULL: there is none

/* Frees one, if it is there; frees all, the youngest first. */
void parts_remove(struct parts *parts, const struct part_type *type, void *owner);
void parts_finish(struct parts *parts, void *owner);

#endif
