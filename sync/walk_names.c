/* SPDX-License-Identifier: MIT */
#include "sync/walk_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "sync/listing.h"
#include "sync/snapshot_impl.h"

enum { NAMES_MAX = 512 << 20 };

void names_init(struct names *names)
{
	*names = (struct names){0};
	buf_init(&names->text, NAMES_MAX);
}

void names_finish(struct names *names)
{
	free(names->items);
	buf_finish(&names->text);
}

static uint8_t type_of(int folder_fd, const char *name)
{
	struct stat status;
	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		return DT_REG; // if it fails later, its own turn reports that
	}
	return (uint8_t)IFTODT(status.st_mode);
}

static bool add_name(
	struct names *names, int folder_fd, const struct dirent *entry, struct error *err)
{
	struct span name = span_of(entry->d_name);
	uint8_t type =
		entry->d_type == DT_UNKNOWN ? type_of(folder_fd, entry->d_name) : entry->d_type;
	names->has_git = names->has_git || span_is(name, ".git");
	if (!span_is(name, ".git") && snapshot_name_is_git(name)) {
		text_whole(names->spelled, sizeof(names->spelled), "%s", entry->d_name);
	}
	bool is_wanted = type == DT_REG || type == DT_DIR || type == DT_LNK;
	if (!is_wanted || span_is(name, ".") || span_is(name, "..") ||
		snapshot_name_is_left_out(name)) {
		return true;
	}
	if (names->count == names->capacity) {
		names->capacity = names->capacity * 3 / 2 + 64;
		names->items = mem_realloc(names->items, names->capacity * sizeof(names->items[0]));
	}
	names->items[names->count++] =
		(struct name){(uint32_t)names->text.len, (uint16_t)name.len, type};
	return buf_append(&names->text, (struct span){name.data, name.len + 1}, err);
}

static int compare_names(const void *a, const void *b, void *text)
{
	const struct name *first = a;
	const struct name *second = b;
	return listing_compare_names((const char *)text + first->at, first->type == DT_DIR,
		(const char *)text + second->at, second->type == DT_DIR);
}

bool names_read(struct names *names, int folder_fd, struct error *err)
{
	int fd = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int errnum = errno;
		fd_close(&fd);
		return error_set_errno(err, errnum, "reading a directory");
	}
	names->count = 0;
	names->has_git = false;
	names->spelled[0] = '\0';
	buf_clear(&names->text);
	bool good = true;
	struct dirent *entry;
	while (errno = 0, good && (entry = readdir(stream))) {
		good = add_name(names, folder_fd, entry, err);
	}
	if (good && errno != 0) {
		good = error_set_errno(err, errno, "reading a directory");
	}
	closedir(stream);
	if (good && names->count > 0) {
		qsort_r(names->items, names->count, sizeof(names->items[0]), compare_names,
			names->text.data + names->text.head);
	}
	return good;
}
