/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sync/checkpoint_impl.h"

enum { CONTEXT_LINES = 3 };

bool checkpoint_print(struct checkpoint_printing *printing, const char *text, size_t len)
{
	if (!printing->was_refused &&
		!printing->reader->read(printing->reader->data, (struct span){text, len})) {
		printing->was_refused = true;
	}
	return !printing->was_refused;
}

bool checkpoint_delta_is_big(const git_diff_delta *delta)
{
	return delta->old_file.mode == GIT_FILEMODE_COMMIT ||
	       delta->new_file.mode == GIT_FILEMODE_COMMIT;
}

static int on_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
	const git_diff_line *line, void *data)
{
	static const char big[] = "Big files differ\n";
	bool has_sign = line->origin == GIT_DIFF_LINE_CONTEXT ||
	                line->origin == GIT_DIFF_LINE_ADDITION ||
	                line->origin == GIT_DIFF_LINE_DELETION;
	if (checkpoint_delta_is_big(delta) && line->origin != GIT_DIFF_LINE_FILE_HDR) {
		bool is_first = line->origin == GIT_DIFF_LINE_HUNK_HDR;
		return !is_first || checkpoint_print(data, big, strlen(big)) ? 0 : -1;
	}
	return (!has_sign || checkpoint_print(data, &line->origin, 1)) &&
	                       checkpoint_print(data, line->content, line->content_len)
	               ? 0
	               : -1;
}

static bool print_patch(struct store *store, git_diff *diff, struct checkpoint_printing *printing,
	struct error *err)
{
	return store->git->diff_print(diff, GIT_DIFF_FORMAT_PATCH, on_line, printing) == 0 ||
	       printing->was_refused || error_set_git(store->git, err, "comparing");
}

/* Begins to compare two trees; the caller frees the result. NULL: err says why. */
static git_diff *compare(
	struct store *store, const git_oid *from, const git_oid *to, struct error *err)
{
	git_diff_options options = {.version = GIT_DIFF_OPTIONS_VERSION,
		.ignore_submodules = GIT_SUBMODULE_IGNORE_UNSPECIFIED,
		.context_lines = CONTEXT_LINES,
		.max_size = CHECKPOINT_DIFF_MAX};
	git_tree *trees[2] = {NULL, NULL};
	git_diff *diff = NULL;
	if (store->git->tree_lookup(&trees[0], store->repository, from) < 0 ||
		store->git->tree_lookup(&trees[1], store->repository, to) < 0 ||
		store->git->diff_tree_to_tree(
			&diff, store->repository, trees[0], trees[1], &options) < 0) {
		error_set_git(store->git, err, "comparing");
	}
	store->git->tree_free(trees[0]);
	store->git->tree_free(trees[1]);
	return diff;
}

bool checkpoint_diff(struct store *store, const git_oid *from, const git_oid *to,
	enum checkpoint_format format, const struct checkpoint_reader *reader, struct error *err)
{
	struct checkpoint_printing printing = {.reader = reader};
	git_diff *diff = compare(store, from, to, err);
	if (!diff) {
		return false;
	}
	bool ok = (format == CHECKPOINT_PATCH ? print_patch : checkpoint_print_stat)(
		store, diff, &printing, err);
	if (ok && printing.was_refused) {
		ok = error_set(err, ERROR_UNAVAILABLE, "comparing: the reader has left");
	}
	store->git->diff_free(diff);
	return ok;
}

bool checkpoint_count_changed(struct store *store, const git_oid *from, const git_oid *to,
	size_t *out_files, struct error *err)
{
	git_diff *diff = compare(store, from, to, err);
	if (!diff) {
		return false;
	}
	*out_files = store->git->diff_num_deltas(diff);
	store->git->diff_free(diff);
	return true;
}
