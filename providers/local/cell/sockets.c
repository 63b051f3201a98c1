/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/sockets.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"

enum { COLUMNS_BEFORE_PATH = 7 };

/* The path of a line, empty where it has none. */
static struct span path_of(struct span line)
{
	size_t at = 0;
	for (int column = 0; column < COLUMNS_BEFORE_PATH; column++) {
		while (at < line.len && line.data[at] == ' ') {
			at++;
		}
		while (at < line.len && line.data[at] != ' ') {
			at++;
		}
	}
	at = at < line.len ? at + 1 : at;
	return (struct span){line.data + at, line.len - at};
}

bool sockets_for_each(struct span table, bool (*each)(void *data, const char *path), void *data)
{
	char path[PATH_MAX];
	while (table.len > 0) {
		const char *end = memchr(table.data, '\n', table.len);
		size_t len = end ? (size_t)(end - table.data) : table.len;
		struct span name = path_of((struct span){table.data, len});
		if (name.len > 0 && name.data[0] == '/' &&
			text_whole(path, sizeof(path), "%.*s", (int)name.len, name.data) &&
			!each(data, path)) {
			return false;
		}
		len += end ? 1 : 0;
		table = (struct span){table.data + len, table.len - len};
	}
	return true;
}
