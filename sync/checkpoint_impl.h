/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CHECKPOINT_IMPL_H
#define SYNC_CHECKPOINT_IMPL_H

#include "sync/checkpoint.h"

/* Where the text of a diff goes. */
struct checkpoint_printing {
	const struct checkpoint_reader *reader;
	bool was_refused;
};

/* False once the reader has refused. */
bool checkpoint_print(struct checkpoint_printing *printing, const char *text, size_t len);

/* Whether a big file is on one side of it: only that it differs is known. */
bool checkpoint_delta_is_big(const git_diff_delta *delta);

/* As `git diff --stat`, names quoted as path_quote does. */
bool checkpoint_print_stat(struct store *store, git_diff *diff,
	struct checkpoint_printing *printing, struct error *err) ATTR_NODISCARD;

#endif
