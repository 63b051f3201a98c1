/* SPDX-License-Identifier: MIT */
#include "base/folder.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

bool folder_make(const char *path, struct error *err)
{
	char part[PATH_MAX];
	if (strlen(path) >= sizeof(part)) {
		return error_set_errno(err, ENAMETOOLONG, "making %s", path);
	}
	for (size_t len = 1; path[len - 1]; len++) {
		if (path[len] && path[len] != '/') {
			continue;
		}
		text_whole(part, sizeof(part), "%.*s", (int)len, path);
		if (mkdir(part, 0700) != 0 && errno != EEXIST) {
			return error_set_errno(err, errno, "making %s", part);
		}
	}
	return true;
}

bool folder_make_state(const char *path, struct error *err)
{
	struct error why;
	return folder_make(path, &why) ||
	       error_set(err, why.code,
		       "%s: the broker keeps its state there; XDG_STATE_HOME names another place",
		       why.text);
}
