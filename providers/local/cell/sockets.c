/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/sockets.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/text.h"
#include "base/words.h"

enum { COLUMNS_BEFORE_PATH = 7 };

/* ---- the kernel's table ---- */

/* The socket's path in a line; empty if it has none. */
static struct span name_of(struct span line)
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

/* Removes the first line from the table. */
static struct span take_line(struct span *table)
{
	const char *end = memchr(table->data, '\n', table->len);
	struct span line = {table->data, end ? (size_t)(end - table->data) : table->len};
	size_t taken = line.len + (end ? 1 : 0);
	*table = (struct span){table->data + taken, table->len - taken};
	return line;
}

/* ---- relative paths ---- */

/* The working folders of all processes of our user, without duplicates. */
static char **find_folders(const char *proc)
{
	char **folders = NULL;
	char path[PATH_MAX], folder[PATH_MAX];
	DIR *processes = opendir(proc);
	struct dirent *entry;
	while (processes && (entry = readdir(processes))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
			!text_whole(path, sizeof(path), "%s/%s/cwd", proc, entry->d_name)) {
			continue;
		}
		ssize_t len = readlink(path, folder, sizeof(folder) - 1);
		folder[len > 0 ? len : 0] = '\0';
		if (folder[0] == '/' && !words_contain((const char *const *)folders, folder)) {
			words_append(&folders, folder);
		}
	}
	if (processes) {
		closedir(processes);
	}
	return folders;
}

static bool add(struct buf *out, const char *path, struct error *err)
{
	return buf_append(out, (struct span){path, strlen(path) + 1}, err);
}

static bool add_relative(struct buf *out, char *const *folders, struct span name, struct error *err)
{
	char path[PATH_MAX];
	struct stat status;
	for (; folders && *folders; folders++) {
		if (text_whole(path, sizeof(path), "%s/%.*s", *folders, (int)name.len, name.data) &&
			lstat(path, &status) == 0 && S_ISSOCK(status.st_mode) &&
			!add(out, path, err)) {
			return false;
		}
	}
	return true;
}

bool sockets_find(struct span table, const char *proc, struct buf *out, struct error *err)
{
	char path[PATH_MAX];
	char **folders = NULL;
	bool has_looked = false;
	bool is_done = true;
	while (table.len > 0 && is_done) {
		struct span name = name_of(take_line(&table));
		if (name.len == 0 || name.data[0] == '@' || memchr(name.data, '\0', name.len)) {
			continue;
		}
		if (name.data[0] == '/') {
			is_done =
				!text_whole(path, sizeof(path), "%.*s", (int)name.len, name.data) ||
				add(out, path, err);
			continue;
		}
		if (!has_looked) {
			folders = find_folders(proc);
			has_looked = true;
		}
		is_done = add_relative(out, folders, name, err);
	}
	words_free(folders);
	return is_done;
}
