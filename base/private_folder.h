/* SPDX-License-Identifier: MIT */
#ifndef BASE_PRIVATE_FOLDER_H
#define BASE_PRIVATE_FOLDER_H

#include "base/attr.h"
#include "base/error.h"

/*
 * A folder for sockets that only this user can enter. The name of a socket must be short, so it is
 * made in XDG_RUNTIME_DIR, TMPDIR or /tmp: the first one with a short enough name.
 */
enum { PRIVATE_FOLDER_MAX = 88 };

struct private_folder {
	char path[PRIVATE_FOLDER_MAX]; // "": none
	int lock_fd;                   // held as long as the folder exists
};

/*
 * `prefix` begins the folder's name, like "acp-ssh-". Removes folders with that prefix that killed
 * programs have left there. `what` says in the error what the folder is for.
 */
bool private_folder_make(struct private_folder *folder, const char *prefix, const char *what,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* Removes the folder and the files in it. Zeroed is fine. */
void private_folder_remove(struct private_folder *folder);

#endif
