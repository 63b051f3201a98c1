/* SPDX-License-Identifier: MIT */
#include "sync/rsync/ignore_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/rsync/filter.h"
#include "sync/tree_view.h"

static void read_file(struct ignore_files *files, int folder, const struct trail *trail)
{
	struct stat status;
	int fd ATTR_CLEANUP(fd_cleanup) =
		openat(folder, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || files->count == FILTER_IGNORE_FILES_MAX || fstat(fd, &status) < 0 ||
		!S_ISREG(status.st_mode) || status.st_size > FILTER_IGNORE_FILE_MAX) {
		return;
	}
	struct ignore_file file = {.folder = mem_strdup(trail->path), .depth = trail->depth};
	buf_init(&file.text, FILTER_IGNORE_FILE_MAX + 1);
	char *to = buf_reserve(&file.text, (size_t)status.st_size + 1, NULL);
	ssize_t count = read(fd, to, (size_t)status.st_size);
	buf_commit(&file.text, count > 0 ? (size_t)count : 0);
	files->items = mem_realloc(files->items, (files->count + 1) * sizeof(file));
	files->items[files->count++] = file;
}

static void read_folder(struct ignore_files *files, int at, const char *name, struct trail *trail)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		fd_close(&fd);
		return;
	}
	read_file(files, fd, trail);
	for (const struct dirent *entry; (entry = readdir(stream));) {
		const char *child = entry->d_name;
		struct stat status;
		size_t mark;
		bool is_folder = entry->d_type == DT_DIR ||
		                 (entry->d_type == DT_UNKNOWN &&
					 fstatat(fd, child, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
					 S_ISDIR(status.st_mode));
		if (is_folder && strcmp(child, ".") != 0 && strcmp(child, "..") != 0 &&
			trail_push(trail, span_of(child), &mark, NULL)) {
			read_folder(files, fd, child, trail);
			trail_pop(trail, mark);
		}
	}
	closedir(stream);
}

static int compare(const void *a, const void *b)
{
	const struct ignore_file *x = a, *y = b;
	if (x->depth != y->depth) {
		return x->depth > y->depth ? -1 : 1;
	}
	return strcmp(x->folder, y->folder);
}

void ignore_files_read(struct ignore_files *files, const char *root)
{
	struct trail *trail = mem_alloc_zero(sizeof(*trail));
	*files = (struct ignore_files){0};
	read_folder(files, AT_FDCWD, root, trail);
	free(trail);
	if (files->count > 0) {
		qsort(files->items, files->count, sizeof(files->items[0]), compare);
	}
}

void ignore_files_finish(struct ignore_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->items[i].folder);
		buf_finish(&files->items[i].text);
	}
	free(files->items);
}
