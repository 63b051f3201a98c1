/* SPDX-License-Identifier: MIT */
#include "sync/git/git.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "sync/git/commits.h"
#include "sync/nested.h"

enum {
	BYTES_MAX_DEFAULT_GIB = 20,
	TIMEOUT_DEFAULT_MS = 60000,
	TEXT_MAX = 120 << 10,
	FEW_BYTES_MAX = 8 << 10
};

/* ---- steps ---- */

static void transport_drop(void *data);

static bool on_work(void *data, struct remote_ends *ends, struct error *err)
{
	struct git_transport *git = data;
	return git->step.work(git, ends, err);
}

static void on_worked(void *data, const struct error *err)
{
	struct git_transport *git = data;
	git->remote = NULL;
	if (err) {
		git_end(git, err);
		return;
	}
	git->step.then(git);
}

void git_run(struct git_transport *git, const struct git_step *step)
{
	const struct history *history = git->histories[0];
	const char *part = history->exists ? history->part : history->room;
	const char *argv[SCRIPT_ARGS_MAX + 8] = {
		"sh", "-c", NULL, "acp-broker-sync", git->side, git->request.runtime_root, part};
	git->step = *step;
	for (size_t i = 0; i < SCRIPT_ARGS_MAX; i++) {
		argv[7 + i] = step->args[i];
	}
	struct remote_step remote = {.work = on_work,
		.done = on_worked,
		.drop = transport_drop,
		.data = git,
		.timeout_ms = git->request.timeout_ms};
	if (step->script != SCRIPT_NONE) {
		argv[2] = git_script_text(step->script);
		remote.argv = argv;
	}
	struct error err;
	git->remote = remote_start(
		git->request.loop, git->request.pool, git->request.sandbox, &remote, &err);
	if (!git->remote) {
		git_end(git, &err);
	}
}

static void on_kick(struct soon *soon)
{
	struct git_transport *git = CONTAINER_OF(soon, struct git_transport, kick);
	git->begin(git);
}

void git_begin(struct git_transport *git, void (*begin)(struct git_transport *git),
	void (*end)(struct git_transport *git, const struct error *err), void *data)
{
	assert(!git->is_busy);
	git->is_busy = true;
	git->begin = begin;
	git->end = end;
	git->done_data = data;
	git->is_missing = false;
	git->was_seeded = false;
	soon_start(&git->kick);
}

/* The listener may destroy the transport. */
void git_end(struct git_transport *git, const struct error *err)
{
	git->is_busy = false;
	git->end(git, err);
}

void git_tell_user(struct git_transport *git, const char *format, ...)
{
	char text[TRANSPORT_NOTE_MAX];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	transport_note_add(git->collecting.result.note, text);
}

bool git_open_store(struct git_transport *git, struct error *err)
{
	if (!git->has_store) {
		git->has_store = store_open(&git->store, git->request.store->path,
			git->request.store->big_file_bytes, err);
	}
	return git->has_store;
}

bool git_read_history(struct git_transport *git, struct error *err)
{
	nested_read(&git->store, &git->histories[0]->nested);
	git->history_count = inner_update(git->histories, git->history_count);
	git->history = git->histories[0];
	for (size_t i = 0; i < git->history_count; i++) {
		char root[PATH_MAX];
		struct history *history = git->histories[i];
		if (!inner_root(git->request.local_root, history->path, root)) {
			history->exists = false;
			continue;
		}
		if (!history_read(history, root, git->request.home, err)) {
			return false;
		}
	}
	return true;
}

char *git_list_inner(const struct git_transport *git)
{
	struct buf lines;
	buf_init(&lines, INNER_MAX * (AGENT_COMMITS_PATH_MAX + 1));
	for (size_t i = 1; i < git->history_count; i++) {
		(void)!buf_append_format(&lines, NULL, "%s\n", git->histories[i]->path);
	}
	char *text = mem_strndup(buf_span(&lines));
	buf_finish(&lines);
	return text;
}

bool git_strip(
	struct git_transport *git, const git_oid *whole, git_oid *out_side, struct error *err)
{
	git_oid side;
	if (!trees_strip(&git->store, &git->known, whole, &side, err)) {
		return false;
	}
	git->known = (struct side_pair){.whole = *whole, .side = side};
	*out_side = side;
	return true;
}

/* ---- the transport's life ---- */

static void transport_drop(void *data)
{
	struct git_transport *git = data;
	collecting_finish(&git->collecting);
	delivering_finish(&git->delivering);
	for (size_t i = 0; i < git->history_count; i++) {
		history_destroy(git->histories[i]);
	}
	id_set_finish(&git->shared);
	if (git->has_store) {
		store_close(&git->store);
	}
	free((char *)git->request.store->path);
	free((struct store *)git->request.store);
	free((char *)git->request.local_root);
	free((char *)git->request.runtime_root);
	free((char *)git->request.home);
	free(git->received);
	free(git->side);
	free(git->pathspecs);
	free(git->includes);
	free(git);
}

static void git_destroy(struct transport *transport)
{
	struct git_transport *git = git_from(transport);
	soon_stop(&git->kick);
	if (git->remote) {
		remote_leave(git->remote);
	} else {
		transport_drop(git);
	}
}

/* The user's HEAD may move even if no file changes. */
static bool git_follows(const struct transport *transport)
{
	return true;
}

static const struct transport_impl git_impl = {
	.name = "git",
	.prepare = git_prepare,
	.collect = git_collect,
	.deliver = git_deliver,
	.destroy = git_destroy,
	.follows = git_follows,
};

/* How many bytes of the root's name are a folder for this root alone (struct sandbox_root). */
static size_t find_top(const struct transport_request *request)
{
	for (size_t i = 0; i < sandbox_root_count(request->sandbox); i++) {
		const struct sandbox_root *root = sandbox_root_at(request->sandbox, i);
		if (strcmp(root->runtime, request->runtime_root) == 0 && root->top > 0) {
			return root->top;
		}
	}
	return strlen(request->runtime_root);
}

/* The side repository lies beside the root's top, so that whoever removes the top finds it too. */
static char *side_path(const struct transport_request *request, size_t top)
{
	char path[FILE_PATH_MAX + 64];
	const char *root = request->runtime_root;
	const char *slash = memrchr(root, '/', top);
	text_whole(path, sizeof(path), "%.*s/.acp-broker/sync/%016" PRIx64, (int)(slash - root),
		root, hash_bytes(HASH_START, span_of(request->runtime_root)));
	return mem_strdup(path);
}

/*
 * "." or the included patterns, then the excluded ones, one per line. git matches a pattern with a
 * wildcard only against files; the snapshot here also against folders.
 */
static char *join_pathspecs(
	const char *first, const char *const *include, const char *const *exclude)
{
	struct buf text;
	bool fits = true;
	buf_init(&text, TEXT_MAX);
	if (first) {
		fits = buf_append_format(&text, NULL, "%s\n", first);
	}
	for (size_t i = 0; include && include[i]; i++) {
		fits = fits && buf_append_format(&text, NULL, "%s\n", include[i]);
	}
	for (size_t i = 0; exclude && exclude[i]; i++) {
		const char *pattern = exclude[i] + strspn(exclude[i], "/");
		fits = fits && buf_append_format(&text, NULL, ":(exclude)%s\n:(exclude)%s/*\n",
				       pattern, pattern);
	}
	assert(fits);
	char *joined = mem_strndup(buf_span(&text));
	buf_finish(&text);
	return joined;
}

struct transport *transport_git_create(const struct transport_request *request)
{
	struct git_transport *git = mem_alloc_zero(sizeof(*git));
	struct store *store =
		mem_alloc_zero(sizeof(*store)); // only has the path and the limit of a store
	store->path = mem_strdup(request->store->path);
	store->big_file_bytes = request->store->big_file_bytes;
	git->transport.impl = &git_impl;
	git->request = *request;
	git->request.store = store;
	git->request.local_root = mem_strdup(request->local_root);
	git->request.runtime_root = mem_strdup(request->runtime_root);
	git->request.home = request->home ? mem_strdup(request->home) : NULL;
	if (git->request.timeout_ms <= 0) {
		git->request.timeout_ms = TIMEOUT_DEFAULT_MS;
	}
	if (git->request.bytes_max == 0) {
		git->request.bytes_max = (uint64_t)BYTES_MAX_DEFAULT_GIB << 30;
	}
	size_t top = find_top(request);
	git->side = side_path(request, top);
	git->pathspecs = join_pathspecs(".", NULL, request->exclude);
	git->includes = request->include && request->include[0]
	                        ? join_pathspecs(NULL, request->include, request->exclude)
	                        : mem_strdup("");
	git->known = (struct side_pair){store_empty_tree, store_empty_tree};
	list_init(&git->collecting.base_files);
	list_init(&git->collecting.files);
	list_init(&git->delivering.swaps);
	buf_init(&git->delivering.few, FEW_BYTES_MAX);
	git->is_near = sandbox_capabilities(request->sandbox)->is_near;
	git->is_confined = sandbox_capabilities(request->sandbox)->confined;
	git->histories[0] = history_create("");
	git->history_count = 1;
	git->history = git->histories[0];
	if (request->runtime_root[top]) {
		mem_set_text(&git->history->room, request->runtime_root + top + 1);
	}
	soon_init(&git->kick, git->request.loop, on_kick);
	return &git->transport;
}
