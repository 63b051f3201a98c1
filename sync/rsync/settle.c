/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <unistd.h>

#include "base/point.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/rsync/mirror_walk.h"
#include "sync/rsync/rsync.h"

/*
 * rsync moves everything that a delivery replaces or deletes there to SIDE/backup. Most of it is
 * what the mirror had in "before", by size and time. The rest was written between the last look and
 * the delivery. We fetch it into "got" and put it back, so that the next merge sees it. Files that
 * this replaces in turn go to SIDE/again, and we check them in the same way. If a file differs even
 * there, a program writes it faster than we can put it back. Then we keep it in a folder here and
 * tell the user. We do the same if something is in the way of a file, so that we cannot put it
 * back. A file that we cannot read stays there.
 */

static void settled(struct rsync_transport *rsync)
{
	rsync_then *then = rsync->settled;
	rsync->settled = NULL;
	rsync->is_to_clean = true;
	if (rsync->delivering.is_unread) {
		mirror_stamp(rsync->kept, sizeof(rsync->kept), "kept-");
		text_format(rsync->note, sizeof(rsync->note),
			"a file that was replaced in the sandbox cannot be read: it is kept there "
			"in "
			"%s/%s",
			rsync->side, rsync->kept);
	}
	then(rsync);
}

static bool judge_fetch(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	if (result->status != RSYNC_PARTIAL) {
		return rsync_judge(rsync, result, err);
	}
	rsync->delivering.is_unread = true;
	return true;
}

/* Fetches the files of a folder in SIDE that one of our folders does not have. */
static void fetch(struct rsync_transport *rsync, const char *far, const char *known, const char *to,
	rsync_then *then)
{
	char option[64];
	char **words = rsync_words(rsync, NULL);
	text_whole(option, sizeof(option), "--compare-dest=../%s", known);
	words_append(&words, option);
	words_append(&words, "--prune-empty-dirs");
	words_append(&words, "--chmod=Du+rwx,Fu+rw");
	rsync_add_far(&words, rsync->side, far);
	words_append(&words, to);
	rsync_run(rsync, words, judge_fetch, then);
}

/* ---- files replaced by putting back ---- */

/* Returns false if the files cannot be kept here; then nothing is cleaned up there. */
static bool rescue(
	struct rsync_transport *rsync, const char *folder, const char *path, struct error *err)
{
	char *rescued = mirror_rescue(&rsync->mirror, folder, err);
	if (!rescued) {
		return false;
	}
	text_format(rsync->note, sizeof(rsync->note),
		"%s changed faster than it could be synced; its other version is kept in %s", path,
		rescued);
	free(rescued);
	return true;
}

static bool work_look_again(
	struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct mirror_found found;
	struct rules none;
	rules_init(&none);
	mirror_look(&rsync->mirror, "more", "mirror", &none, &found);
	bool ok = found.members == 0 || rescue(rsync, "more", found.first, err);
	return ok && (!rsync->delivering.is_not_back ||
			     rescue(rsync, "got", rsync->delivering.found.first, err));
}

static void look_again(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_look_again, settled);
}

static void fetch_again(struct rsync_transport *rsync)
{
	fetch(rsync, "/again/", "mirror", "./more/", look_again);
}

/* ---- putting back ---- */

static bool judge_put_back(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	rsync->delivering.is_not_back = result->status == RSYNC_PARTIAL;
	return rsync->delivering.is_not_back || rsync_judge(rsync, result, err);
}

static void put_back(struct rsync_transport *rsync)
{
	point("rsync.fetched");
	char option[FILE_PATH_MAX + 64];
	if (rsync->delivering.found.members + rsync->delivering.found.parked == 0) {
		settled(rsync);
		return;
	}
	char **words = rsync_words(rsync, NULL);
	words_append(&words, "--chmod=ugo=rwX");
	words_append(&words, "--backup");
	text_whole(option, sizeof(option), "--backup-dir=%s/again", rsync->side);
	words_append(&words, option);
	text_whole(option, sizeof(option), "--temp-dir=%s/tmp", rsync->side);
	words_append(&words, option);
	words_append(&words, "./got/");
	rsync_add_far(&words, rsync->request.runtime_root, "/");
	rsync_run(rsync, words, judge_put_back, fetch_again);
}

static bool work_look(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct mirror_found *found = &rsync->delivering.found;
	struct rules none;
	rules_init(&none);
	mirror_look(&rsync->mirror, "got", "before",
		rsync->delivering.is_recovery ? &none : &rsync->delivering.was, found);
	if (found->parked > 0) {
		text_format(rsync->note, sizeof(rsync->note),
			"%s in the sandbox is ignored and was in the way: it is kept there under a "
			"name with .acp-conflict",
			found->first);
	}
	return true;
}

static void look(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_look, put_back);
}

static void fetch_first(struct rsync_transport *rsync)
{
	fetch(rsync, "/backup/", "before", "./got/", look);
}

static bool work_make_room(
	struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	return mirror_empty(&rsync->mirror, "got", err) &&
	       mirror_empty(&rsync->mirror, "more", err);
}

void rsync_settle(struct rsync_transport *rsync, rsync_then *then)
{
	rsync->settled = then;
	rsync_do(rsync, work_make_room, fetch_first);
}
