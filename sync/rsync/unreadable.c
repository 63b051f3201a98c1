/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path_quote.h"
#include "base/words.h"
#include "sync/git/trees.h"
#include "sync/rsync/rsync.h"

enum { ANSWER_MAX = 64 << 10, UNREADABLE_MAX = 1000 };

/* ---- finding ---- */

static bool take_path(struct rsync_transport *rsync, const char *path, struct error *err)
{
	const char *root = rsync->request.runtime_root;
	if (strncmp(path, "./", 2) != 0) {
		return error_set(err, ERROR_SYSTEM, "syncing %s: it cannot be read", root);
	}
	if (words_count(rsync->unreadable) == UNREADABLE_MAX) {
		return error_set(err, ERROR_LIMIT,
			"syncing %s: more than %d files there cannot be read: exclude their folder",
			root, UNREADABLE_MAX);
	}
	words_append(&rsync->unreadable, path + 2);
	return true;
}

static bool work_take(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct buf answer;
	buf_init(&answer, ANSWER_MAX);
	error_set(err, ERROR_SYSTEM, "syncing %s: looking for unreadable files failed",
		rsync->request.runtime_root);
	bool is_good = rsync_read_answer(ends, &answer, err) &&
	               buf_append(&answer, SPAN_LITERAL("\0"), err);
	struct span left = buf_span(&answer);
	words_free(rsync->unreadable);
	rsync->unreadable = NULL;
	while (is_good && left.len > 1) {
		size_t length = strlen(left.data) + 1;
		is_good = take_path(rsync, left.data, err);
		left = (struct span){left.data + length, left.len - length};
	}
	buf_finish(&answer);
	return is_good;
}

void rsync_find_unreadable(struct rsync_transport *rsync, rsync_then *then)
{
	const char *argv[] = {"sh", "-c", rsync_unreadable_script, "acp-broker-sync",
		rsync->request.runtime_root, NULL};
	rsync_script(rsync, argv, work_take, then);
}

/* ---- paths that may not be replaced ---- */

static bool is_at_or_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

/* An unreadable path that prevents replacing this one; NULL if nothing does. */
static const char *find_closed(const struct rsync_transport *rsync, const char *path)
{
	char **closed = rsync->unreadable;
	while (*closed && !is_at_or_below(path, *closed) && !is_at_or_below(*closed, path)) {
		closed++;
	}
	return *closed;
}

static bool check(void *data, const struct tree_change *change, struct error *err)
{
	struct rsync_transport *rsync = data;
	if (find_closed(rsync, change->path)) {
		stuck_add(
			&rsync->delivering.stuck, change->path, "it cannot be read in the sandbox");
	}
	return true;
}

bool rsync_check_readable(
	struct rsync_transport *rsync, const git_oid *from, const git_oid *to, struct error *err)
{
	const struct stuck *stuck = &rsync->delivering.stuck;
	if (!rsync->unreadable) {
		return true;
	}
	if (!trees_compare(&rsync->store, from, to, check, rsync, err)) {
		return false;
	}
	if (stuck->count == 0) {
		return true;
	}
	char *text = path_quote(span_of(find_closed(rsync, stuck->paths[0].path)));
	rsync->delivering.result.is_lasting = true;
	error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED",
		"delivering to %s: %s cannot be read there, and was changed here: make it "
		"readable there",
		rsync->request.runtime_root, text);
	free(text);
	return false;
}
