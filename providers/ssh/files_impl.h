/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_FILES_IMPL_H
#define PROVIDERS_SSH_FILES_IMPL_H

#include <sys/stat.h>

#include "base/buf.h"
#include "providers/script_run.h"
#include "providers/ssh/files.h"

/* Shared by files.c (operations) and files_answer.c (the answers of their scripts). */
enum file_script { FILE_SCRIPT_READ, FILE_SCRIPT_WRITE, FILE_SCRIPT_STAT, FILE_SCRIPT_RESOLVE };

const char *file_script_text(enum file_script script);

enum { FILE_ANSWER_MAX = 2 * FILE_PATH_MAX }; // bytes of an answer without a file's content

/* The result of an operation; which members are set depends on the script. */
struct file_answer {
	struct stat status;
	char path[FILE_PATH_MAX];
};

/*
 * Reads all that a script wrote; `words` is the last of its stderr. After a read operation the
 * buffer has only the content.
 */
bool file_answer_read(enum file_script script, const char *path, size_t max_bytes,
	struct buf *output, const char *words, struct file_answer *out_answer,
	struct error *err) ATTR_NODISCARD;

#endif
