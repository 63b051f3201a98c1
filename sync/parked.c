/* SPDX-License-Identifier: MIT */
#include "sync/parked.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

bool parked_is_name(struct span name)
{
	struct span suffix = SPAN_LITERAL(PARKED_SUFFIX);
	return name.len >= suffix.len &&
	       memcmp(name.data + name.len - suffix.len, suffix.data, suffix.len) == 0;
}

char *parked_path(const struct conflict *conflict, const char *stamp)
{
	char end[NAME_MAX / 2];
	const unsigned char *id = conflict->runtime.id.id;
	int end_len = snprintf(end, sizeof(end), ".%.64s-%02x%02x%02x%s", stamp, id[0], id[1],
		id[2], PARKED_SUFFIX);
	const char *slash = strrchr(conflict->path, '/');
	size_t folder_len = slash ? (size_t)(slash + 1 - conflict->path) : 0;
	struct span name = span_of(conflict->path + folder_len);
	if (name.len + (size_t)end_len > NAME_MAX) {
		name.len = NAME_MAX - (size_t)end_len;
		name.len = utf8_whole_length(name);
	}
	size_t size = folder_len + name.len + (size_t)end_len + 1;
	char *path = mem_alloc(size);
	snprintf(path, size, "%.*s%.*s%s", (int)folder_len, conflict->path, (int)name.len,
		name.data, end);
	return path;
}
