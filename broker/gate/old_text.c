/* SPDX-License-Identifier: MIT */
#include "broker/gate/old_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json_utf8.h"
#include "base/json_writer.h"

struct old_text {
	struct old_text_source source;
	old_text_done *done; // NULL once it was called
	void *data;
	char *path;           // owned
	struct file_op *op;   // in the sandbox; may be NULL
	struct pool_job job;  // on this machine
	ev_timer due;         // the deadline; reports what is known by then
	struct buf content;   // of the job
	struct error failure; // of the job; ERROR_NONE: content is complete
};

/* ---- the result ---- */

static const char too_large[] = "it is larger than is shown here";

static void tell(struct old_text *old_text, const struct old_text_answer *answer)
{
	old_text_done *done = old_text->done;
	old_text->done = NULL;
	ev_timer_stop(old_text->source.loop, &old_text->due);
	done(old_text->data, answer);
}

static void tell_unknown(struct old_text *old_text, const char *reason)
{
	tell(old_text, &(struct old_text_answer){.kind = OLD_TEXT_UNKNOWN, .reason = reason});
}

static void tell_content(struct old_text *old_text, struct span text)
{
	struct json_writer writer;
	struct buf json;
	if (utf8_valid_length(text.data, text.len) < text.len) {
		tell_unknown(old_text, "it is not text");
		return;
	}
	buf_init(&json, OLD_TEXT_MAX);
	json_write_begin(&writer, &json);
	json_write_string(&writer, text);
	if (json_write_end(&writer, NULL)) {
		tell(old_text,
			&(struct old_text_answer){.kind = OLD_TEXT_KNOWN, .json = buf_span(&json)});
	} else {
		tell_unknown(old_text, too_large);
	}
	buf_finish(&json);
}

static void tell_result(struct old_text *old_text, struct span text, const struct error *err)
{
	if (!err) {
		tell_content(old_text, text);
	} else if (err->code == ERROR_NOT_FOUND && !err->reason) {
		tell(old_text, &(struct old_text_answer){.kind = OLD_TEXT_NEW});
	} else {
		tell_unknown(old_text, err->code == ERROR_LIMIT ? too_large : err->text);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct old_text *old_text = CONTAINER_OF(timer, struct old_text, due);
	tell_unknown(old_text, "it takes too long to read");
}

/* ---- in the sandbox ---- */

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct old_text *old_text = data;
	old_text->op = NULL;
	tell_result(old_text, err ? (struct span){NULL, 0} : buf_span(content), err);
}

/* ---- on this machine ---- */

/* Returns -1 unless it is a regular file; even opening a device can have effects. */
static int open_regular(const char *path, struct error *err)
{
	char self[64];
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0 || fstat(found, &status) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "%s", path);
		err->code = errnum == ENOENT ? ERROR_NOT_FOUND : err->code;
		return -1;
	}
	if (!S_ISREG(status.st_mode)) {
		error_set(err, ERROR_DENIED, "%s: it is not a regular file", path);
		return -1;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
	int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "%s", path);
	}
	return fd;
}

static bool read_file(const char *path, struct buf *out, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open_regular(path, err);
	ssize_t count = 1;
	if (fd < 0) {
		return false;
	}
	while (count > 0) {
		char *space = buf_reserve(out, OLD_TEXT_MAX + 1 - out->len, err);
		count = space ? read(fd, space, OLD_TEXT_MAX + 1 - out->len) : -1;
		if (count < 0) {
			int errnum = errno;
			return error_set_errno(err, errnum, "%s", path);
		}
		buf_commit(out, (size_t)count);
		if (out->len > OLD_TEXT_MAX) {
			return error_set(err, ERROR_LIMIT, "%s", too_large);
		}
	}
	return true;
}

static void run_job(struct pool_job *job)
{
	struct old_text *old_text = CONTAINER_OF(job, struct old_text, job);
	if (read_file(old_text->path, &old_text->content, &old_text->failure)) {
		old_text->failure.code = ERROR_NONE;
	}
}

static void drop(struct pool_job *job)
{
	struct old_text *old_text = CONTAINER_OF(job, struct old_text, job);
	buf_finish(&old_text->content);
	free(old_text->path);
	free(old_text);
}

static void on_job_done(struct pool_job *job)
{
	struct old_text *old_text = CONTAINER_OF(job, struct old_text, job);
	bool has_failed = old_text->failure.code != ERROR_NONE;
	if (old_text->done) {
		tell_result(old_text, buf_span(&old_text->content),
			has_failed ? &old_text->failure : NULL);
	}
}

/* ---- life ---- */

struct old_text *old_text_load(
	const struct old_text_source *source, const char *path, old_text_done *done, void *data)
{
	struct old_text *old_text = mem_alloc_zero(sizeof(*old_text));
	old_text->source = *source;
	old_text->done = done;
	old_text->data = data;
	old_text->path = mem_strdup(path);
	old_text->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run_job, .done = on_job_done, .drop = drop};
	buf_init(&old_text->content, OLD_TEXT_MAX + 1);
	ev_timer_init(&old_text->due, on_due, OLD_TEXT_MS / 1000., 0.);
	bool is_submitted = false;
	if (source->sandbox && source->is_resolved) {
		old_text->op = sandbox_read_resolved(
			source->sandbox, path, OLD_TEXT_MAX, on_read, old_text);
	} else if (source->sandbox) {
		old_text->op =
			sandbox_read_file(source->sandbox, path, OLD_TEXT_MAX, on_read, old_text);
	} else {
		old_text->failure.code = ERROR_UNAVAILABLE; // until the job sets the result
		is_submitted = pool_submit(source->pool, &old_text->job, NULL);
	}
	bool is_under_way = old_text->op || is_submitted;
	ev_timer_set(&old_text->due, is_under_way ? OLD_TEXT_MS / 1000. : 0., 0.);
	ev_timer_start(source->loop, &old_text->due);
	return old_text;
}

void old_text_destroy(struct old_text *old_text)
{
	if (!old_text) {
		return;
	}
	ev_timer_stop(old_text->source.loop, &old_text->due);
	file_op_cancel(old_text->op);
	old_text->op = NULL;
	pool_leave(&old_text->job);
}
