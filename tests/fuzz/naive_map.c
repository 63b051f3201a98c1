/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/naive_map.h"

#include <string.h>
#include <strings.h>

#include "tests/fuzz/fuzz.h"

static size_t length_of(const char *root)
{
	size_t len = strlen(root);
	while (len > 0 && root[len - 1] == '/') {
		len--;
	}
	return len;
}

static bool is_below(struct span path, const char *root)
{
	size_t len = length_of(root);
	return path.len >= len && memcmp(path.data, root, len) == 0 &&
	       (path.len == len || path.data[len] == '/');
}

const struct naive_root *naive_map_root(
	const struct naive_map *map, enum path_direction from, struct span path)
{
	const struct naive_root *best = NULL;
	for (size_t i = 0; i < map->count; i++) {
		const struct naive_root *root = &map->roots[i];
		if (is_below(path, root->sides[from]) &&
			(!best || length_of(root->sides[from]) > length_of(best->sides[from]))) {
			best = root;
		}
	}
	return path.len > 0 && path.data[0] == '/' ? best : NULL;
}

static void append(struct buf *out, struct span bytes)
{
	FUZZ_CHECK(buf_append(out, bytes, NULL));
}

enum path_direction naive_other(enum path_direction direction)
{
	return direction == PATH_TO_RUNTIME ? PATH_TO_LOCAL : PATH_TO_RUNTIME;
}

void naive_map_path(const struct naive_map *map, enum path_direction direction, struct span path,
	struct buf *out)
{
	enum path_direction from = naive_other(direction);
	const struct naive_root *root = naive_map_root(map, from, path);
	if (!root) {
		append(out, path);
		return;
	}
	const char *to = root->sides[direction];
	size_t used = length_of(root->sides[from]);
	append(out, (struct span){to, length_of(to)});
	append(out, (struct span){path.data + used, path.len - used});
	if (out->len == 0) {
		append(out, SPAN_LITERAL("/"));
	}
}

bool naive_uri_decode(struct span uri, struct buf *path, size_t *out_begin, size_t *out_end)
{
	static const char digits[] = "00112233445566778899aAbBcCdDeEfF";
	size_t begin = uri.len >= 8 && strncasecmp(uri.data, "file:///", 8) == 0 ? 7 : 0;
	begin = uri.len >= 17 && strncasecmp(uri.data, "file://localhost/", 17) == 0 ? 16 : begin;
	size_t at = begin;
	while (begin > 0 && at < uri.len && uri.data[at] != '?' && uri.data[at] != '#') {
		char byte = uri.data[at++];
		if (byte == '%') {
			const char *high = at < uri.len ? memchr(digits, uri.data[at], 32) : NULL;
			const char *low =
				at + 1 < uri.len ? memchr(digits, uri.data[at + 1], 32) : NULL;
			if (!high || !low) {
				return false;
			}
			byte = (char)((high - digits) / 2 * 16 + (low - digits) / 2);
			at += 2;
		}
		if (byte == '\0') {
			return false;
		}
		append(path, (struct span){&byte, 1});
	}
	*out_begin = begin;
	*out_end = at;
	return begin > 0;
}

bool naive_map_is_reversible(const struct naive_map *map, enum path_direction direction)
{
	for (size_t i = 0; i < map->count; i++) {
		const char *one = map->roots[i].sides[direction];
		if (length_of(one) == 0 ||
			length_of(map->roots[i].sides[naive_other(direction)]) == 0) {
			return false; // then slashes at the end are not the same
		}
		for (size_t j = 0; j < map->count; j++) {
			const char *two = map->roots[j].sides[direction];
			if (i != j && is_below((struct span){one, length_of(one)}, two)) {
				return false;
			}
		}
	}
	return true;
}
