/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_lookup.h"

#include <assert.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/words.h"
#include "broker/toolhost/terminal.h"

enum { ANSWER_MAX = 4096 }; // bytes; a valid answer is shorter than MCP_COMMANDS_MAX + 2

struct mcp_lookup {
	struct ev_loop *loop;
	const struct sandbox *sandbox;
	struct mcp_commands *commands; // borrowed
	struct terminal *terminal;     // owned; NULL if it could not be started
	char *read_buffer;             // owned
	ev_timer due;                  // the deadline; or reports a result that is known at once
	int timeout_ms;
	long long away_ms; // sandbox_extend_timer
	void (*done)(void *data);
	void *data;
};

/* The handler may destroy the lookup, so the caller must do nothing after this. */
static void finish(struct mcp_lookup *lookup, const struct error *err)
{
	ev_timer_stop(lookup->loop, &lookup->due);
	if (err) {
		text_format(lookup->commands->why_unknown, sizeof(lookup->commands->why_unknown),
			"%s", err->text);
	}
	lookup->done(lookup->data);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct mcp_lookup *lookup = CONTAINER_OF(timer, struct mcp_lookup, due);
	struct error err;
	if (!lookup->terminal) {
		finish(lookup, NULL); // not started; the reason is already set
		return;
	}
	if (sandbox_extend_timer(lookup->sandbox, timer, &lookup->away_ms)) {
		return;
	}
	terminal_destroy(lookup->terminal);
	lookup->terminal = NULL;
	error_set(&err, ERROR_TIMEOUT, "the sandbox did not answer within %d ms (mcp-timeout)",
		lookup->timeout_ms);
	finish(lookup, &err);
}

static void on_started(void *data)
{
}

static void on_output(void *data)
{
}

static void on_emptied(void *data)
{
}

static void on_failed(void *data, const struct error *err)
{
	finish(data, err);
}

static bool read_answer(struct mcp_lookup *lookup, struct error *err)
{
	struct buf text;
	struct terminal_end end = terminal_end(lookup->terminal);
	if (end.is_lost) {
		return error_set(err, ERROR_UNAVAILABLE, "the link to the sandbox was lost");
	}
	buf_init(&text, (size_t)ANSWER_MAX * 3);
	output_tail_text(terminal_output(lookup->terminal), ANSWER_MAX, true, &text);
	bool ok = mcp_commands_answer(lookup->commands, buf_span(&text), err);
	buf_finish(&text);
	return ok;
}

static void on_exited(void *data)
{
	struct mcp_lookup *lookup = data;
	struct error err;
	bool ok = read_answer(lookup, &err);
	finish(lookup, ok ? NULL : &err);
}

static const struct terminal_listener terminal_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_output = on_output,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

static void start(struct mcp_lookup *lookup, const struct mcp_lookup_config *config)
{
	struct error err;
	char **argv = mcp_commands_argv(lookup->commands);
	struct terminal_config terminal = {
		.loop = config->loop,
		.sandbox = config->sandbox,
		.argv = (const char *const *)argv,
		.env = config->env,
		.cwd = config->cwd,
		.output_limit = ANSWER_MAX,
		.read_buffer = lookup->read_buffer,
	};
	double delay = config->timeout_ms / 1000.;
	lookup->terminal = terminal_start(&terminal, &terminal_listener, lookup, &err);
	words_free(argv);
	if (!lookup->terminal) {
		text_format(lookup->commands->why_unknown, sizeof(lookup->commands->why_unknown),
			"%s", err.text);
		delay = 0.;
	}
	lookup->away_ms = sandbox_away_ms(lookup->sandbox);
	ev_timer_init(&lookup->due, on_due, delay, 0.);
	ev_timer_start(lookup->loop, &lookup->due);
}

struct mcp_lookup *mcp_lookup_start(const struct mcp_lookup_config *config,
	struct mcp_commands *commands, void (*done)(void *data), void *data)
{
	assert(commands->count > 0);
	struct mcp_lookup *lookup = mem_alloc_zero(sizeof(*lookup));
	lookup->loop = config->loop;
	lookup->sandbox = config->sandbox;
	lookup->commands = commands;
	lookup->read_buffer = mem_alloc(TERMINAL_READ_SIZE);
	lookup->timeout_ms = config->timeout_ms;
	lookup->done = done;
	lookup->data = data;
	start(lookup, config);
	return lookup;
}

void mcp_lookup_destroy(struct mcp_lookup *lookup)
{
	if (!lookup) {
		return;
	}
	ev_timer_stop(lookup->loop, &lookup->due);
	terminal_destroy(lookup->terminal);
	free(lookup->read_buffer);
	free(lookup);
}
