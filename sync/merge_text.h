/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MERGE_TEXT_H
#define SYNC_MERGE_TEXT_H

#include "sync/store.h"

/*
 * What is merged as text: three blobs of up to this many bytes and lines without a NUL.
 * The lines bound the memory of the comparison, which is some 500 bytes a line.
 */
enum { MERGE_TEXT_BYTES_MAX = 4 << 20, MERGE_TEXT_LINES_MAX = 60000 };

struct merge_texts {
	git_oid base, local, runtime;
};

/*
 * Merges line by line; bytes, also of line ends, stay as the side has them that
 * a line comes from. Sets *out_merged to false, and nothing else, where the texts do not
 * merge cleanly or are none.
 */
bool merge_text(struct store *store, const struct merge_texts *texts, git_oid *out_id,
	bool *out_merged, struct error *err) ATTR_NODISCARD;

/* How the lines begin with which merge_text_marked marks a conflict. */
#define MERGE_TEXT_BEGIN "<<<<<<< yours"
#define MERGE_TEXT_END ">>>>>>> the agent's"

/*
 * Merges line by line, and marks what both have changed as git does (diff3). Sets *out_is_text to
 * false, and nothing else, where one of them is no text.
 */
bool merge_text_marked(struct store *store, const struct merge_texts *texts, git_oid *out_id,
	bool *out_is_text, struct error *err) ATTR_NODISCARD;

#endif
