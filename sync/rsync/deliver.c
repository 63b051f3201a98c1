/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/point.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/rsync/narrow.h"
#include "sync/rsync/rsync.h"

static void deliver_end(struct rsync_transport *rsync, const struct error *err)
{
	struct transport_delivered result = rsync->delivering.result;
	struct stuck stuck = rsync->delivering.stuck;
	rsync->delivering.stuck = (struct stuck){0};
	rules_finish(&rsync->delivering.was);
	if (err) {
		result.stuck = &stuck;
		result.is_lasting = result.is_lasting || error_has_reason(err, "DISK_FULL");
	}
	rsync->done.deliver(rsync->done_data, &result, err); // may destroy the transport
	stuck_finish(&stuck);
}

static bool set_changed(const struct rsync_transport *rsync, const char *what, struct error *err)
{
	return error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED",
		"delivering to %s: files have changed there meanwhile: %s",
		rsync->request.runtime_root, what);
}

/* ---- the end ---- */

static void deliver_done(struct rsync_transport *rsync)
{
	rsync_end(rsync, NULL);
}

static bool work_finish(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	const struct rsync_delivering *delivering = &rsync->delivering;
	point("rsync.settled");
	if (delivering->found.members == 0) {
		return rsync_carry_print(rsync, &delivering->from, &delivering->to, err) &&
		       mirror_set_state(
			       &rsync->mirror, &rsync->store, MIRROR_IS, &delivering->to, err);
	}
	return mirror_set_state(&rsync->mirror, &rsync->store, MIRROR_UNKNOWN, NULL, err) &&
	       set_changed(rsync, delivering->found.first, err);
}

static void finish(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_finish, deliver_done);
}

/* ---- the push ---- */

static bool judge_push(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	rsync->delivering.result.sent_bytes += result->sent;
	rsync_has_cleaned(rsync);
	rsync->delivering.is_settled =
		!*result->output || strstr(result->far_words, RSYNC_NOTHING_REPLACED);
	if (rsync_judge(rsync, result, err)) {
		return true;
	}
	/* The next collect deals with the files that it has replaced. */
	if (strstr(result->said, "No space left on device") ||
		strstr(result->said, "Disk quota exceeded")) {
		return error_set_reason(
			err, ERROR_SYSTEM, "DISK_FULL", "the disk is full there: %s", err->text);
	}
	if (result->status == RSYNC_PARTIAL) { // the rest was transferred
		rsync->delivering.result.is_lasting = true;
		return error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED", "%s", err->text);
	}
	return false;
}

static void pushed(struct rsync_transport *rsync)
{
	point("rsync.pushed");
	if (rsync->delivering.is_settled) {
		finish(rsync);
	} else {
		rsync_settle(rsync, finish);
	}
}

static char **push_words(const struct rsync_transport *rsync)
{
	char **words = rsync_words(rsync, "filter");
	words_append(&words, "--chmod=ugo=rwX"); // new files get the permissions of the umask there
	words_append(&words, "--out-format=%i %n");
	return words;
}

static void push(struct rsync_transport *rsync)
{
	char option[FILE_PATH_MAX + 64];
	char **words = push_words(rsync);
	words_append(&words, "--backup");
	text_whole(option, sizeof(option), "--backup-dir=%s/backup", rsync->side);
	words_append(&words, option);
	text_whole(option, sizeof(option), "--temp-dir=%s/tmp", rsync->side);
	words_append(&words, option);
	words_append(&words, "./mirror/");
	rsync_add_far(&words, rsync->request.runtime_root, "/");
	rsync_run_around(rsync, words, true, judge_push, pushed);
	point("rsync.pushing");
}

/* ---- the mirror ---- */

/* The runtime still has the old rules; new files may be among those that the rules leave out. */
static bool write_rules(struct rsync_transport *rsync, struct error *err)
{
	struct rsync_delivering *delivering = &rsync->delivering;
	const git_oid *trees[] = {&delivering->from, &delivering->to};
	struct filter narrow;
	filter_init(&narrow);
	bool written =
		narrow_make(&narrow.all, &rsync->store, trees[0], trees[1], &delivering->is_narrow,
			err) &&
		(delivering->is_narrow ? filter_write(&narrow, rsync->mirror.fd, "filter", err)
				       : rsync_write_filter(rsync, trees, 2, false, err));
	filter_finish(&narrow);
	return written;
}

static bool work_apply(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct rsync_delivering *delivering = &rsync->delivering;
	const git_oid *trees[] = {&delivering->from, &delivering->to};
	rules_append(&delivering->was, &rsync->filter.all);
	if (!write_rules(rsync, err) ||
		!mirror_save(&rsync->mirror, &rsync->store, trees[0], trees[1], err)) {
		return false;
	}
	point("mirror.saved");
	if (!mirror_set_state(&rsync->mirror, &rsync->store, MIRROR_BUSY, NULL, err)) {
		return false;
	}
	point("mirror.busy");
	bool applied = mirror_apply(&rsync->mirror, &rsync->store, trees[0], trees[1], err);
	point("mirror.applied");
	return applied;
}

static void apply(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_apply, push);
}

/* ---- checking ---- */

/*
 * Each line has a code for the difference ("*deleting" marks a file that is new there) and a name.
 */
static bool judge_check(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	const char *output = result->output;
	char name[256];
	if (!rsync_judge(rsync, result, err)) {
		return false;
	}
	rsync_has_cleaned(rsync);
	if (!*output) {
		return true;
	}
	const char *at = output + strcspn(output, " \n");
	at += strspn(at, " ");
	text_format(name, sizeof(name), "%.*s", (int)strcspn(at, "\n"), at);
	return set_changed(rsync, name, err);
}

static void check(struct rsync_transport *rsync)
{
	char **words = push_words(rsync);
	words_append(&words, "--dry-run");
	words_append(&words, "./mirror/");
	rsync_add_far(&words, rsync->request.runtime_root, "/");
	rsync_run_around(rsync, words, false, judge_check, apply);
}

static bool work_open(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	const git_oid *from = &rsync->delivering.from;
	git_oid is;
	bool is_new;
	if (!rsync_open(rsync, &is_new, err)) {
		return false;
	}
	if (mirror_state(&rsync->mirror, &rsync->store, &is) != MIRROR_IS || !id_equal(&is, from)) {
		return set_changed(rsync, "they have to be collected first", err);
	}
	struct rules rules;
	rules_init(&rules);
	const git_oid *to = &rsync->delivering.to;
	bool opened =
		rsync_check_readable(rsync, from, to, err) &&
		rsync_write_filter(rsync, &from, 1, true, err) &&
		narrow_make(&rules, &rsync->store, from, to, &rsync->delivering.is_narrow, err);
	rules_finish(&rules);
	return opened;
}

/* If everything is looked at, it must be unchanged: new files there would be moved away. */
static void opened(struct rsync_transport *rsync)
{
	if (rsync->delivering.is_narrow) {
		apply(rsync);
	} else {
		check(rsync);
	}
}

static void deliver_begin(struct rsync_transport *rsync)
{
	if (id_equal(&rsync->delivering.from, &rsync->delivering.to)) {
		rsync_end(rsync, NULL);
		return;
	}
	rsync_do(rsync, work_open, opened);
}

void rsync_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data)
{
	struct rsync_transport *rsync = rsync_from(transport);
	rsync->delivering = (struct rsync_delivering){.from = *from, .to = *to};
	rsync->done.deliver = done;
	rsync_begin(rsync, deliver_begin, deliver_end, data);
}
