/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/rsync/rsync.h"
#include "sync/snapshot.h"

/* The ignore rules may change with the pulled files, and files may come and go meanwhile. */
enum { PULLS_MAX = 4 };

static void collect_end(struct rsync_transport *rsync, const struct error *err)
{
	struct transport_collected result = rsync->collecting.result;
	rsync->done.collect(rsync->done_data, err ? NULL : &result, err);
}

/* ---- the snapshot ---- */

/* If the mirror was the base before, the part of it that was not pulled is still the base. */
static bool take_tree(struct rsync_transport *rsync, struct snapshot *out, struct error *err)
{
	const struct transport_request *request = &rsync->request;
	const struct rsync_looking *looking = &rsync->looking;
	const git_oid *base = &rsync->collecting.base;
	bool is_near = !rsync->collecting.has_pulled_all && id_equal(&looking->kept_of, base);
	char cache[64];
	if (is_near && looking->reach.count == 0) {
		*out = (struct snapshot){.tree = *base};
		return true;
	}
	text_whole(cache, sizeof(cache), "rsync-%s", rsync->name);
	struct snapshot_request take = {.root = rsync->mirror.path,
		.rules_of = request->local_root,
		.base = base,
		.folders = is_near ? (const char *const *)looking->reach.folders : NULL,
		.folder_count = looking->reach.count,
		.include = request->include,
		.exclude = request->exclude,
		.limits = {.bytes_max = request->bytes_max},
		.home = request->home,
		.cache = cache,
		.is_cancelled = &rsync->is_cancelled};
	return snapshot_take(&rsync->store, &take, out, err);
}

static bool take_snapshot(struct rsync_transport *rsync, struct error *err)
{
	struct transport_collected *result = &rsync->collecting.result;
	struct snapshot snapshot;
	if (!take_tree(rsync, &snapshot, err)) {
		return false;
	}
	result->tree = snapshot.tree;
	rsync->collecting.has_refused = snapshot.refused > 0;
	for (size_t i = 0; i < snapshot.refused;
		i++) { // adds one per link, so that different numbers differ
		transport_left_add(&result->left, snapshot.first_refused);
	}
	for (char **path = rsync->unreadable; path && *path; path++) {
		transport_left_add(&result->left, *path);
	}
	text_format(result->note, sizeof(result->note), "%s",
		*rsync->note ? rsync->note : snapshot.note);
	if (!*result->note && !rsync->was_told) {
		snprintf(result->note, sizeof(result->note),
			"files are transferred by rsync: the history of this repository is not, "
			"and "
			"neither are commits made in the sandbox");
		rsync->was_told = true;
	}
	rsync->note[0] = '\0';
	point("mirror.taken");
	return mirror_set_state(&rsync->mirror, &rsync->store, MIRROR_IS, &result->tree, err);
}

/* ---- pulling ---- */

static void pull(struct rsync_transport *rsync);
static void pulled_near(struct rsync_transport *rsync);

/* If the pulled rules let other files travel, pulls once more. */
static bool work_pulled(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct rsync_collecting *collecting = &rsync->collecting;
	bool has_changed = filter_print(rsync->mirror.path) != rsync->filter.print;
	if (has_changed) {
		const git_oid *base = &collecting->base;
		if (!rsync_write_filter(rsync, &base, 1, true, err)) {
			return false;
		}
		if (!rsync->unreadable) { // the rules exclude it, and it must stay
			mirror_sweep(&rsync->mirror, &rsync->filter.all);
		}
		if (collecting->pulls < PULLS_MAX) {
			return true;
		}
	}
	collecting->pulls = 0;
	return take_snapshot(rsync, err) &&
	       (has_changed || !collecting->is_whole || rsync->unreadable ||
		       collecting->has_refused ||
		       rsync_keep_print(rsync, &collecting->result.tree, err));
}

static void pulled(struct rsync_transport *rsync)
{
	if (rsync->collecting.pulls > 0) {
		pull(rsync);
	} else {
		rsync_has_pulled(rsync);
		rsync_end(rsync, NULL);
	}
}

static bool work_filter(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	const git_oid *base = &rsync->collecting.base;
	return rsync_forget_print(rsync, err) && rsync_write_filter(rsync, &base, 1, true, err);
}

static void leave_out(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_filter, pull);
}

static void look_at_pulled(struct rsync_transport *rsync)
{
	point("rsync.pulled");
	if (!rsync->collecting.has_pulled_all) {
		pulled_near(rsync);
	} else if (rsync->collecting.is_partial) {
		rsync_find_unreadable(rsync, leave_out);
	} else {
		rsync_do(rsync, work_pulled, pulled);
	}
}

static void note_pull(struct rsync_transport *rsync, const struct call_result *result)
{
	struct rsync_collecting *collecting = &rsync->collecting;
	collecting->result.received_bytes += result->received;
	collecting->result.left = (struct transport_left){0}; // counted again by this pull
	collecting->is_whole = result->status == 0;
	if (collecting->is_whole) {
		rsync_has_cleaned(rsync);
	}
}

static const char skipped[] = " is over max-size\n"; // exactly as rsync's generator prints it

/* rsync leaves out files over --max-size; nothing is collected until they are smaller. */
static bool refuse_excess(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	const char *end = strstr(result->output, skipped);
	if (!end) {
		return true;
	}
	const char *name = end;
	while (name > result->output && name[-1] != '\n') {
		name--;
	}
	char shown[TEXT_SHORT_SIZE];
	char *quoted = path_quote((struct span){name, (size_t)(end - name)});
	error_set(err, ERROR_LIMIT,
		"syncing %s: %s has more than %" PRIu64
		" MiB (max-size): delete or exclude it, or raise max-size",
		rsync->request.runtime_root, text_short(shown, quoted),
		rsync->request.bytes_max >> 20);
	free(quoted);
	return false;
}

static bool judge_pull(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	struct rsync_collecting *collecting = &rsync->collecting;
	note_pull(rsync, result);
	if (!refuse_excess(rsync, result, err)) {
		return false;
	}
	if (result->status == RSYNC_PARTIAL &&
		rsync_left_busy(result->said, &collecting->result.left)) {
		collecting->is_partial = false;
		return true;
	}
	/* Done once. A pull that may or may not have deleted files is repeated. */
	collecting->is_partial = result->status == RSYNC_PARTIAL && !collecting->has_looked;
	if (collecting->is_partial) {
		collecting->has_looked = true;
		return true;
	}
	return result->status == RSYNC_VANISHED || rsync_judge(rsync, result, err);
}

static void run_pull(struct rsync_transport *rsync, const char *filter,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err))
{
	char max[48], **words = rsync_words(rsync, filter);
	words_append(&words, "--chmod=Du+rwx,Fu+rw");
	snprintf(max, sizeof(max), "--max-size=%" PRIu64, rsync->request.bytes_max);
	words_append(&words, max);
	words_append(&words, "--info=skip");
	rsync_add_far(&words, rsync->request.runtime_root, "/");
	words_append(&words, "./mirror/");
	rsync_run_around(rsync, words, false, judge, look_at_pulled);
	point("rsync.pulling");
}

static void pull(struct rsync_transport *rsync)
{
	rsync->collecting.has_pulled_all = true;
	rsync->collecting.pulls++;
	run_pull(rsync, "filter", judge_pull);
}

/* ---- after few changes, or none ---- */

static void collected(struct rsync_transport *rsync)
{
	rsync_end(rsync, NULL);
}

static bool work_near(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	return take_snapshot(rsync, err) &&
	       (rsync->looking.changed == CHANGED_NOTHING || rsync->collecting.has_refused ||
		       rsync_keep_print(rsync, &rsync->collecting.result.tree, err));
}

static void pulled_near(struct rsync_transport *rsync)
{
	if (rsync->collecting.is_whole) {
		rsync_do(rsync, work_near, collected);
	} else {
		pull(rsync);
	}
}

/* If a file was left out or vanished, a pull of everything has to find out. */
static bool judge_pull_near(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	note_pull(rsync, result);
	return refuse_excess(rsync, result, err) &&
	       (result->status == RSYNC_PARTIAL || result->status == RSYNC_VANISHED ||
		       rsync_judge(rsync, result, err));
}

static void pull_near(struct rsync_transport *rsync)
{
	run_pull(rsync, "narrow", judge_pull_near);
}

/* ---- beginning ---- */

/* A new mirror begins as the base, so that unchanged files need not be transferred. */
static bool work_open(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	const git_oid *base = &rsync->collecting.base;
	git_oid is;
	bool is_new;
	if (!rsync_open(rsync, &is_new, err) ||
		(is_new && !mirror_apply(
				   &rsync->mirror, &rsync->store, &store_empty_tree, base, err))) {
		return false;
	}
	point("mirror.opened");
	rsync->delivering.is_recovery =
		mirror_state(&rsync->mirror, &rsync->store, &is) == MIRROR_BUSY;
	return rsync_write_filter(rsync, &base, 1, true, err) && rsync_compare(rsync, err);
}

/* Looks for files that could not be read the last time first, not after a failed pull. */
static void begin_pull(struct rsync_transport *rsync)
{
	const struct rsync_looking *looking = &rsync->looking;
	if (rsync->unreadable) {
		rsync->collecting.has_looked = true;
		rsync_find_unreadable(rsync, leave_out);
	} else if (looking->changed == CHANGED_SOMEWHERE) {
		pull(rsync);
	} else if (looking->reach.count > 0) {
		pull_near(rsync);
	} else {
		rsync_do(rsync, work_near, collected);
	}
}

static void opened(struct rsync_transport *rsync)
{
	if (rsync->delivering.is_recovery) {
		rsync_settle(rsync, begin_pull);
	} else {
		begin_pull(rsync);
	}
}

static void open_mirror(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_open, opened);
}

static void looked(struct rsync_transport *rsync)
{
	rsync_wait(rsync, open_mirror);
}

static void collect_begin(struct rsync_transport *rsync)
{
	rsync_look(rsync, looked);
}

void rsync_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data)
{
	struct rsync_transport *rsync = rsync_from(transport);
	rsync->collecting = (struct rsync_collecting){.base = *base};
	rsync->delivering = (struct rsync_delivering){0};
	rsync->done.collect = done;
	rsync_begin(rsync, collect_begin, collect_end, data);
}
