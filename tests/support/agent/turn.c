/* SPDX-License-Identifier: MIT */
#include "tests/support/agent/turn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/agent/raw.h"

static const struct command *const tables[] = {update_commands, call_commands, trouble_commands};

static const struct command *find_command(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		for (const struct command *at = tables[i]; at->name != NULL; at++) {
			if (strlen(at->name) == length && strncmp(at->name, name, length) == 0) {
				return at;
			}
		}
	}
	return NULL;
}

void turn_print_commands(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		for (const struct command *at = tables[i]; at->name != NULL; at++) {
			printf("  %-14s %s\n", at->name, at->help);
		}
	}
}

void turn_start(struct agent *agent, struct session *session, struct span request_id, char *script)
{
	struct turn *turn = mem_alloc_zero(sizeof(*turn));
	turn->agent = agent;
	turn->session = session;
	turn->request_id = mem_strndup(request_id);
	turn->script = script;
	turn->next = script;
	list_append(&agent->turns, &turn->link);
}

static void turn_destroy(struct turn *turn)
{
	list_remove(&turn->link);
	free(turn->request_id);
	free(turn->script);
	free(turn->waits_for);
	free(turn->terminal);
	free(turn->call_id);
	free(turn);
}

void turns_destroy(struct agent *agent)
{
	LIST_FOR_EACH(turn, &agent->turns, struct turn, link) {
		turn_destroy(turn);
	}
}

static char *format_text(const char *format, va_list arguments) ATTR_PRINTF(1, 0);
static char *format_text(const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0) {
		abort();
	}
	return text;
}

void turn_answer(struct turn *turn, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *result = format_text(format, arguments);
	va_end(arguments);
	agent_answer(turn->agent, span_of(turn->request_id), "%s", result);
	free(result);
	turn->answered = true;
}

void turn_call(struct turn *turn, const char *method, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *params = format_text(format, arguments);
	va_end(arguments);
	free(turn->waits_for);
	if (asprintf(&turn->waits_for, "%d", turn->agent->request_count++) < 0) {
		abort();
	}
	agent_send(turn->agent, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":%s}",
		turn->waits_for, method, params);
	free(params);
}

void turn_update(struct turn *turn, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *update = format_text(format, arguments);
	va_end(arguments);
	agent_send(turn->agent,
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":"
		"{\"sessionId\":%s,\"update\":%s}}",
		turn->session->quoted_id, update);
	free(update);
}

void turn_say(struct turn *turn, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = format_text(format, arguments);
	va_end(arguments);
	char *quoted = raw_quote(span_of(text));
	turn_update(turn,
		"{\"sessionUpdate\":\"agent_message_chunk\","
		"\"content\":{\"type\":\"text\",\"text\":%s}}",
		quoted);
	free(quoted);
	free(text);
}

void turn_say_reply(struct turn *turn, const char *method, const struct reply *reply)
{
	struct span value = reply->error.len > 0 ? reply->error : reply->result;
	turn_say(turn, "%s -> %s%.*s", method, reply->error.len > 0 ? "error " : "",
		PRINTF_BYTES(value));
}

static long long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes the next line of the script; false at its end. */
static bool take_line(struct turn *turn)
{
	if (turn->next == NULL || turn->next[0] == '\0') {
		turn->command = NULL;
		return false;
	}
	turn->command = turn->next;
	turn->next = strchr(turn->command, '\n');
	if (turn->next != NULL) {
		*turn->next++ = '\0';
	}
	turn->step = 0;
	turn->done = 0;
	return true;
}

static enum progress run_command(struct turn *turn, const struct reply *reply)
{
	size_t length = strcspn(turn->command, " ");
	const char *argument = turn->command + length;
	argument += argument[0] == ' ' ? 1 : 0;
	const struct command *command = find_command(turn->command, length);
	if (command == NULL) {
		turn_say(turn, "You said: %s", turn->command);
		return COMMAND_DONE;
	}
	enum progress progress = command->run(turn, argument, reply);
	turn->step++;
	return progress;
}

/* Runs the script until it waits or ends; true if it wants to run again. */
static bool turn_run(struct turn *turn, const struct reply *reply)
{
	while (turn->command != NULL || take_line(turn)) {
		enum progress progress = run_command(turn, reply);
		reply = NULL;
		if (turn->answered || progress == COMMAND_ENDED) {
			turn_destroy(turn);
			return false;
		}
		if (progress != COMMAND_DONE) {
			return progress == COMMAND_AGAIN;
		}
		turn->command = NULL;
	}
	turn_answer(turn, "{\"stopReason\":\"end_turn\"}");
	turn_destroy(turn);
	return false;
}

bool turns_run(struct agent *agent)
{
	bool busy = false;
	long long now = now_ms();
	LIST_FOR_EACH(turn, &agent->turns, struct turn, link) {
		if (agent->out.len >= AGENT_OUT_PAUSE) {
			return true;
		}
		if (turn->waits_for != NULL || turn->wake_at_ms > now) {
			continue;
		}
		if (turn->wake_at_ms > 0) {
			turn->wake_at_ms = 0;
			turn->command = NULL;
		}
		busy = turn_run(turn, NULL) || busy;
	}
	return busy;
}

int turns_timeout(const struct agent *agent)
{
	long long first = -1;
	long long now = now_ms();
	LIST_FOR_EACH(turn, &agent->turns, struct turn, link) {
		if (turn->wake_at_ms > 0 && (first < 0 || turn->wake_at_ms < first)) {
			first = turn->wake_at_ms;
		}
	}
	if (first < 0) {
		return -1;
	}
	return first <= now ? 0 : (int)(first - now);
}

bool turns_take_reply(struct agent *agent, struct span id, const struct reply *reply)
{
	LIST_FOR_EACH(turn, &agent->turns, struct turn, link) {
		if (turn->waits_for != NULL && span_is(id, turn->waits_for)) {
			free(turn->waits_for);
			turn->waits_for = NULL;
			(void)turn_run(turn, reply);
			return true;
		}
	}
	return false;
}

void turns_cancel_session(struct agent *agent, const struct session *session)
{
	LIST_FOR_EACH(turn, &agent->turns, struct turn, link) {
		if (turn->session == session && !turn->deaf) {
			turn_answer(turn, "{\"stopReason\":\"cancelled\"}");
			turn_destroy(turn);
		}
	}
}

void turns_cancel_request(struct agent *agent, struct span request_id)
{
	LIST_FOR_EACH(turn, &agent->turns, struct turn, link) {
		if (span_is(request_id, turn->request_id) && !turn->deaf) {
			agent_answer_error(agent, request_id, -32800, "Request cancelled");
			turn_destroy(turn);
			return;
		}
	}
}
