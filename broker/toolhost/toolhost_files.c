/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/environment.h"
#include "base/json_utf8.h"
#include "base/words.h"
#include "sync/git_layout.h"

enum {
	ANSWER_HEAD = 256, // bytes before the result, for the message's beginning
	/* Bytes of the result besides the text and most escapes; json_writer.c needs most of it. */
	ANSWER_MORE = 28 * 1024,
};

/* A read or a write of one file (ACP, "File System"). */
struct file_call {
	struct tool_call call;
	struct list link; // toolhost.files
	bool is_write;
	bool is_running;          // it is its turn
	bool is_counted;          // toolhost.read_count
	char *path;               // owned; as the agent gave it
	char *resolved;           // owned; links resolved, and inside the roots; NULL: unknown
	bool is_guessed;          // `resolved` is the path as given; a link will be noticed
	struct git_write git;     // for a write: whether git finds commands to run in it
	char **roots;             // owned; the session's
	struct shared *content;   // a reference; for a write
	unsigned long long line;  // for a read; the first line is 1
	unsigned long long limit; // for a read, in lines; ULLONG_MAX: to the end
	struct file_op *op;
	ev_timer due;
	long long away_ms; // sandbox_extend_timer
};

static struct file_call *from_call(struct tool_call *call)
{
	return CONTAINER_OF(call, struct file_call, call);
}

static const char *doing(const struct file_call *file)
{
	return file->is_write ? "writing" : "reading";
}

/* ---- order ---- */

static void run(struct file_call *file);

/*
 * Calls for one path run in order, except that successive reads run together. Starts the calls for
 * this path that need not wait any more.
 */
static void run_next(struct toolhost *toolhost, const char *path)
{
	bool has_earlier = false;
	bool has_write = false;
	LIST_FOR_EACH(file, &toolhost->files, struct file_call, link) {
		if (strcmp(file->path, path) != 0) {
			continue;
		}
		bool waits = has_write || (file->is_write && has_earlier);
		has_earlier = true;
		has_write = has_write || file->is_write;
		if (!waits && !file->is_running) {
			run(file);
		}
	}
}

static void release(struct tool_call *call)
{
	struct file_call *file = from_call(call);
	struct toolhost *toolhost = call->toolhost;
	file_op_cancel(file->op);
	file->op = NULL;
	ev_timer_stop(toolhost->config.loop, &file->due);
	list_remove(&file->link);
	toolhost->read_count -= file->is_counted ? 1 : 0;
	if (!toolhost->is_ending) {
		run_next(toolhost, file->path);
		toolhost_resume(toolhost);
	}
	toolhost->held_bytes -= shared_span(file->content).len;
	shared_release(file->content);
	words_free(file->roots);
	free(file->path);
	free(file->resolved);
}

/* ---- failures ---- */

static void fail(struct file_call *file, const struct error *err)
{
	const struct toolhost *toolhost = file->call.toolhost;
	struct tool_call *call = &file->call;
	if (err->code == ERROR_NOT_FOUND && !err->reason) {
		call->failure_path = mem_strdup(file->path);
		tool_call_fail(call, "RESOURCE_NOT_FOUND", "Resource not found: %s", file->path);
	} else if (err->code == ERROR_LIMIT && !err->reason) {
		tool_call_fail(call, "RESOURCE_LIMIT_EXCEEDED",
			"%s %s: it has more than max-file (%zu bytes)", doing(file), file->path,
			toolhost->config.limits.max_file);
	} else {
		tool_call_fail_with(call, err);
	}
}

/* Frees the call; the calls that waited for it begin. */
static void finish(struct file_call *file, const struct error *err)
{
	file->op = NULL;
	if (err) {
		fail(file, err);
	} else {
		tool_call_answer(&file->call);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct file_call *file = CONTAINER_OF(timer, struct file_call, due);
	struct error err;
	if (sandbox_extend_timer(file->call.toolhost->config.sandbox, timer, &file->away_ms)) {
		return;
	}
	error_set(&err, ERROR_TIMEOUT, "%s %s: not done within file-timeout (%d ms)", doing(file),
		file->path, file->call.toolhost->config.limits.file_timeout_ms);
	file_op_cancel(file->op);
	finish(file, &err);
}

/*
 * Starts the deadline: from the call on, including the wait for earlier calls, but not while the
 * agent does not read.
 */
static void start_clock(struct file_call *file)
{
	if (file->call.toolhost->config.limits.file_timeout_ms > 0) {
		ev_timer_start(file->call.toolhost->config.loop, &file->due);
	}
}

/* ---- reading ---- */

/* The offset of a line, the first being 1; the end of the text if it has fewer. */
static size_t line_start(struct span text, unsigned long long line)
{
	size_t at = 0;
	for (unsigned long long i = 1; i < line; i++) {
		const char *end = memchr(text.data + at, '\n', text.len - at);
		if (!end) {
			return text.len;
		}
		at = (size_t)(end - text.data) + 1;
	}
	return at;
}

/* The requested lines, with their line endings unchanged. */
static struct span pick_lines(struct span text, unsigned long long line, unsigned long long limit)
{
	if (text.len == 0) {
		return text;
	}
	size_t start = line_start(text, line);
	text = (struct span){text.data + start, text.len - start};
	if (text.len > 0 && limit < text.len) { // a line has at least one byte
		text.len = line_start(text, limit + 1);
	}
	return text;
}

static bool refuse_bytes(const struct file_call *file, size_t valid, struct error *err)
{
	return error_set_reason(err, ERROR_PROTOCOL, "FILE_NOT_TEXT",
		"reading %s: it is not text, byte %zu is not UTF-8", file->path, valid);
}

/* The bytes in front of the lines must be UTF-8, too. A whole file is checked while it is copied.
 */
static bool write_content(struct file_call *file, struct span text, struct error *err)
{
	bool is_whole = file->line <= 1 && file->limit >= text.len;
	size_t valid = is_whole ? text.len : utf8_valid_length(text.data, text.len);
	if (valid < text.len) {
		return refuse_bytes(file, valid, err);
	}
	struct span picked = is_whole ? text : pick_lines(text, file->line, file->limit);
	/* Reserves enough for most texts: one sixteenth more, for escapes. */
	size_t most = ANSWER_HEAD + picked.len + picked.len / 16 + ANSWER_MORE;
	if (!buf_reserve(&file->call.result, most, err)) {
		return false;
	}
	buf_commit(&file->call.result, ANSWER_HEAD);
	struct json_writer writer;
	json_write_begin(&writer, &file->call.result);
	json_write_object(&writer);
	json_write_key(&writer, "content");
	valid = json_write_valid_string(&writer, picked);
	json_write_object_end(&writer);
	buf_consume(&file->call.result, ANSWER_HEAD);
	return json_write_end(&writer, err) &&
	       (valid == picked.len || refuse_bytes(file, valid, err));
}

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct file_call *file = data;
	struct error failure;
	bool is_missing = err && err->code == ERROR_NOT_FOUND;
	struct span text = {"", 0};
	if (!err) {
		text = buf_span(content);
	} else if (!is_missing || !file->call.toolhost->quirks->missing_file_is_empty) {
		finish(file, err);
		return;
	}
	bool is_written = write_content(file, text, &failure);
	finish(file, is_written ? NULL : &failure);
}

/* ---- writing ---- */

static void resolve(struct file_call *file);

static void on_written(void *data, const struct error *err)
{
	struct file_call *file = data;
	struct error failure;
	if (err && file->is_guessed && err->reason &&
		strcmp(err->reason, "SECURITY_VIOLATION") == 0) {
		file->is_guessed = false;
		file->op = NULL;
		free(file->resolved);
		file->resolved = NULL;
		resolve(file);
		return;
	}
	if (!err && !buf_append(&file->call.result, SPAN_LITERAL("{}"), &failure)) {
		err = &failure;
	}
	finish(file, err);
}

/* ---- both ---- */

/* Serves a resolved path as it was resolved: a link that has replaced it since is refused. */
static void begin_read(struct file_call *file)
{
	const struct toolhost_config *config = &file->call.toolhost->config;
	size_t max_file = config->limits.max_file;
	file->op = file->resolved ? sandbox_read_resolved(config->sandbox, file->resolved, max_file,
					    on_read, file)
	                          : sandbox_read_file(
					    config->sandbox, file->path, max_file, on_read, file);
}

static void refuse(struct file_call *file, const char *why)
{
	struct error err;
	error_set_reason(
		&err, ERROR_DENIED, "SECURITY_VIOLATION", "%s: refused, %s", file->path, why);
	finish(file, &err);
}

static void look_for_git(struct file_call *file);

/* A file that exists but cannot be examined counts as existing. */
static void on_probed(void *data, const struct stat *status, const struct error *err)
{
	struct file_call *file = data;
	file->op = NULL;
	git_write_tell(&file->git, !err || err->code != ERROR_NOT_FOUND);
	look_for_git(file);
}

/*
 * Looks for files such as hooks and config: the user's next git command would run commands from
 * them.
 */
static void look_for_git(struct file_call *file)
{
	char probe[FILE_PATH_MAX + 16];
	struct sandbox *sandbox = file->call.toolhost->config.sandbox;
	switch (git_write_next(&file->git, probe, sizeof(probe))) {
	case GIT_WRITE_PROBE:
		file->op = sandbox_stat_file(sandbox, probe, on_probed, file);
		break;
	case GIT_WRITE_REFUSED:
		refuse(file, "it belongs to a git repository, and git runs commands that it names");
		break;
	case GIT_WRITE_FINE:
		file->op = sandbox_write_resolved(
			sandbox, file->resolved, file->content, on_written, file);
		break;
	}
}

static void begin(struct file_call *file)
{
	if (file->is_write &&
		sandbox_is_pinned(file->call.toolhost->config.sandbox, file->resolved)) {
		refuse(file, "it is guarded, and the agent is confined in the workspace itself");
	} else if (file->is_write) {
		git_write_begin(&file->git, file->resolved);
		look_for_git(file);
	} else {
		begin_read(file);
	}
}

static void on_resolved(void *data, const char *path, const struct error *err)
{
	struct file_call *file = data;
	file->op = NULL;
	if (err) {
		finish(file, err);
	} else if (!tool_is_below(path, (const char *const *)file->roots)) {
		refuse(file, "it leads out of the session's roots");
	} else {
		file->resolved = mem_strdup(path);
		begin(file);
	}
}

static void resolve(struct file_call *file)
{
	file->op = sandbox_resolve_path(
		file->call.toolhost->config.sandbox, file->path, on_resolved, file);
}

/* Whether a path could be free of links, judging by its text. */
static bool may_be_resolved(const char *path)
{
	if (*path != '/') {
		return false;
	}
	while (*path) {
		size_t len = strcspn(++path, "/");
		bool is_dots = (len == 1 && path[0] == '.') ||
		               (len == 2 && path[0] == '.' && path[1] == '.');
		if (len == 0 || is_dots) {
			return false;
		}
		path += len;
	}
	return true;
}

/*
 * A write must know where a link leads. Most paths have no link, so the path is written as if it
 * were resolved. A link makes that fail, and only then is the path resolved.
 */
static void guess(struct file_call *file)
{
	if (may_be_resolved(file->path) &&
		tool_is_below(file->path, (const char *const *)file->roots)) {
		file->is_guessed = true;
		file->resolved = mem_strdup(file->path);
		begin(file);
	} else {
		resolve(file);
	}
}

/* The sandbox confines paths to all of its roots; this confines them to those of the session. */
static void serve_file(struct tool_call *call)
{
	struct file_call *file = from_call(call);
	struct toolhost *toolhost = call->toolhost;
	bool covers = tool_covers_sandbox(toolhost, (const char *const *)file->roots);
	file->is_counted = !file->is_write;
	toolhost->read_count += file->is_counted ? 1 : 0;
	start_clock(file);
	if (file->resolved) {
		begin(file);
	} else if (file->is_write) {
		guess(file);
	} else if (covers) {
		begin(file);
	} else {
		resolve(file);
	}
}

/* A file may be long: it is not read for an agent that does not read its answers. */
static void run(struct file_call *file)
{
	file->is_running = true;
	if (file->is_write || !tool_call_hold(&file->call, TOOL_HOLD_READ, serve_file)) {
		serve_file(&file->call);
	} else {
		ev_timer_stop(file->call.toolhost->config.loop, &file->due);
	}
}

static void submit(struct file_call *file, const struct tool_params *params, bool is_write)
{
	struct toolhost *toolhost = file->call.toolhost;
	file->is_write = is_write;
	file->roots = environment_merge(params->roots, NULL);
	list_append(&toolhost->files, &file->link);
	file->call.release = release;
	ev_timer_init(&file->due, on_due, toolhost->config.limits.file_timeout_ms / 1000., 0.);
	file->away_ms = sandbox_away_ms(toolhost->config.sandbox);
	start_clock(file);
	if (params->resolved && !tool_is_below(params->resolved, params->roots)) {
		refuse(file, "it leads out of the session's roots");
		return;
	}
	file->resolved = params->resolved ? mem_strdup(params->resolved) : NULL;
	run_next(toolhost, file->path);
}

static bool take_path(struct file_call *file, const struct tool_params *params)
{
	char *path = tool_string_at(&file->call, params, PLACE_PATH, "path");
	if (!path) {
		return false;
	}
	if (strlen(path) >= FILE_PATH_MAX) {
		tool_call_fail(&file->call, "INVALID_PARAMS",
			"\"path\" has %zu bytes, more than %d", strlen(path), FILE_PATH_MAX - 1);
		free(path);
		return false;
	}
	file->path = path;
	return true;
}

static void serve_read(struct tool_call *call, const struct tool_params *params)
{
	struct file_call *file = from_call(call);
	file->line = 1;
	file->limit = ULLONG_MAX;
	if (tool_number(call, params, "line", &file->line) &&
		tool_number(call, params, "limit", &file->limit) && take_path(file, params)) {
		submit(file, params, false);
	}
}

/* How many bytes may wait to be written. */
static size_t held_max(const struct toolhost *toolhost)
{
	size_t most = toolhost->config.limits.max_file;
	most = most > SIZE_MAX / 4 ? SIZE_MAX : most * 4;
	return most > TOOL_HELD_MIN ? most : TOOL_HELD_MIN;
}

static bool take_content(struct file_call *file, const struct tool_params *params)
{
	struct toolhost *toolhost = file->call.toolhost;
	struct span raw = message_place(params->message, PLACE_CONTENT);
	size_t max_file = toolhost->config.limits.max_file;
	struct buf content;
	struct error err;
	if (raw.len == 0 || raw.data[0] != '"') {
		tool_call_fail(
			&file->call, "INVALID_PARAMS", "\"content\" is missing or not a string");
		return false;
	}
	buf_init(&content, max_file);
	if (!json_decode_checked(raw, &content, &err)) {
		tool_call_fail(&file->call, "RESOURCE_LIMIT_EXCEEDED",
			"writing %s: the content has more than max-file (%zu bytes)", file->path,
			max_file);
	} else if (toolhost->held_bytes + content.len > held_max(toolhost)) {
		tool_call_fail(&file->call, "RESOURCE_LIMIT_EXCEEDED",
			"writing %s: %zu bytes are already waiting to be written", file->path,
			toolhost->held_bytes);
	} else {
		toolhost->held_bytes += content.len;
		file->content = shared_take(&content);
		return true;
	}
	buf_finish(&content);
	return false;
}

static void serve_write(struct tool_call *call, const struct tool_params *params)
{
	struct file_call *file = from_call(call);
	if (!take_path(file, params)) {
		return;
	}
	char *path = file->path;
	if (take_content(file, params)) {
		submit(file, params, true);
	} else {
		free(path);
	}
}

const struct tool_method file_methods[] = {
	{"fs/read_text_file", sizeof(struct file_call), true, serve_read},
	{"fs/write_text_file", sizeof(struct file_call), false, serve_write},
};
const size_t file_method_count = ARRAY_LENGTH(file_methods);
