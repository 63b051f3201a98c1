/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/ssh/openssh.h"

static const char *const places[] = {"XDG_RUNTIME_DIR=", "TMPDIR="};

static bool make_in(struct openssh_folder *folder, const char *place)
{
	char path[OPENSSH_FOLDER_MAX];
	int len = snprintf(path, sizeof(path), "%s/acp-ssh-XXXXXX", place);
	if (place[0] != '/' || len < 0 || (size_t)len >= sizeof(path) || !mkdtemp(path)) {
		return false;
	}
	memcpy(folder->path, path, sizeof(path));
	snprintf(folder->socket, sizeof(folder->socket), "%s/s", path);
	snprintf(folder->askpass, sizeof(folder->askpass), "%s/ask", path);
	return true;
}

bool openssh_folder_make(
	struct openssh_folder *folder, const char *const *environment, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		size_t len = strlen(places[i]);
		for (const char *const *entry = environment; entry && *entry; entry++) {
			if (strncmp(*entry, places[i], len) == 0 && make_in(folder, *entry + len)) {
				return true;
			}
		}
	}
	if (make_in(folder, "/tmp")) {
		return true;
	}
	int errnum = errno;
	return error_set_errno(
		err, errnum, "making a folder for ssh's control socket in XDG_RUNTIME_DIR or /tmp");
}

/* ssh killed in the middle of making its socket has left it by another name. */
static void remove_entries(const char *path)
{
	DIR *folder = opendir(path);
	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		unlinkat(dirfd(folder), entry->d_name, 0);
	}
	if (folder) {
		closedir(folder);
	}
}

void openssh_folder_remove(struct openssh_folder *folder)
{
	if (folder->path[0]) {
		remove_entries(folder->path);
		rmdir(folder->path);
		folder->path[0] = '\0';
	}
}
