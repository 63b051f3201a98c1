/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CHECKPOINT_IMPL_H
#define SYNC_CHECKPOINT_IMPL_H

#include "sync/checkpoint.h"

/* Receives the text of a diff. */
struct checkpoint_printing {
	const struct checkpoint_reader *reader;
	bool was_refused;
};

/* False once the reader has refused. */
bool checkpoint_print(struct checkpoint_printing *printing, const char *text, size_t len);

/* Whether a big file is on one side: then we only know that the two differ. */
bool checkpoint_delta_is_big(const git_diff_delta *delta);

/* Like `git diff --stat`, with names quoted by path_quote. */
bool checkpoint_print_stat(struct store *store, git_diff *diff,
	struct checkpoint_printing *printing, struct error *err) ATTR_NODISCARD;

#endif
