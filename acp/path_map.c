/* SPDX-License-Identifier: MIT */
#include "acp/path_map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

void path_map_init(struct path_map *map)
{
	*map = (struct path_map){.is_identity = true};
}

void path_map_finish(struct path_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		free(map->roots[i].sides[PATH_TO_RUNTIME]);
		free(map->roots[i].sides[PATH_TO_LOCAL]);
	}
	free(map->roots);
	path_map_init(map);
}

/* Without trailing slashes; the root directory is the empty text. */
static struct span without_trailing_slashes(const char *path)
{
	struct span span = span_of(path);
	while (span.len > 0 && span.data[span.len - 1] == '/') {
		span.len--;
	}
	return span;
}

/* Its index, or map->count. */
static size_t find_root(const struct path_map *map, struct span local, struct span runtime)
{
	size_t at = 0;
	while (at < map->count &&
		!(span_is(local, map->roots[at].sides[PATH_TO_LOCAL]) &&
			span_is(runtime, map->roots[at].sides[PATH_TO_RUNTIME]))) {
		at++;
	}
	return at;
}

bool path_map_add(struct path_map *map, const char *local, const char *runtime)
{
	struct span here = without_trailing_slashes(local);
	struct span there = without_trailing_slashes(runtime);
	if (find_root(map, here, there) < map->count) {
		return true;
	}
	if (map->count == PATH_MAP_MAX) {
		return false;
	}
	map->roots = mem_realloc(map->roots, (map->count + 1) * sizeof(*map->roots));
	struct path_map_root *root = &map->roots[map->count++];
	root->sides[PATH_TO_LOCAL] = mem_strndup(here);
	root->sides[PATH_TO_RUNTIME] = mem_strndup(there);
	map->is_identity = map->is_identity && span_equals(here, there);
	return true;
}

void path_map_prefer(struct path_map *map, const char *local, const char *runtime)
{
	if (!path_map_add(map, local, runtime)) {
		return;
	}
	size_t at =
		find_root(map, without_trailing_slashes(local), without_trailing_slashes(runtime));
	struct path_map_root root = map->roots[at];
	memmove(map->roots + 1, map->roots, at * sizeof(*map->roots));
	map->roots[0] = root;
}

bool path_map_has_local(const struct path_map *map, const char *local)
{
	struct span wanted = without_trailing_slashes(local);
	for (size_t i = 0; i < map->count; i++) {
		if (span_is(wanted, map->roots[i].sides[PATH_TO_LOCAL])) {
			return true;
		}
	}
	return false;
}

static bool is_below(struct span path, struct span root)
{
	return span_starts_with(path, root) && (path.len == root.len || path.data[root.len] == '/');
}

bool path_map_find(const struct path_map *map, enum path_direction direction, struct span path,
	size_t *out_prefix, struct span *out_replacement)
{
	enum path_direction from = direction == PATH_TO_RUNTIME ? PATH_TO_LOCAL : PATH_TO_RUNTIME;
	const struct path_map_root *best = NULL;
	size_t best_len = 0;
	if (path.len == 0 || path.data[0] != '/') {
		return false;
	}
	for (size_t i = 0; i < map->count; i++) {
		struct span root = span_of(map->roots[i].sides[from]);
		if (is_below(path, root) && (!best || root.len > best_len)) {
			best = &map->roots[i];
			best_len = root.len;
		}
	}
	if (!best) {
		return false;
	}
	*out_prefix = best_len;
	*out_replacement = span_of(best->sides[direction]);
	bool is_bare = out_replacement->len == 0 && best_len == path.len;
	if (is_bare) {
		*out_replacement = SPAN_LITERAL("/");
	}
	return true;
}

char *path_map_apply(const struct path_map *map, enum path_direction direction, const char *path)
{
	size_t prefix;
	struct span with;
	if (!path_map_find(map, direction, span_of(path), &prefix, &with)) {
		return mem_strdup(path);
	}
	size_t rest = strlen(path + prefix);
	char *mapped = mem_alloc(with.len + rest + 1);
	memcpy(mapped, with.data, with.len);
	memcpy(mapped + with.len, path + prefix, rest + 1);
	return mapped;
}

/* ---- file URIs ---- */

/* Where the path of a file URI without a foreign host begins; 0 if it is no such URI. */
static size_t uri_path_at(struct span uri)
{
	static const char *const forms[] = {"file:///", "file://localhost/"};
	for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
		size_t len = strlen(forms[i]);
		if (uri.len >= len && strncasecmp(uri.data, forms[i], len) == 0) {
			return len - 1;
		}
	}
	return 0;
}

/*
 * Decodes the path of a URI; ends[i] is where byte i of the path ends in the URI. False for an
 * invalid escape, a NUL, or a query, which no local path has.
 */
static bool decode_path(struct span uri, size_t at, struct buf *path, size_t *ends)
{
	while (at < uri.len) {
		char byte = uri.data[at];
		size_t used = 1;
		if (byte == '?' || byte == '#') {
			break;
		}
		if (byte == '%') {
			int high = at + 2 < uri.len ? hex_digit(uri.data[at + 1]) : -1;
			int low = at + 2 < uri.len ? hex_digit(uri.data[at + 2]) : -1;
			if (high < 0 || low < 0) {
				return false;
			}
			byte = (char)(high * 16 + low);
			used = 3;
		}
		at += used;
		if (byte == '\0' || !buf_append(path, (struct span){&byte, 1}, NULL)) {
			return false;
		}
		ends[path->len - 1] = at;
	}
	return true;
}

/* Whether a byte needs no escape in a path (RFC 3986, section 3.3, and the slash). */
static bool stands_as_it_is(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr("-._~/!$&'()*+,;=:@", byte));
}

static bool encode_path(struct span path, struct buf *out)
{
	for (size_t i = 0; i < path.len; i++) {
		bool ok = stands_as_it_is(path.data[i])
		                  ? buf_append(out, (struct span){path.data + i, 1}, NULL)
		                  : buf_append_format(out, NULL, "%%%02X",
					    (unsigned int)(unsigned char)path.data[i]);
		if (!ok) {
			return false;
		}
	}
	return true;
}

bool path_map_find_uri(const struct path_map *map, enum path_direction direction, struct span uri,
	size_t *out_prefix, struct buf *out_replacement)
{
	size_t at = uri_path_at(uri);
	if (at == 0) {
		return false;
	}
	struct buf path;
	struct span replacement;
	size_t prefix;
	size_t *ends = mem_alloc((uri.len + 1) * sizeof(*ends));
	buf_init(&path, uri.len);
	bool found = decode_path(uri, at, &path, ends) &&
	             path_map_find(map, direction, buf_span(&path), &prefix, &replacement) &&
	             buf_append(out_replacement, (struct span){uri.data, at}, NULL) &&
	             encode_path(replacement, out_replacement);
	if (found) {
		*out_prefix = prefix == 0 ? at : ends[prefix - 1];
	}
	buf_finish(&path);
	free(ends);
	return found;
}
