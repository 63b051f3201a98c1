/* SPDX-License-Identifier: MIT */
#include "providers/runner/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

static char type_of(int folder, const char *name)
{
	struct stat status;
	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
		return 'o';
	}
	return S_ISREG(status.st_mode)   ? 'f'
	       : S_ISDIR(status.st_mode) ? 'd'
	       : S_ISLNK(status.st_mode) ? 'l'
	                                 : 'o';
}

static bool add_entry(DIR *folder, const char *name, struct buf *out, struct error *err)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		return true;
	}
	char type = type_of(dirfd(folder), name);
	return buf_append(out, (struct span){&type, 1}, err) &&
	       buf_append(out, (struct span){name, strlen(name) + 1}, err);
}

static bool add_entries(DIR *folder, const char *path, struct buf *out, struct error *err)
{
	const struct dirent *entry;
	errno = 0;
	while ((entry = readdir(folder)) != NULL) { // NOLINT(concurrency-mt-unsafe): its own folder
		if (!add_entry(folder, entry->d_name, out, err)) {
			return error_prefix(err, "listing %s", path);
		}
		errno = 0;
	}
	int errnum = errno;
	return errnum == 0 || error_set_errno(err, errnum, "listing %s", path);
}

bool list_folder(
	const struct confine *confine, const char *path, struct buf *out, struct error *err)
{
	struct confined found;
	if (!confine_walk(confine, path, CONFINE_MUST_EXIST, FILE_LINKS_FOLLOWED, &found, err)) {
		return false;
	}
	int fd = confined_open(&found, O_RDONLY | O_DIRECTORY, err);
	confined_finish(&found);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (!folder) {
		int errnum = errno;
		bool is_open = fd >= 0;
		fd_close(&fd);
		return is_open ? error_set_errno(err, errnum, "listing %s", path) : false;
	}
	bool is_whole = add_entries(folder, path, out, err);
	closedir(folder);
	return is_whole;
}
