/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sync/checkpoint.h"

enum { STAT_WIDTH = 80, CONTEXT_LINES = 3 };

struct printing {
	checkpoint_write *write;
	void *data;
	bool was_refused;
};

static bool print(struct printing *printing, const char *text, size_t len)
{
	if (!printing->was_refused && !printing->write(printing->data, (struct span){text, len})) {
		printing->was_refused = true;
	}
	return !printing->was_refused;
}

static int on_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
	const git_diff_line *line, void *data)
{
	bool has_sign = line->origin == GIT_DIFF_LINE_CONTEXT ||
	                line->origin == GIT_DIFF_LINE_ADDITION ||
	                line->origin == GIT_DIFF_LINE_DELETION;
	return (!has_sign || print(data, &line->origin, 1)) &&
	                       print(data, line->content, line->content_len)
	               ? 0
	               : -1;
}

static bool print_patch(
	struct store *store, git_diff *diff, struct printing *printing, struct error *err)
{
	return store->git->diff_print(diff, GIT_DIFF_FORMAT_PATCH, on_line, printing) == 0 ||
	       printing->was_refused || error_set_git(store->git, err, "comparing");
}

static bool print_stat(
	struct store *store, git_diff *diff, struct printing *printing, struct error *err)
{
	git_diff_stats *stats = NULL;
	git_buf text = GIT_BUF_INIT;
	bool ok = (store->git->diff_get_stats(&stats, diff) == 0 &&
			  store->git->diff_stats_to_buf(
				  &text, stats, GIT_DIFF_STATS_FULL, STAT_WIDTH) == 0) ||
	          error_set_git(store->git, err, "comparing");
	if (ok) {
		print(printing, text.ptr, text.size);
	}
	store->git->buf_dispose(&text);
	store->git->diff_stats_free(stats);
	return ok;
}

bool checkpoint_diff(struct store *store, const git_oid *from, const git_oid *to,
	enum checkpoint_format format, checkpoint_write *write, void *data, struct error *err)
{
	struct printing printing = {.write = write, .data = data};
	git_diff_options options = {.version = GIT_DIFF_OPTIONS_VERSION,
		.ignore_submodules = GIT_SUBMODULE_IGNORE_UNSPECIFIED,
		.context_lines = CONTEXT_LINES,
		.max_size = CHECKPOINT_DIFF_MAX};
	git_tree *trees[2] = {NULL, NULL};
	git_diff *diff = NULL;
	bool ok = (store->git->tree_lookup(&trees[0], store->repository, from) == 0 &&
			  store->git->tree_lookup(&trees[1], store->repository, to) == 0 &&
			  store->git->diff_tree_to_tree(
				  &diff, store->repository, trees[0], trees[1], &options) == 0) ||
	          error_set_git(store->git, err, "comparing");
	ok = ok &&
	     (format == CHECKPOINT_PATCH ? print_patch : print_stat)(store, diff, &printing, err);
	if (ok && printing.was_refused) {
		ok = error_set(err, ERROR_UNAVAILABLE, "comparing: the reader has left");
	}
	store->git->diff_free(diff);
	store->git->tree_free(trees[0]);
	store->git->tree_free(trees[1]);
	return ok;
}
