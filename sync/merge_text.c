/* SPDX-License-Identifier: MIT */
#include "sync/merge_text.h"

#include "base/point.h"

enum { SIDES = 3, MARKER_SIZE = 7 };

static size_t count_lines(struct span text)
{
	size_t lines = 1;
	const char *at = text.data;
	const char *end = text.data + text.len;
	while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		lines++;
		at++;
	}
	return lines;
}

/* Reads a side; *out_is_text is false if it cannot be merged as text. */
static bool read_side(struct store *store, const git_oid *id, struct buf *out, bool *out_is_text,
	struct error *err)
{
	struct store_entry entry = {.mode = ENTRY_FILE, .id = *id};
	uint64_t size;
	if (!store_size(store, &entry, &size, err)) {
		return false;
	}
	if (size > MERGE_TEXT_BYTES_MAX) {
		*out_is_text = false;
		return true;
	}
	if (!store_read(store, id, MERGE_TEXT_BYTES_MAX, out, err)) {
		return false;
	}
	struct span text = buf_span(out);
	*out_is_text = text.len == 0 || (!memchr(text.data, '\0', text.len) &&
						count_lines(text) <= MERGE_TEXT_LINES_MAX);
	return true;
}

static git_merge_file_input input_of(const struct buf *buf)
{
	struct span text = buf_span(buf);
	return (git_merge_file_input){.version = GIT_MERGE_FILE_INPUT_VERSION,
		.ptr = text.len ? text.data : "",
		.size = text.len};
}

/* Without `options`, texts that do not merge cleanly have no result. */
static bool merge_buffers(struct store *store, const struct buf buffers[SIDES],
	const git_merge_file_options *options, git_oid *out_id, bool *out_merged, struct error *err)
{
	git_merge_file_input base = input_of(&buffers[0]);
	git_merge_file_input local = input_of(&buffers[1]);
	git_merge_file_input runtime = input_of(&buffers[2]);
	git_merge_file_result result = {0};
	if (store->git->merge_file(&result, &base, &local, &runtime, options) < 0) {
		return error_set_git(store->git, err, "merging two versions of a text");
	}
	*out_merged = result.automergeable || options;
	bool done = !*out_merged ||
	            store_put_bytes(store, (struct span){result.ptr, result.len}, out_id, err);
	store->git->merge_file_result_free(&result);
	return done;
}

static bool merge_texts(struct store *store, const struct merge_texts *texts,
	const git_merge_file_options *options, git_oid *out_id, bool *out_merged, struct error *err)
{
	const git_oid *ids[SIDES] = {&texts->base, &texts->local, &texts->runtime};
	struct buf buffers[SIDES];
	bool is_text = true;
	bool done = true;
	for (int i = 0; i < SIDES; i++) {
		buf_init(&buffers[i], MERGE_TEXT_BYTES_MAX);
		done = done && (!is_text || read_side(store, ids[i], &buffers[i], &is_text, err));
	}
	*out_merged = false;
	if (done && is_text) {
		done = merge_buffers(store, buffers, options, out_id, out_merged, err);
	}
	point("merge.texts");
	for (int i = 0; i < SIDES; i++) {
		buf_finish(&buffers[i]);
	}
	return done;
}

bool merge_text(struct store *store, const struct merge_texts *texts, git_oid *out_id,
	bool *out_merged, struct error *err)
{
	return merge_texts(store, texts, NULL, out_id, out_merged, err);
}

bool merge_text_marked(struct store *store, const struct merge_texts *texts, git_oid *out_id,
	bool *out_is_text, struct error *err)
{
	git_merge_file_options options = {.version = GIT_MERGE_FILE_OPTIONS_VERSION};
	options.our_label = &MERGE_TEXT_BEGIN[MARKER_SIZE + 1];
	options.ancestor_label = "before";
	options.their_label = &MERGE_TEXT_END[MARKER_SIZE + 1];
	options.flags = GIT_MERGE_FILE_STYLE_DIFF3;
	return merge_texts(store, texts, &options, out_id, out_is_text, err);
}
