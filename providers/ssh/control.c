/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/utf8.h"
#include "providers/mux/wire.h"
#include "providers/script_line.h"
#include "providers/ssh/host_impl.h"

enum { SAID_MAX = 400, SAID_SHOWN_MAX = 160, SCRIPT_MAX = 256 * 1024, BEAT_MAX_MS = 15000 };

/* ---- sending ---- */

static void flush(struct ssh_control *control)
{
	struct span unsent = buf_span(&control->unsent);
	if (control->channel && unsent.len > 0) {
		buf_consume(&control->unsent, ssh_channel_write(control->channel, unsent));
	}
}

void ssh_control_order(struct ssh_host *host, const char *format, ...)
{
	struct ssh_control *control = &host->control;
	char line[256];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	assert(len > 0 && len < (int)sizeof(line));
	if (!control->is_ready) {
		return;
	}
	struct error ignored;
	/*
	 * Over the limit, the host has not read for long; then the watch on that side ends the run.
	 */
	if (buf_append(&control->unsent, (struct span){line, (size_t)len}, &ignored)) {
		flush(control);
	}
}

static void on_beat(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_control *control = CONTAINER_OF(timer, struct ssh_control, beat);
	struct ssh_host *host = CONTAINER_OF(control, struct ssh_host, control);
	if (control->unsent.len == 0) {
		ssh_control_order(host, "beat\n");
		ssh_processes_look(host);
	}
}

static void start_beats(struct ssh_host *host)
{
	long long beat_ms = host->request.grace_ms / 4;
	beat_ms = beat_ms > BEAT_MAX_MS ? BEAT_MAX_MS : beat_ms;
	double pause_s = beat_ms < 100 ? 0.1 : (double)beat_ms / 1000.;
	ev_timer_stop(host->loop, &host->control.beat);
	ev_timer_set(&host->control.beat, pause_s, pause_s);
	ev_timer_start(host->loop, &host->control.beat);
}

/* ---- receiving ---- */

static void fail(struct ssh_host *host, enum error_code code, const char *reason, const char *why)
{
	struct error err;
	error_set_reason(&err, code, reason, "preparing %s: %s", ssh_host_name(host), why);
	ssh_host_fail(host, &err);
}

/* Processes that a lost connection left behind would work beside those that start now. */
static void fail_earlier(struct ssh_host *host, const char *rest)
{
	char why[ERROR_TEXT_MAX];
	char *who = path_quote(span_of(rest));
	text_format(why, sizeof(why),
		"processes of a lost connection still run there and could not be "
		"ended, so no other agent starts in the same folder: %s; end them "
		"there, or wait %lld s (%s) until they end",
		who, ssh_longest_grace_ms(host) / 1000,
		ssh_grace_key(host, ssh_longest_grace_ms(host)));
	free(who);
	fail(host, ERROR_UNAVAILABLE, "AGENT_STILL_RUNNING", why);
}

void ssh_control_forget_runs(struct ssh_host *host)
{
	if (host->request.runs) {
		ssh_runs_forget(host->request.runs, host->request.place, host->control.told_runs);
	}
}

/* The host chooses the path. A later connection ends the run whose token is in it. */
static bool take_run(struct ssh_host *host, const char *folder)
{
	if (!ssh_run_is_named(folder, host->token)) {
		fail(host, ERROR_PROTOCOL, NULL, "it names the folder of another run");
		return false;
	}
	mem_set_text(&host->control.run_folder, folder);
	return true;
}

/* What a killed broker has left there, and nobody could end. */
static void take_kept(struct ssh_host *host, const char *rest)
{
	char text[ERROR_TEXT_MAX];
	struct ssh_runs *runs = host->request.runs;
	if (runs && ssh_runs_keep(runs, host->request.place, rest, text, sizeof(text)) &&
		words_count(host->control.kept) < SSH_KEPT_MAX) {
		words_append(&host->control.kept, text);
	}
}

static void become_ready(struct ssh_host *host, const char *run_folder)
{
	struct ssh_control *control = &host->control;
	if (!take_run(host, run_folder)) {
		return;
	}
	ssh_control_forget_runs(host);
	control->is_ready = true;
	buf_finish(&control->said);
	ev_timer_stop(host->loop, &control->deadline);
	start_beats(host);
	ssh_links_begin(host);
	ssh_host_note_run(host);
	ssh_login_start(host);
}

bool ssh_control_take_fact(struct ssh_host *host, const char *line)
{
	struct ssh_control *control = &host->control;
	const char *rest;
	if (script_take_word(line, "set", &rest)) {
		if (words_count(control->environment) < SSH_WORDS_MAX) {
			words_append(&control->environment, rest);
		}
	} else if (script_take_word(line, "node", &rest)) {
		mem_set_text(&control->node, rest);
	} else if (script_take_word(line, "run", &rest)) {
		(void)take_run(host, rest);
	} else if (script_take_word(line, "kept", &rest)) {
		take_kept(host, rest);
	} else if (script_take_word(line, "ended", &rest)) {
		control->ended += (unsigned)strtoul(rest, NULL, 10);
	} else if (script_take_word(line, "left", &rest)) {
		fail_earlier(host, rest);
	} else {
		return false;
	}
	return true;
}

static void on_line(struct ssh_host *host, char *line)
{
	struct ssh_control *control = &host->control;
	const char *rest;
	char *end;
	unsigned long id = strtoul(line, &end, 10);
	if (control->is_ready) {
		if (end > line && *end == ' ') {
			ssh_process_on_event(host, (unsigned)id, end + 1);
		}
	} else if (script_take_word(line, "ready", &rest)) {
		become_ready(host, rest);
	} else if (script_take_word(line, "fatal", &rest)) {
		char why[ERROR_TEXT_MAX];
		runner_show(why, sizeof(why), span_of(rest));
		fail(host, ERROR_UNAVAILABLE, NULL, why);
	} else {
		(void)ssh_control_take_fact(host, line);
	}
}

/* A handler may close the host, but the control exists until the host is left. */
static void take_lines(struct ssh_host *host)
{
	struct ssh_control *control = &host->control;
	while (!host->is_over) {
		struct span text = buf_span(&control->line);
		const char *newline = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
		if (!newline) {
			return;
		}
		size_t len = (size_t)(newline - text.data);
		char *line = mem_strndup((struct span){text.data, len});
		buf_consume(&control->line, len + 1);
		on_line(host, line);
		free(line);
	}
}

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct ssh_host *host = data;
	struct ssh_control *control = &host->control;
	struct error err;
	size_t all = bytes.len;
	size_t skipped = stream == SSH_STREAM_OUT ? script_begin_skip(&control->begin, bytes) : all;
	if (!control->is_ready && skipped > 0) {
		size_t room = SAID_MAX - control->said.len;
		(void)!buf_append(&control->said,
			(struct span){bytes.data, skipped < room ? skipped : room}, &err);
	}
	bytes.data += skipped;
	bytes.len -= skipped;
	ssh_host_enter(host);
	while (bytes.len > 0 && !host->is_over) {
		size_t room = SSH_LINE_MAX - control->line.len;
		size_t len = bytes.len < room ? bytes.len : room;
		if (len == 0 || !buf_append(&control->line, (struct span){bytes.data, len}, &err)) {
			fail(host, ERROR_PROTOCOL, NULL,
				"the control shell sent a line that is too long");
			break;
		}
		bytes.data += len;
		bytes.len -= len;
		take_lines(host);
	}
	ssh_host_leave(host);
	return all;
}

static void on_eof(void *data, enum ssh_stream stream)
{
}

static void on_writable(void *data)
{
	struct ssh_host *host = data;
	flush(&host->control);
}

static void on_open(void *data)
{
	struct ssh_host *host = data;
	host->control.is_open = true;
	ssh_link_prove(LIST_FIRST(&host->links, struct ssh_link, link));
}

static void on_refused(void *data, const struct error *err)
{
	struct ssh_host *host = data;
	ssh_host_enter(host);
	struct error failure = *err;
	error_prefix(&failure, "preparing %s: the first channel was refused", ssh_host_name(host));
	ssh_host_fail(host, &failure);
	ssh_host_leave(host);
}

/*
 * The login worked, but the host runs another program than we requested: sshd_config(5) and sshd(8)
 * allow that, and the login shell may not be a shell.
 */
static const char forced[] = "the host runs its own program instead of the broker's shell";
static const char forced_cure[] =
	"see ForceCommand in its sshd_config, command= before the key in authorized_keys, and the "
	"login shell (nologin, git-shell); take an account, or a key, without these";

/* Quotes the first part of the program's output; the error's detail has all. The caller frees it.
 */
static char *quote_said(const struct ssh_control *control)
{
	struct span all = buf_span(&control->said);
	struct span said = {all.data, all.len < SAID_SHOWN_MAX ? all.len : SAID_SHOWN_MAX};
	if (said.len == all.len) {
		return said.len > 0 ? path_quote(said) : mem_strdup("nothing");
	}
	said.len = utf8_whole_length(said);
	char *quoted = path_quote(said);
	size_t size = strlen(quoted) + sizeof(TEXT_CUT);
	char *text = mem_alloc(size);
	text_format(text, size, "%s" TEXT_CUT, quoted);
	free(quoted);
	return text;
}

/* The control ended before our script began. */
static void fail_foreign(struct ssh_host *host, const struct ssh_channel_end *end)
{
	char how[64] = "";
	char why[ERROR_TEXT_MAX];
	char *said = quote_said(&host->control);
	if (end->is_known) {
		snprintf(how, sizeof(how), " with status %d", end->code);
	}
	text_format(why, sizeof(why), "%s; that program ended%s and wrote to %s: %s", forced, how,
		said, forced_cure);
	free(said);
	fail(host, ERROR_CONFIG, "HOST_COMMAND_FORCED", why);
}

/* The shell did not begin, or was killed. */
static void on_closed(void *data, const struct ssh_channel_end *end)
{
	struct ssh_host *host = data;
	struct error err;
	ssh_host_enter(host);
	bool was_killed = end->is_known && end->signal != 0;
	if (host->control.is_ready) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
			"%s: the shell on the host that controls all processes has ended",
			ssh_host_name(host));
		ssh_host_fail(host, &err);
	} else if (!host->control.begin.is_over && !was_killed) {
		fail_foreign(host, end);
	} else {
		fail(host, ERROR_UNAVAILABLE, NULL,
			"the shell on the host that controls all processes ended before it was "
			"ready");
	}
	ssh_host_leave(host);
}

static void on_lost(void *data, const struct error *err)
{
	/* The connection raises on_lost afterwards. */
	struct ssh_host *host = data;
	ssh_channel_close(host->control.channel);
	host->control.channel = NULL;
}

static const struct ssh_channel_listener control_listener = {
	.on_open = on_open,
	.on_refused = on_refused,
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_writable = on_writable,
	.on_closed = on_closed,
	.on_lost = on_lost,
};

static long long timeout_ms(const struct ssh_host *host)
{
	long long first = host->request.first_timeout_ms;
	return first > 0 ? first : host->request.channel_timeout_ms;
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_control *control = CONTAINER_OF(timer, struct ssh_control, deadline);
	struct ssh_host *host = CONTAINER_OF(control, struct ssh_host, control);
	ssh_host_enter(host);
	char why[ERROR_TEXT_MAX];
	text_format(why, sizeof(why),
		"no shell was started on the host within %lld s (channel-timeout): the server has "
		"not answered, or the login shell does not start /bin/sh",
		timeout_ms(host) / 1000);
	if (control->is_open && !control->begin.is_over) {
		char *said = quote_said(control);
		text_append(why, sizeof(why), "; or %s, which wrote to %s: %s", forced, said,
			forced_cure);
		free(said);
	}
	fail(host, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", why);
	ssh_host_leave(host);
}

/* ---- life ---- */

bool ssh_control_open(struct ssh_host *host, struct error *err)
{
	struct ssh_control *control = &host->control;
	char command[SSH_COMMAND_MAX];
	ssh_control_command(command, host);
	buf_init(&control->line, SSH_LINE_MAX);
	buf_init(&control->said, SAID_MAX);
	buf_init(&control->unsent, SCRIPT_MAX + SSH_ORDERS_MAX);
	ev_init(&control->beat, on_beat);
	ev_timer_init(&control->deadline, on_deadline, (double)timeout_ms(host) / 1000., 0.);
	struct ssh_link *first = LIST_FIRST(&host->links, struct ssh_link, link);
	control->channel = ssh_channel_open(first->client, command, &control_listener, host, err);
	control->told_runs = host->request.runs ? host->request.runs->added : 0;
	if (!control->channel || !ssh_control_script(&control->unsent, host, err)) {
		return false;
	}
	flush(control);
	ev_timer_start(host->loop, &control->deadline);
	return true;
}

void ssh_control_close(struct ssh_host *host)
{
	struct ssh_control *control = &host->control;
	ev_timer_stop(host->loop, &control->beat);
	ev_timer_stop(host->loop, &control->deadline);
	ssh_channel_close(control->channel);
	control->channel = NULL;
	control->is_ready = control->is_open = false;
	control->begin = (struct script_begin){0};
	buf_finish(&control->line);
	buf_finish(&control->said);
	buf_finish(&control->unsent);
	ssh_control_drop_facts(host);
}

void ssh_control_drop_facts(struct ssh_host *host)
{
	struct ssh_control *control = &host->control;
	words_free(control->environment);
	control->environment = NULL;
	free(control->run_folder);
	control->run_folder = NULL;
	free(control->node);
	control->node = NULL;
	words_free(control->kept);
	control->kept = NULL;
	control->ended = 0;
}
