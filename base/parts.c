/* SPDX-License-Identifier: MIT */
#include "base/parts.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/list.h"

struct part {
	struct part *next;
	const struct part_type *type;
	alignas(max_align_t) char content[];
};

void part_init_list(void *part)
{
	list_init(part);
}

static struct part **place_of(struct parts *parts, const struct part_type *type)
{
	struct part **place = &parts->first;
	while (*place && (*place)->type != type) {
		place = &(*place)->next;
	}
	return place;
}

void *parts_find(const struct parts *parts, const struct part_type *type)
{
	struct part *part = parts->first;
	while (part && part->type != type) {
		part = part->next;
	}
	return part ? part->content : NULL;
}

void *parts_get(struct parts *parts, const struct part_type *type)
{
	void *found = parts_find(parts, type);
	if (found) {
		return found;
	}
	struct part *part = mem_alloc_zero(sizeof(*part) + type->size);
	part->type = type;
	part->next = parts->first;
	parts->first = part;
	if (type->init) {
		type->init(part->content);
	}
	return part->content;
}

void parts_remove(struct parts *parts, const struct part_type *type, void *owner)
{
	struct part **place = place_of(parts, type);
	struct part *part = *place;
	if (part && type->finish) {
		type->finish(part->content, owner);
	}
	if (part) {
		*place = part->next;
		free(part);
	}
}

void parts_finish(struct parts *parts, void *owner)
{
	while (parts->first) {
		parts_remove(parts, parts->first->type, owner);
	}
}
