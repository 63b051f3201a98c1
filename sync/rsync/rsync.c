/* SPDX-License-Identifier: MIT */
#include "sync/rsync/rsync.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/words.h"

enum { BYTES_MAX_DEFAULT_GIB = 20, TIMEOUT_DEFAULT_MS = 60000, ANSWER_MAX = 64 << 10 };

const char rsync_open_script[] =
#include "sync/rsync/remote/open.sh.inc"
	;
const char rsync_around_script[] =
#include "sync/rsync/remote/around.sh.inc"
	;
const char rsync_look_script[] =
#include "sync/rsync/remote/look.sh.inc"
	;
const char rsync_unreadable_script[] =
#include "sync/rsync/remote/unreadable.sh.inc"
	;

/* ---- shared work ---- */

bool rsync_open(struct rsync_transport *rsync, bool *out_is_new, struct error *err)
{
	if (!rsync->has_store) {
		rsync->has_store = store_open(&rsync->store, rsync->request.store->path,
			rsync->request.store->big_file_bytes, err);
	}
	return rsync->has_store && mirror_open(&rsync->mirror, rsync->tools.shell, out_is_new, err);
}

bool rsync_write_filter(struct rsync_transport *rsync, const git_oid *const *trees, size_t count,
	bool reads, struct error *err)
{
	const struct transport_request *request = &rsync->request;
	struct filter_request rules = {.mirror = rsync->mirror.path,
		.local_root = request->local_root,
		.home = request->home,
		.include = request->include,
		.exclude = request->exclude,
		.closed = (const char *const *)rsync->unreadable};
	return (!reads || filter_read(&rsync->filter, &rsync->store, &rules, err)) &&
	       filter_make(&rsync->filter, &rsync->store, &rules, trees, count, err) &&
	       filter_write(&rsync->filter, rsync->mirror.fd, "filter", err);
}

/* ---- prepare ---- */

/*
 * rsync 3.1.0 has times with nanoseconds, which show a change; 3.1.3 compares them
 * (--modify-window=-1). Other programs with this name, such as openrsync, do not.
 */
static bool check_version(const char *text, const char *where, struct error *err)
{
	int major = 0, minor = 0, patch = 0;
	if (!*text) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "SYNC_TOOL_MISSING",
			"%s has no rsync in its PATH; it is needed here and in the sandbox: "
			"install it there",
			where);
	}
	bool is_known = sscanf(text, "rsync version v%d.%d.%d", &major, &minor, &patch) == 3 ||
	                sscanf(text, "rsync version %d.%d.%d", &major, &minor, &patch) == 3;
	if (is_known && major * 10000 + minor * 100 + patch >= 30103) {
		return true;
	}
	return error_set_reason(err, ERROR_UNAVAILABLE, "SYNC_TOOL_MISSING",
		"rsync of %s is \"%.*s\"; 3.1.3 or later is needed, because it compares times in "
		"nanoseconds: install it there",
		where, (int)strcspn(text, "\n"), text);
}

bool rsync_read_answer(struct remote_ends *ends, struct buf *answer, struct error *err)
{
	for (;;) {
		char *to = buf_reserve(answer, 4096, err);
		ssize_t count = to ? read(ends->in, to, 4096) : -1;
		if (count <= 0) {
			return to && count == 0;
		}
		buf_commit(answer, (size_t)count);
	}
}

static bool work_opened(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct buf answer;
	buf_init(&answer, ANSWER_MAX);
	error_set(err, ERROR_SYSTEM, "preparing %s failed", rsync->request.runtime_root);
	bool is_good = rsync_read_answer(ends, &answer, err) &&
	               buf_append(&answer, SPAN_LITERAL("\0\0"), err);
	struct span words = buf_span(&answer);
	is_good = is_good && check_version(words.data, "the sandbox", err);
	if (is_good) {
		const char *side = words.data + strlen(words.data) + 1;
		is_good = (side[0] == '/' && strlen(side) < FILE_PATH_MAX) ||
		          error_set(err, ERROR_SYSTEM, "there is no space beside %s in the sandbox",
				  rsync->request.runtime_root);
		mem_set_text(&rsync->side, side);
	}
	buf_finish(&answer);
	return is_good;
}

static void prepared(struct rsync_transport *rsync)
{
	rsync_end(rsync, NULL);
}

static void prepare_there(struct rsync_transport *rsync)
{
	const char *argv[] = {"sh", "-c", rsync_open_script, "acp-broker-sync",
		rsync->request.runtime_root, sandbox_home(rsync->request.sandbox), rsync->name,
		NULL};
	rsync_script(rsync, argv, work_opened, prepared);
}

static bool judge_version(
	struct rsync_transport *rsync, const struct call_result *result, struct error *err)
{
	return check_version(result->output, "this machine", err);
}

static void prepare_here(struct rsync_transport *rsync)
{
	static const char *const argv[] = {"rsync", "--version", NULL};
	char **words = NULL;
	words_append_all(&words, argv);
	rsync_run(rsync, words, judge_version, prepare_there);
}

static bool work_open(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	bool is_new;
	if (!rsync_open(rsync, &is_new, err)) {
		return false;
	}
	git_oid is;
	rsync->is_to_clean = mirror_state(&rsync->mirror, &rsync->store, &is) != MIRROR_BUSY;
	if (is_new) { // the first collect fills it
		rmdir(rsync->mirror.path);
	}
	return true;
}

static void prepare_begin(struct rsync_transport *rsync)
{
	rsync_do(rsync, work_open, prepare_here);
}

static void prepare_end(struct rsync_transport *rsync, const struct error *err)
{
	rsync->done.prepare(rsync->done_data, err);
}

static void prepare_unable(struct rsync_transport *rsync)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "syncing by rsync: no programs can be started here");
	rsync_end(rsync, &err);
}

void rsync_prepare(struct transport *transport, sandbox_done *done, void *data)
{
	struct rsync_transport *rsync = rsync_from(transport);
	rsync->done.prepare = done;
	rsync_begin(
		rsync, rsync->tools.spawner ? prepare_begin : prepare_unable, prepare_end, data);
}

/* ---- the transport's life ---- */

static void on_kick(struct soon *soon)
{
	struct rsync_transport *rsync = CONTAINER_OF(soon, struct rsync_transport, kick);
	rsync->begin(rsync);
}

void rsync_drop(void *data)
{
	struct rsync_transport *rsync = data;
	stuck_finish(&rsync->delivering.stuck);
	filter_finish(&rsync->filter);
	mirror_finish(&rsync->mirror);
	if (rsync->has_store) {
		store_close(&rsync->store);
	}
	free((char *)rsync->request.store->path);
	free((struct store *)rsync->request.store);
	free((char *)rsync->request.local_root);
	free((char *)rsync->request.runtime_root);
	free((char *)rsync->request.home);
	words_free((char **)rsync->request.include);
	words_free((char **)rsync->request.exclude);
	free((char *)rsync->tools.path);
	free((char *)rsync->tools.shell);
	words_free(rsync->unreadable);
	buf_finish(&rsync->looking.answer);
	reach_finish(&rsync->looking.reach);
	free(rsync->name);
	free(rsync->side);
	free(rsync);
}

static void rsync_destroy(struct transport *transport)
{
	struct rsync_transport *rsync = rsync_from(transport);
	soon_stop(&rsync->kick);
	rsync->is_cancelled = true;
	call_destroy(rsync->call);
	rsync->call = NULL;
	if (rsync->remote) {
		remote_leave(rsync->remote);
	} else {
		rsync_drop(rsync);
	}
}

static const struct transport_impl rsync_impl = {
	.name = "rsync",
	.prepare = rsync_prepare,
	.collect = rsync_collect,
	.deliver = rsync_deliver,
	.destroy = rsync_destroy,
	.hold = rsync_hold,
};

static char *make_name(const struct transport_request *request)
{
	uint64_t hash = hash_bytes(HASH_START, span_of(request->name ? request->name : ""));
	char name[32];
	hash = hash_bytes(hash_bytes(hash, SPAN_LITERAL("\n")), span_of(request->runtime_root));
	snprintf(name, sizeof(name), "%016" PRIx64, hash);
	return mem_strdup(name);
}

static void copy_texts(struct rsync_transport *rsync, const struct transport_request *request)
{
	char **include = NULL, **exclude = NULL;
	rsync->request.local_root = mem_strdup(request->local_root);
	rsync->request.runtime_root = mem_strdup(request->runtime_root);
	rsync->request.home = mem_strdup_or_null(request->home);
	words_append_all(&include, request->include);
	words_append_all(&exclude, request->exclude);
	rsync->request.include = (const char *const *)include;
	rsync->request.exclude = (const char *const *)exclude;
	if (request->tools) {
		rsync->tools.spawner = request->tools->spawner;
		rsync->tools.path = mem_strdup_or_null(request->tools->path);
		rsync->tools.shell = mem_strdup_or_null(request->tools->shell);
	}
}

struct transport *transport_rsync_create(const struct transport_request *request)
{
	struct rsync_transport *rsync = mem_alloc_zero(sizeof(*rsync));
	struct store *store =
		mem_alloc_zero(sizeof(*store)); // only has the path and the limit of a store
	store->path = mem_strdup(request->store->path);
	store->big_file_bytes = request->store->big_file_bytes;
	rsync->transport.impl = &rsync_impl;
	rsync->request = *request;
	rsync->request.store = store;
	copy_texts(rsync, request);
	if (rsync->request.timeout_ms <= 0) {
		rsync->request.timeout_ms = TIMEOUT_DEFAULT_MS;
	}
	if (rsync->request.bytes_max == 0) {
		rsync->request.bytes_max = (uint64_t)BYTES_MAX_DEFAULT_GIB << 30;
	}
	rsync->name = make_name(request);
	mirror_init(&rsync->mirror, store->path, rsync->name);
	filter_init(&rsync->filter);
	buf_init(&rsync->looking.answer, RSYNC_LOOK_ANSWER_MAX);
	soon_init(&rsync->kick, rsync->request.loop, on_kick);
	return &rsync->transport;
}
