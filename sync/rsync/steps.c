/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "sync/rsync/rsync.h"
#include "sync/rsync/shell.h"

/* ---- begin and end ---- */

void rsync_begin(struct rsync_transport *rsync, rsync_then *begin,
	void (*end)(struct rsync_transport *rsync, const struct error *err), void *data)
{
	assert(!rsync->is_busy);
	rsync->is_busy = true;
	rsync->begin = begin;
	rsync->end = end;
	rsync->done_data = data;
	soon_start(&rsync->kick);
}

/* The listener may destroy the transport. */
void rsync_end(struct rsync_transport *rsync, const struct error *err)
{
	rsync->is_busy = false;
	rsync->end(rsync, err);
}

static void go_on(struct rsync_transport *rsync)
{
	rsync_then *then = rsync->held;
	rsync->held = NULL;
	then(rsync);
}

void rsync_wait(struct rsync_transport *rsync, rsync_then *then)
{
	rsync->held = then;
	if (!rsync->is_held) {
		go_on(rsync);
	}
}

void rsync_hold(struct transport *transport, bool holds)
{
	struct rsync_transport *rsync = rsync_from(transport);
	rsync->is_held = holds;
	if (rsync->held && !holds) {
		rsync->begin = go_on;
		soon_start(&rsync->kick);
	}
}

/* ---- work and scripts ---- */

static bool on_work(void *data, struct remote_ends *ends, struct error *err)
{
	struct rsync_transport *rsync = data;
	return rsync->work(rsync, ends, err);
}

static void on_worked(void *data, const struct error *err)
{
	struct rsync_transport *rsync = data;
	rsync->remote = NULL;
	if (err && !rsync->is_try) {
		rsync_end(rsync, err);
		return;
	}
	rsync->then(rsync);
}

static bool start_script(struct rsync_transport *rsync, const char *const *argv,
	long long timeout_ms, rsync_work *work, rsync_then *then, struct error *err)
{
	struct remote_step step = {.argv = argv,
		.work = on_work,
		.done = on_worked,
		.drop = rsync_drop,
		.data = rsync,
		.timeout_ms = timeout_ms};
	rsync->work = work;
	rsync->then = then;
	rsync->remote = remote_start(
		rsync->request.loop, rsync->request.pool, rsync->request.sandbox, &step, err);
	return rsync->remote != NULL;
}

void rsync_script(
	struct rsync_transport *rsync, const char *const *argv, rsync_work *work, rsync_then *then)
{
	struct error err;
	rsync->is_try = false;
	if (!start_script(rsync, argv, rsync->request.timeout_ms, work, then, &err)) {
		rsync_end(rsync, &err);
	}
}

void rsync_try_script(struct rsync_transport *rsync, const char *const *argv, long long timeout_ms,
	rsync_work *work, rsync_then *then)
{
	struct error err;
	rsync->is_try = true;
	if (!start_script(rsync, argv, timeout_ms, work, then, &err)) {
		then(rsync);
	}
}

void rsync_do(struct rsync_transport *rsync, rsync_work *work, rsync_then *then)
{
	rsync_script(rsync, NULL, work, then);
}

/* ---- runs ---- */

enum { STATUS_TIMEOUT = 30, STATUS_CONNECTION_TIMEOUT = 35, STATUS_STREAM = 12 };

bool rsync_judge(struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	int status = result->status;
	const char *root = rsync->request.runtime_root;
	if (status == 0) {
		return true;
	}
	if (status == STATUS_TIMEOUT || status == STATUS_CONNECTION_TIMEOUT) {
		return error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"syncing %s: nothing has come from the sandbox for %lld ms", root,
			rsync->request.timeout_ms);
	}
	return error_set(err, status == STATUS_STREAM ? ERROR_UNAVAILABLE : ERROR_SYSTEM,
		"syncing %s: rsync ended with status %d (%s)", root, status, result->words);
}

static void on_called(void *data, const struct call_result *result, const struct error *err)
{
	struct rsync_transport *rsync = data;
	struct error why;
	bool went_well = false;
	if (err) {
		why = *err;
	} else {
		went_well = rsync->judge(rsync, result, &why);
	}
	call_destroy(rsync->call);
	rsync->call = NULL;
	if (went_well) {
		rsync->then(rsync);
	} else {
		rsync_end(rsync, &why);
	}
}

static void run(struct rsync_transport *rsync, char **argv, const char *const *before,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then)
{
	struct error err;
	struct call_request request = {.loop = rsync->request.loop,
		.tools = &rsync->tools,
		.sandbox = rsync->request.sandbox,
		.folder = rsync->mirror.folder,
		.argv = (const char *const *)argv,
		.before = before,
		.timeout_ms = rsync->request.timeout_ms,
		.received_max = rsync->request.bytes_max};
	rsync->judge = judge ? judge : rsync_judge;
	rsync->then = then;
	rsync->call = call_start(&request, on_called, rsync, &err);
	words_free(argv);
	if (!rsync->call) {
		rsync_end(rsync, &err);
	}
}

void rsync_run(struct rsync_transport *rsync, char **argv,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then)
{
	run(rsync, argv, NULL, judge, then);
}

void rsync_run_around(struct rsync_transport *rsync, char **argv, bool tells,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then)
{
	bool cleans = rsync->is_to_clean;
	const char *before[] = {"sh", "-c", rsync_around_script, "acp-broker-sync", rsync->side,
		!cleans        ? ""
		: *rsync->kept ? rsync->kept
			       : "yes",
		tells ? "yes" : "", NULL};
	run(rsync, argv, cleans || tells ? before : NULL, judge, then);
}

void rsync_has_cleaned(struct rsync_transport *rsync)
{
	rsync->is_to_clean = false;
	rsync->kept[0] = '\0';
}

char **rsync_words(const struct rsync_transport *rsync, const char *filter)
{
	static const char *const common[] = {"rsync", "--recursive", "--links", "--times",
		"--executability", "--omit-dir-times", "--omit-link-times", "--modify-window=-1",
		"--sparse", "--protect-args", "--from0", "--rsync-path=rsync", "-e",
		"./shell " RSYNC_SHELL_WORD, NULL};
	char text[128], **words = NULL;
	words_append_all(&words, common);
	if (!sandbox_capabilities(rsync->request.sandbox)->outlives) { // it would count a lost link
		snprintf(text, sizeof(text), "--timeout=%lld",
			(rsync->request.timeout_ms + 999) / 1000);
		words_append(&words, text);
	}
	if (filter) {
		text_whole(text, sizeof(text), "--filter=merge %s", filter);
		words_append(&words, text);
		words_append(&words, "--delete");
	}
	return words;
}

void rsync_add_far(char ***words, const char *path, const char *rest)
{
	char place[FILE_PATH_MAX + 64];
	text_whole(place, sizeof(place), "runtime:%s%s", path, rest);
	words_append(words, place);
}
