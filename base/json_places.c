/* SPDX-License-Identifier: MIT */
#include "base/json_check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_check_impl.h"
#include "base/buf.h"

struct json_places {
	struct json_place_node *root;
	unsigned int keep_count;
};

static struct json_place_node *node_create(struct span name)
{
	assert(name.len <= JSON_NAME_MAX);
	struct json_place_node *node = mem_alloc_zero(sizeof(*node));
	node->place = -1;
	node->name_len = name.len;
	if (name.len > 0) {
		memcpy(node->name, name.data, name.len);
	}
	return node;
}

/* The path's depth limits the recursion. */
static void node_destroy(struct json_place_node *node)
{
	if (!node) {
		return;
	}
	struct json_place_node *member = node->members;
	while (member) {
		struct json_place_node *next = member->next;
		node_destroy(member);
		member = next;
	}
	node_destroy(node->element);
	free(node);
}

static bool is_named(const struct json_place_node *node, const char *name)
{
	return memcmp(node->name, name, node->name_len) == 0 ||
	       ((node->flags & JSON_PLACE_ANY_CASE) &&
		       strncasecmp(node->name, name, node->name_len) == 0);
}

static struct json_place_node *find_member(
	const struct json_place_node *object, const char *name, size_t len)
{
	for (struct json_place_node *node = object->members; node; node = node->next) {
		if (node->name_len == len && is_named(node, name)) {
			return node;
		}
	}
	return NULL;
}

const struct json_place_node *json_places_member(
	const struct json_place_node *object, const char *name, size_t len)
{
	if ((object->name_lengths >> len & 1) == 0) {
		return NULL;
	}
	return find_member(object, name, len);
}

static struct json_place_node *step_to_member(struct json_place_node *object, struct span name)
{
	struct json_place_node *node = find_member(object, name.data, name.len);
	if (!node) {
		node = node_create(name);
		struct json_place_node **last = &object->members;
		while (*last) {
			last = &(*last)->next;
		}
		*last = node;
		object->name_lengths |= UINT64_C(1) << name.len;
	}
	return node;
}

static struct json_place_node *step_to_element(struct json_place_node *array)
{
	if (!array->element) {
		array->element = node_create((struct span){0});
	}
	return array->element;
}

static void add_place(struct json_places *places, const struct json_place *place)
{
	struct json_place_node *node = places->root;
	const char *path = place->path;
	unsigned int steps = 0;
	while (*path != '\0') {
		if (strncmp(path, "[]", 2) == 0) {
			node = step_to_element(node);
			path += 2;
		} else {
			size_t len = strcspn(path, ".[");
			assert(len > 0);
			node = step_to_member(node, (struct span){path, len});
			path += len;
		}
		steps++;
		if (*path == '.') {
			path++;
			assert(*path != '\0');
		}
	}
	assert(steps <= JSON_PLACE_DEPTH);
	assert(place->id >= 0 && place->id < JSON_PLACE_IDS);
	assert(node->place < 0); // only one place per path
	node->place = place->id;
	node->flags = place->flags;
	places->keep_count += (place->flags & JSON_PLACE_KEEP) ? 1 : 0;
	assert(places->keep_count <= JSON_KEEP_PLACES);
}

struct json_places *json_places_create(const struct json_place *table, size_t count)
{
	struct json_places *places = mem_alloc_zero(sizeof(*places));
	places->root = node_create((struct span){0});
	for (size_t i = 0; i < count; i++) {
		add_place(places, &table[i]);
	}
	return places;
}

void json_places_destroy(struct json_places *places)
{
	if (places) {
		node_destroy(places->root);
		free(places);
	}
}

const struct json_place_node *json_places_root(const struct json_places *places)
{
	return places ? places->root : NULL;
}
