/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MERGE_TEXT_H
#define SYNC_MERGE_TEXT_H

#include "sync/store.h"

/*
 * Limits for merging as text: each of three blobs may have this many bytes and lines, and no NUL.
 * The lines limit the memory of the comparison, which needs some 500 bytes per line.
 */
enum { MERGE_TEXT_BYTES_MAX = 4 << 20, MERGE_TEXT_LINES_MAX = 60000 };

struct merge_texts {
	git_oid base, local, runtime;
};

/*
 * Merges line by line. Each line keeps the bytes, including the line end, of the side that it comes
 * from. If the texts do not merge cleanly or are not text, sets *out_merged to false and nothing
 * else.
 */
bool merge_text(struct store *store, const struct merge_texts *texts, git_oid *out_id,
	bool *out_merged, struct error *err) ATTR_NODISCARD;

/* How the marker lines of merge_text_marked begin. */
#define MERGE_TEXT_BEGIN "<<<<<<< yours"
#define MERGE_TEXT_END ">>>>>>> the agent's"

/*
 * Merges line by line, and marks lines that both changed like git does (diff3). If one of them is
 * not text, sets *out_is_text to false and nothing else.
 */
bool merge_text_marked(struct store *store, const struct merge_texts *texts, git_oid *out_id,
	bool *out_is_text, struct error *err) ATTR_NODISCARD;

#endif
