/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_FILES_IMPL_H
#define PROVIDERS_SSH_FILES_IMPL_H

#include <sys/stat.h>

#include "base/buf.h"
#include "providers/script_run.h"
#include "providers/ssh/files.h"

/* What files.c (operations) and files_answer.c (what their scripts say) share. */
enum file_script { FILE_SCRIPT_READ, FILE_SCRIPT_WRITE, FILE_SCRIPT_STAT, FILE_SCRIPT_RESOLVE };

const char *file_script_text(enum file_script script);

enum { FILE_ANSWER_MAX = 2 * FILE_PATH_MAX }; // bytes of an answer besides a file's content

/* How an operation went; what there is of it depends on the script. */
struct file_answer {
	struct stat status;
	char path[FILE_PATH_MAX];
};

/*
 * Reads what a script wrote to its end; `words` are its last ones on stderr. Of a
 * read the buffer holds the content alone afterwards.
 */
bool file_answer_read(enum file_script script, const char *path, size_t max_bytes,
	struct buf *output, const char *words, struct file_answer *out_answer,
	struct error *err) ATTR_NODISCARD;

#endif
