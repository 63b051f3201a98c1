/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "providers/remote/remote_impl.h"

static const char start_text[] =
#include "providers/remote/variables.sh.inc"
#include "providers/remote/start.sh.inc"
	;

/* The only machine for which there is a runner. */
static const char machine[] = "x86_64";

static long long answer_ms(const struct remote *remote)
{
	const struct remote_request *request = &remote->request;
	bool is_first = request->first_ms > 0 && !remote->start.was_answered;
	return is_first ? request->first_ms : request->timeout_ms;
}

static void wait_for_answer(struct remote *remote)
{
	ev_timer *deadline = &remote->start.deadline;
	ev_timer_stop(remote->request.loop, deadline);
	ev_timer_set(deadline, (double)answer_ms(remote) / 1000., 0.);
	ev_timer_start(remote->request.loop, deadline);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct remote *remote = CONTAINER_OF(timer, struct remote, start.deadline);
	char why[REMOTE_MARK_MAX];
	text_format(why, sizeof(why), "the host did not answer within %lld s",
		answer_ms(remote) / 1000);
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", "%s", why);
	remote_hold(remote);
	remote->start.was_late = true;
	if (remote->is_ready) {
		remote_end_stream(remote, &err);
	} else {
		remote_unfit(remote, why);
	}
	remote_let_go(remote);
}

/* ---- what is sent ---- */

void remote_start_flush(struct remote *remote)
{
	struct remote_start *start = &remote->start;
	struct span script = buf_span(&start->unsent);
	if (script.len > 0 && remote->stream) {
		buf_consume(&start->unsent, carrier_write(remote->stream, script));
	}
	while (start->unsent.len == 0 && start->image_left > 0 && remote->stream) {
		struct span all = start->image.bytes;
		struct span rest = {all.data + all.len - start->image_left, start->image_left};
		size_t taken = carrier_write(remote->stream, rest);
		start->image_left -= taken;
		if (taken < rest.len) {
			wait_for_answer(remote);
			return;
		}
	}
	if (!remote->request.image) {
		runner_image_drop(&start->image);
	}
}

bool remote_start_has_unsent(const struct remote *remote)
{
	return remote->start.unsent.len > 0 || remote->start.image_left > 0;
}

/* ---- answers ---- */

static void on_send(struct remote *remote, const char *rest)
{
	struct remote_start *start = &remote->start;
	if (start->image_left > 0 || ++start->sends > REMOTE_SENDS_MAX) {
		remote_unfit(remote, "the host requests the runner again and again");
		return;
	}
	if (start->sends == 1 && remote->listener->on_progress) {
		remote->listener->on_progress(remote->data, "Uploading the runner to the host");
	}
	start->image_left = start->image.bytes.len;
	remote_start_flush(remote);
}

static void on_runner(struct remote *remote, const char *rest)
{
	mem_set_text(&remote->attach.folder, rest);
	remote->start.is_over = true;
	remote_begin_link(remote);
}

static void on_scripts(struct remote *remote, const char *rest)
{
	char why[REMOTE_LINE_MAX];
	runner_show(why, sizeof(why), span_of(rest));
	remote_unfit(remote, why);
}

static void on_tied(struct remote *remote, const char *rest)
{
	runner_show(remote->tied, sizeof(remote->tied), span_of(rest));
	remote->request.outlives = false;
}

static const struct {
	const char *name;
	void (*handle)(struct remote *remote, const char *rest);
	bool is_further;
} answers[] = {{"send", on_send, false}, {"tied", on_tied, false}, {"runner", on_runner, false},
	{"scripts", on_scripts, false}, {"attach", remote_attach_on_question, true},
	{"gone", remote_attach_on_gone, true}};

static void on_line(struct remote *remote, const char *line)
{
	size_t len = strcspn(line, " ");
	wait_for_answer(remote);
	for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
		if (span_is((struct span){line, len}, answers[i].name) && line[len] &&
			answers[i].is_further == remote->start.is_further) {
			answers[i].handle(remote, line + len + 1);
			return;
		}
	}
	if (!remote->start.is_further) {
		remote->listener->on_fact(remote->data, line);
	}
}

static void refuse(struct remote *remote, const char *why)
{
	if (remote->is_ready) {
		remote_attach_on_gone(remote, why);
	} else {
		remote_unfit(remote, why);
	}
}

size_t remote_start_take(struct remote *remote, struct span bytes)
{
	struct remote_start *start = &remote->start;
	size_t at = script_begin_skip(&start->begin, bytes);
	if (!start->was_answered && start->begin.is_over) {
		start->was_answered = true;
		wait_for_answer(remote);
	}
	while (at < bytes.len && !start->is_over && !remote->is_over && remote->stream) {
		const char *from = bytes.data + at;
		const char *newline = memchr(from, '\n', bytes.len - at);
		size_t len = newline ? (size_t)(newline - from) : bytes.len - at;
		struct error err;
		if (!buf_append(&start->line, (struct span){from, len}, &err)) {
			refuse(remote, "an answer of the host is too long");
			break;
		}
		at += len;
		if (newline) {
			at++;
			char *line = mem_strndup(buf_span(&start->line));
			buf_clear(&start->line);
			on_line(remote, line);
			free(line);
		}
	}
	return at;
}

/* ---- life ---- */

/* The script, as one line. */
static bool append_script(struct remote_start *start, const struct remote_request *request,
	const char *before, struct error *err)
{
	return buf_append_format(&start->unsent, err,
		       "%sacp_token=%s; acp_build=%s; acp_size=%zu; acp_machine=%s; "
		       "acp_mode='%s'; acp_more='%s'; acp_before() { :; }; ",
		       SCRIPT_SET_NEWLINE, request->token, start->image.build,
		       start->image.bytes.len, machine, request->outlives ? "apart" : "",
		       request->variables ? request->variables : "") &&
	       buf_append(&start->unsent, span_of(before), err) &&
	       buf_append(&start->unsent, SPAN_LITERAL(" eval "), err) &&
	       script_quote_append(&start->unsent, span_of(start_text), err) &&
	       buf_append(&start->unsent, SPAN_LITERAL("\n"), err);
}

bool remote_start_begin(struct remote *remote, struct error *err)
{
	struct remote_start *start = &remote->start;
	const char *before = remote->request.before ? remote->request.before : "";
	bool has_program = remote->request.program != NULL;
	buf_init(&start->line, REMOTE_LINE_MAX);
	buf_init(&start->unsent, REMOTE_SCRIPT_MAX);
	ev_init(&start->deadline, on_deadline);
	if (remote->request.image) {
		start->image = *remote->request.image;
	} else if (!runner_image_find(machine, &start->image)) {
		return error_set(err, ERROR_UNAVAILABLE, "this program contains no runner");
	}
	if (has_program ? !buf_append_format(&start->unsent, err, "%sbegin\n", before)
			: !append_script(start, &remote->request, before, err)) {
		return false;
	}
	wait_for_answer(remote);
	return true;
}

bool remote_start_further(struct remote *remote, struct error *err)
{
	struct remote_start *start = &remote->start;
	buf_init(&start->line, REMOTE_LINE_MAX);
	buf_init(&start->unsent, REMOTE_SCRIPT_MAX);
	start->begin = (struct script_begin){0};
	start->is_over = false;
	start->is_further = true;
	wait_for_answer(remote);
	return remote_attach_script(remote, &start->unsent, err);
}

void remote_start_finish(struct remote *remote)
{
	struct remote_start *start = &remote->start;
	ev_timer_stop(remote->request.loop, &start->deadline);
	buf_finish(&start->line);
	buf_finish(&start->unsent);
	start->image_left = 0;
}
