/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/libc.h"
#include "base/text.h"

enum { KILL_ANSWER_MS = 2000 }; // kill and release wait no longer for the end

/* ---- terminal/wait_for_exit, kill and release: answered at the exit ---- */

struct exit_call {
	struct tool_call call;
	struct list link; // tool_terminal.waiting
	const struct tool_terminal *terminal;
	ev_timer due; // for kill and release
	bool wants_status;
};

/* ---- the life of a terminal ---- */

void tool_terminals_note(struct toolhost *toolhost)
{
	const struct toolhost_config *config = &toolhost->config;
	if (config->listener->on_terminals && !toolhost->is_ending) {
		config->listener->on_terminals(config->data);
	}
}

static void give_up(struct tool_terminal *terminal)
{
	terminal->toolhost->open_terminals -= terminal->is_released ? 0 : 1;
	terminal->is_released = true;
}

void tool_terminal_destroy(struct tool_terminal *terminal)
{
	assert(!terminal->create && list_is_empty(&terminal->waiting));
	give_up(terminal);
	terminal->toolhost->terminal_count--;
	list_remove(&terminal->link);
	tool_terminals_note(terminal->toolhost);
	terminal_destroy(terminal->process);
	free(terminal->logins);
	free(terminal->session_id);
	free(terminal->cwd);
	free(terminal);
}

void tool_terminal_settle(struct tool_terminal *terminal)
{
	if (!terminal->is_released || terminal->display_count > 0 || !terminal->process ||
		!terminal_end(terminal->process).has_exited) {
		return;
	}
	displays_remember(terminal);
	if (terminal->is_emptied) {
		tool_terminal_destroy(terminal);
	} else {
		terminal_ignore_output(terminal->process);
	}
}

static struct tool_terminal *find_by_id(struct toolhost *toolhost, const char *id)
{
	LIST_FOR_EACH(terminal, &toolhost->terminals, struct tool_terminal, link) {
		if (strcmp(terminal->id, id) == 0) {
			return terminal;
		}
	}
	return NULL;
}

static bool was_started_in(const struct tool_terminal *terminal, const char *session_id)
{
	return terminal->process && !terminal->create &&
	       strcmp(terminal->session_id, session_id) == 0;
}

struct tool_terminal *tool_terminal_find(
	struct toolhost *toolhost, const char *session_id, const char *id)
{
	struct tool_terminal *terminal = find_by_id(toolhost, id);
	bool may_be_named =
		terminal && was_started_in(terminal, session_id) && !terminal->is_released;
	return may_be_named ? terminal : NULL;
}

bool tool_terminal_was_minted(const struct toolhost *toolhost, const char *id)
{
	char again[TOOL_TERMINAL_ID_MAX];
	unsigned long number = 0;
	if (strncmp(id, "term-", 5) == 0) {
		number = strtoul(id + 5, NULL, 10);
	}
	snprintf(again, sizeof(again), "term-%lu", number);
	return number > 0 && number <= *toolhost->config.last_terminal && strcmp(again, id) == 0;
}

/* For a terminal with limits. */
static void write_usage(struct json_writer *writer, const struct process_status *status)
{
	json_write_key(writer, "_meta");
	json_write_object(writer);
	json_write_key(writer, "broker");
	json_write_object(writer);
	json_write_member_int(writer, "cpuMs", status->usage.cpu_ms);
	json_write_member_int(writer, "peakMemoryBytes", status->usage.peak_bytes);
	if (status->limit != LIMIT_NONE) {
		json_write_member(writer, "limit", limit_key(status->limit));
	}
	json_write_object_end(writer);
	json_write_object_end(writer);
}

void tool_write_exit(
	struct json_writer *writer, const struct tool_terminal *terminal, const char *const keys[2])
{
	struct terminal_end end = terminal_end(terminal->process);
	bool is_known = end.has_exited && !end.is_lost;
	json_write_key(writer, keys[0]);
	if (is_known && end.status.signal == 0) {
		json_write_int(writer, end.status.code);
	} else {
		json_write_null(writer);
	}
	json_write_key(writer, keys[1]);
	if (is_known && end.status.signal != 0) {
		char name[32];
		const char *abbreviation = libc_signal_name(end.status.signal);
		if (abbreviation) {
			text_whole(name, sizeof(name), "SIG%s", abbreviation);
		} else {
			snprintf(name, sizeof(name), "%d", end.status.signal);
		}
		json_write_text(writer, name);
	} else {
		json_write_null(writer);
	}
	if (is_known && end.status.usage.is_known) {
		write_usage(writer, &end.status);
	}
}

static const char *const exit_keys[2] = {"exitCode", "signal"};

/* ---- waiting for the exit ---- */

static void answer_exit(struct exit_call *waiting)
{
	const struct tool_terminal *terminal = waiting->terminal;
	struct tool_call *call = &waiting->call;
	struct terminal_end end = terminal_end(terminal->process);
	if (!waiting->wants_status) {
		tool_call_answer_empty(call);
	} else if (end.timed_out) {
		tool_call_fail(call, "TIMEOUT_EXCEEDED",
			"terminal %s: its command ran longer than terminal-timeout (%d ms) and was "
			"killed",
			terminal->id, call->toolhost->config.limits.terminal_timeout_ms);
	} else if (end.is_lost) {
		tool_call_fail(call, "SANDBOX_UNAVAILABLE",
			"terminal %s: the link to the sandbox was lost; how its command ended is "
			"not known",
			terminal->id);
	} else {
		struct json_writer writer;
		json_write_begin(&writer, &call->result);
		json_write_object(&writer);
		tool_write_exit(&writer, terminal, exit_keys);
		json_write_object_end(&writer);
		bool is_written = json_write_end(&writer, NULL);
		assert(is_written);
		(void)is_written;
		tool_call_answer(call);
	}
}

static void release_exit(struct tool_call *call)
{
	struct exit_call *waiting = CONTAINER_OF(call, struct exit_call, call);
	list_remove(&waiting->link);
	ev_timer_stop(call->toolhost->config.loop, &waiting->due);
}

static void on_kill_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct exit_call *waiting = CONTAINER_OF(timer, struct exit_call, due);
	tool_call_answer_empty(&waiting->call);
}

/* Answers the call when the command has ended, or at once if it has already. */
static void wait_for_exit(struct tool_call *call, struct tool_terminal *terminal, bool wants_status)
{
	struct exit_call *waiting = CONTAINER_OF(call, struct exit_call, call);
	waiting->terminal = terminal;
	waiting->wants_status = wants_status;
	if (terminal_end(terminal->process).has_exited) {
		answer_exit(waiting);
		return;
	}
	list_append(&terminal->waiting, &waiting->link);
	ev_timer_init(&waiting->due, on_kill_due, KILL_ANSWER_MS / 1000., 0.);
	call->release = release_exit;
	if (!wants_status) {
		ev_timer_start(call->toolhost->config.loop, &waiting->due);
	}
}

void tool_terminal_exited(struct tool_terminal *terminal)
{
	struct exit_call *waiting;
	while ((waiting = LIST_FIRST(&terminal->waiting, struct exit_call, link))) {
		answer_exit(waiting);
	}
	displays_note(terminal);
	tool_terminals_note(terminal->toolhost);
	tool_terminal_settle(terminal);
}

/* ---- the methods ---- */

static void refuse(struct tool_call *call, const char *id)
{
	if (tool_terminal_was_minted(call->toolhost, id)) {
		tool_call_fail(call, "INVALID_PARAMS",
			"terminal %s was released, or belongs to another session", id);
	} else {
		char shown[104];
		text_format(shown, sizeof(shown), "%s", id);
		tool_call_fail(call, "INVALID_PARAMS", "terminal \"%s\" is not known", shown);
	}
}

/* The named terminal; NULL if there is none; then the call is answered. */
static struct tool_terminal *take_terminal(struct tool_call *call, const struct tool_params *params)
{
	char *id = tool_string(call, params, "terminalId");
	if (!id) {
		return NULL;
	}
	struct tool_terminal *terminal = tool_terminal_find(call->toolhost, call->session_id, id);
	if (!terminal) {
		refuse(call, id);
	}
	free(id);
	return terminal;
}

static void write_output(struct tool_call *call, const struct tool_terminal *terminal)
{
	const struct output_tail *tail = terminal_output(terminal->process);
	struct json_writer writer;
	struct buf text;
	buf_init(&text, 4 * tail->limit + 16); // before it is cut to the limit
	bool is_truncated = output_tail_text(
		tail, tail->limit, terminal_output_has_ended(terminal->process), &text);
	json_write_begin(&writer, &call->result);
	json_write_object(&writer);
	json_write_key(&writer, "output");
	json_write_string(&writer, buf_span(&text));
	json_write_key(&writer, "truncated");
	json_write_bool(&writer, is_truncated);
	if (terminal_end(terminal->process).has_exited) {
		json_write_key(&writer, "exitStatus");
		json_write_object(&writer);
		tool_write_exit(&writer, terminal, exit_keys);
		json_write_object_end(&writer);
	}
	json_write_object_end(&writer);
	bool is_written = json_write_end(&writer, NULL);
	assert(is_written);
	(void)is_written;
	buf_finish(&text);
}

/* A waiting terminal/output; the terminal may be freed before it goes on. */
struct output_call {
	struct tool_call call;
	char id[TOOL_TERMINAL_ID_MAX];
};

static void answer_output(struct tool_call *call, const struct tool_terminal *terminal)
{
	write_output(call, terminal);
	tool_call_answer(call);
}

static void go_on_output(struct tool_call *call)
{
	const char *id = CONTAINER_OF(call, struct output_call, call)->id;
	const struct tool_terminal *terminal =
		tool_terminal_find(call->toolhost, call->session_id, id);
	if (terminal) {
		answer_output(call, terminal);
	} else {
		tool_call_fail(call, "INVALID_PARAMS",
			"terminal %s was released before its output was read", id);
	}
}

static void serve_output(struct tool_call *call, const struct tool_params *params)
{
	const struct tool_terminal *terminal = take_terminal(call, params);
	if (terminal && !tool_call_hold(call, TOOL_HOLD_OUTPUT, go_on_output)) {
		answer_output(call, terminal);
	} else if (terminal) {
		struct output_call *output = CONTAINER_OF(call, struct output_call, call);
		memcpy(output->id, terminal->id, sizeof(output->id));
	}
}

static void serve_wait(struct tool_call *call, const struct tool_params *params)
{
	struct tool_terminal *terminal = take_terminal(call, params);
	if (terminal) {
		wait_for_exit(call, terminal, true);
	}
}

static void serve_kill(struct tool_call *call, const struct tool_params *params)
{
	struct tool_terminal *terminal = take_terminal(call, params);
	if (terminal) {
		terminal_kill(terminal->process);
		wait_for_exit(call, terminal, false);
	}
}

static void release_terminal(struct tool_call *call, struct tool_terminal *terminal)
{
	give_up(terminal);
	tool_terminals_note(terminal->toolhost);
	terminal_kill(terminal->process);
	wait_for_exit(call, terminal, false);
	tool_terminal_settle(terminal);
}

/*
 * From here on other calls do not know the id. Calls that wait are answered once the command has
 * been killed. A second release succeeds too, because two parts of an agent may release the same
 * terminal.
 */
static void serve_release(struct tool_call *call, const struct tool_params *params)
{
	char *id = tool_string(call, params, "terminalId");
	if (!id) {
		return;
	}
	struct tool_terminal *terminal = find_by_id(call->toolhost, id);
	if (terminal && was_started_in(terminal, call->session_id)) {
		release_terminal(call, terminal);
	} else if (!terminal && tool_terminal_was_minted(call->toolhost, id)) {
		tool_call_answer_empty(call); // already released
	} else {
		refuse(call, id);
	}
	free(id);
}

const struct tool_method terminal_methods[] = {
	{"terminal/create", sizeof(struct create_call), true, terminal_serve_create},
	{"terminal/output", sizeof(struct output_call), true, serve_output},
	{"terminal/wait_for_exit", sizeof(struct exit_call), true, serve_wait},
	{"terminal/kill", sizeof(struct exit_call), true, serve_kill},
	{"terminal/release", sizeof(struct exit_call), true, serve_release},
};
const size_t terminal_method_count = ARRAY_LENGTH(terminal_methods);
