/* SPDX-License-Identifier: MIT */
#include "sync/stuck.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

void stuck_add(struct stuck *stuck, const char *path, const char *why)
{
	if (stuck->count == STUCK_MAX) {
		return;
	}
	if ((stuck->count & (stuck->count - 1)) == 0) { // 0, and each power of two
		size_t room = stuck->count > 0 ? 2 * stuck->count : 1;
		stuck->paths = mem_realloc(stuck->paths, room * sizeof(*stuck->paths));
	}
	stuck->paths[stuck->count++] = (struct stuck_path){mem_strdup(path), why};
	stuck->is_sorted = false;
}

void stuck_finish(struct stuck *stuck)
{
	for (size_t i = 0; i < stuck->count; i++) {
		free(stuck->paths[i].path);
	}
	free(stuck->paths);
	*stuck = (struct stuck){0};
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct stuck_path *)a)->path, ((const struct stuck_path *)b)->path);
}

const char *stuck_find(struct stuck *stuck, const char *path)
{
	if (stuck->count == 0) {
		return NULL;
	}
	if (!stuck->is_sorted) {
		qsort(stuck->paths, stuck->count, sizeof(*stuck->paths), compare);
		stuck->is_sorted = true;
	}
	struct stuck_path key = {.path = (char *)path};
	const struct stuck_path *found =
		bsearch(&key, stuck->paths, stuck->count, sizeof(key), compare);
	return found ? found->why : NULL;
}

void stuck_intersect(struct stuck *out, struct stuck *a, const struct stuck *b)
{
	*out = (struct stuck){0};
	for (size_t i = 0; i < b->count; i++) {
		if (stuck_find(a, b->paths[i].path)) {
			stuck_add(out, b->paths[i].path, b->paths[i].why);
		}
	}
}
