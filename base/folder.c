/* SPDX-License-Identifier: MIT */
#include "base/folder.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

bool folder_make(const char *path, struct error *err)
{
	char part[PATH_MAX];
	for (size_t len = 1; path[len - 1]; len++) {
		if (path[len] && path[len] != '/') {
			continue;
		}
		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		if (mkdir(part, 0700) != 0 && errno != EEXIST) {
			return error_set_errno(err, errno, "making %s", part);
		}
	}
	return true;
}
