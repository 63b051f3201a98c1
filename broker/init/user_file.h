/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_USER_FILE_H
#define BROKER_INIT_USER_FILE_H

#include <sys/stat.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/*
 * A file that is the user's: read whole, and replaced at once or not at all. A link stays a link:
 * the file that it leads to is replaced. Blocks.
 */
enum { USER_FILE_MAX = 1 << 20 }; // bytes

struct user_file {
	const char *path; // borrowed; as the user knows it
	char *target;     // owned; without links
	bool is_there;
	struct stat status; // where it is there
	struct buf content; // the same
};

/* A file that is missing is no failure. Finish it in any case. */
bool user_file_read(struct user_file *file, const char *path, struct error *err) ATTR_NODISCARD;
void user_file_finish(struct user_file *file);

/*
 * Puts a new content in its place, with the owner and the mode of the old file; a new file is its
 * user's alone, and missing folders are made. Before that, `check` judges a draft that lies beside
 * it. Fails, and changes nothing, where the file is no longer the one that was read.
 */
typedef bool user_file_check(void *data, const char *draft, struct error *err);
bool user_file_replace(const struct user_file *file, struct span content, user_file_check *check,
	void *data, struct error *err) ATTR_NODISCARD;

#endif
