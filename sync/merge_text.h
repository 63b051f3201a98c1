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

#endif
