/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_USER_FILE_H
#define BROKER_INIT_USER_FILE_H

#include <sys/stat.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/*
 * A file of the user: it is read as a whole and replaced atomically. If the path is a link, the
 * link stays, and the file to which it leads is replaced. Blocks.
 */
enum { USER_FILE_MAX = 1 << 20 }; // bytes

struct user_file {
	const char *path; // borrowed; as the user knows it
	char *target;     // owned; without links
	bool is_there;
	struct stat status; // where it is there
	struct buf content; // the same
};

/* Succeeds if the file is missing. Finish it in any case. */
bool user_file_read(struct user_file *file, const char *path, struct error *err) ATTR_NODISCARD;
void user_file_finish(struct user_file *file);

/*
 * Replaces the content; the file keeps its owner and mode. A new file can be read only by its user;
 * missing folders are created. Before the replacement, `check` judges a draft beside the file.
 * Fails, and changes nothing, if the file has changed since it was read.
 */
typedef bool user_file_check(void *data, const char *draft, struct error *err);
bool user_file_replace(const struct user_file *file, struct span content, user_file_check *check,
	void *data, struct error *err) ATTR_NODISCARD;

#endif
