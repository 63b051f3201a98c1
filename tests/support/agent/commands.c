/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/agent/raw.h"
#include "tests/support/agent/turn.h"

/* What an agent tells its client without being asked. */

static const size_t text_max = (size_t)1 << 29;

static enum progress run_say(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn_say(turn, "%s", argument);
	return COMMAND_DONE;
}

static enum progress run_think(struct turn *turn, const char *argument, const struct reply *reply)
{
	char *quoted = raw_quote(span_of(argument));
	turn_update(turn,
		"{\"sessionUpdate\":\"agent_thought_chunk\","
		"\"content\":{\"type\":\"text\",\"text\":%s}}",
		quoted);
	free(quoted);
	return COMMAND_DONE;
}

static enum progress run_update(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn_update(turn, "%s", argument);
	return COMMAND_DONE;
}

static enum progress run_plan(struct turn *turn, const char *argument, const struct reply *reply)
{
	char *quoted = raw_quote(span_of(argument));
	turn_update(turn,
		"{\"sessionUpdate\":\"plan\",\"entries\":[{\"content\":%s,"
		"\"priority\":\"medium\",\"status\":\"in_progress\"}]}",
		quoted);
	free(quoted);
	return COMMAND_DONE;
}

/* stream COUNT SIZE: one update for each call, so that the agent keeps to the reader's pace. */
static enum progress run_stream(struct turn *turn, const char *argument, const struct reply *reply)
{
	char *size_text = NULL;
	long count = strtol(argument, &size_text, 10);
	size_t size = strtoul(size_text, NULL, 10);
	if (count <= 0) {
		return COMMAND_DONE;
	}
	struct buf text;
	buf_init(&text, text_max);
	text_add(&text, "%08ld ", turn->done);
	text_fill(&text, size > text.len ? size - text.len : 0);
	turn_update(turn,
		"{\"sessionUpdate\":\"agent_message_chunk\","
		"\"content\":{\"type\":\"text\",\"text\":\"%.*s\"}}",
		PRINTF_BYTES(text));
	buf_finish(&text);
	return ++turn->done < count ? COMMAND_AGAIN : COMMAND_DONE;
}

static enum progress run_diff(struct turn *turn, const char *argument, const struct reply *reply)
{
	struct buf text;
	buf_init(&text, text_max);
	text_fill(&text, strtoul(argument, NULL, 10));
	turn_update(turn,
		"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-diff\","
		"\"content\":[{\"type\":\"diff\",\"path\":\"/tmp/big.txt\",\"oldText\":null,"
		"\"newText\":\"%.*s\"}]}",
		PRINTF_BYTES(text));
	buf_finish(&text);
	return COMMAND_DONE;
}

static enum progress run_members(struct turn *turn, const char *argument, const struct reply *reply)
{
	struct buf text;
	buf_init(&text, text_max);
	long count = strtol(argument, NULL, 10);
	for (long i = 0; i < count; i++) {
		text_add(&text, "%s\"member-%06ld\":%ld", i == 0 ? "" : ",", i, i);
	}
	turn_update(turn,
		"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-members\","
		"\"rawInput\":{%.*s}}",
		PRINTF_BYTES(text));
	buf_finish(&text);
	return COMMAND_DONE;
}

static enum progress run_notify(struct turn *turn, const char *argument, const struct reply *reply)
{
	size_t method = strcspn(argument, " ");
	agent_send(turn->agent, "{\"jsonrpc\":\"2.0\",\"method\":\"%.*s\",\"params\":%s}",
		(int)method, argument, argument[method] == ' ' ? argument + method + 1 : "{}");
	return COMMAND_DONE;
}

static enum progress run_raw(struct turn *turn, const char *argument, const struct reply *reply)
{
	agent_send_line(turn->agent, span_of(argument));
	return COMMAND_DONE;
}

static enum progress run_sleep(struct turn *turn, const char *argument, const struct reply *reply)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long long now_ms = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	turn->wake_at_ms = now_ms + strtol(argument, NULL, 10);
	return COMMAND_WAITS;
}

static enum progress run_hang(struct turn *turn, const char *argument, const struct reply *reply)
{
	return run_sleep(turn, "1000000000", reply);
}

static enum progress run_deaf(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn->deaf = true;
	return COMMAND_DONE;
}

static enum progress run_stop(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn_answer(turn, "{\"stopReason\":\"%s\"}", argument);
	return COMMAND_ENDED;
}

static enum progress run_result(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn_answer(turn, "%s", argument);
	return COMMAND_ENDED;
}

static enum progress run_error(struct turn *turn, const char *argument, const struct reply *reply)
{
	agent_send(turn->agent, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}", turn->request_id,
		argument);
	return COMMAND_ENDED;
}

static enum progress run_env(struct turn *turn, const char *argument, const struct reply *reply)
{
	if (argument[0] != '\0') {
		const char *value = getenv(argument);
		turn_say(turn, "%s=%s", argument, value != NULL ? value : "(unset)");
		return COMMAND_DONE;
	}
	struct buf text;
	buf_init(&text, text_max);
	for (char **at = environ; *at != NULL; at++) {
		text_add(&text, "%s%s", at == environ ? "" : "\n", *at);
	}
	turn_say(turn, "%.*s", PRINTF_BYTES(text));
	buf_finish(&text);
	return COMMAND_DONE;
}

static enum progress run_cwd(struct turn *turn, const char *argument, const struct reply *reply)
{
	char *cwd = getcwd(NULL, 0);
	turn_say(turn, "cwd %s", cwd != NULL ? cwd : "(none)");
	free(cwd);
	return COMMAND_DONE;
}

static enum progress run_arguments(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	for (int i = 1; i < turn->agent->argc; i++) {
		turn_say(turn, "argument %d: %s", i, turn->agent->argv[i]);
	}
	return COMMAND_DONE;
}

static enum progress run_pid(struct turn *turn, const char *argument, const struct reply *reply)
{
	turn_say(turn, "pid %d ppid %d", getpid(), getppid());
	return COMMAND_DONE;
}

const struct command update_commands[] = {
	{"say", run_say, "TEXT: an agent_message_chunk"},
	{"think", run_think, "TEXT: an agent_thought_chunk"},
	{"plan", run_plan, "TEXT: a plan of one entry"},
	{"update", run_update, "JSON: any update"},
	{"stream", run_stream, "COUNT SIZE: numbered chunks of SIZE bytes"},
	{"diff", run_diff, "SIZE: a tool call's diff with one string of SIZE bytes"},
	{"members", run_members, "COUNT: an update with COUNT members"},
	{"notify", run_notify, "METHOD PARAMS: a notification"},
	{"raw", run_raw, "LINE: a line as it is"},
	{"sleep", run_sleep, "MS: wait; other turns go on"},
	{"hang", run_hang, "wait until cancelled"},
	{"deaf", run_deaf, "hear no cancel from here on"},
	{"stop", run_stop, "REASON: end the turn with this stop reason"},
	{"result", run_result, "JSON: end the turn with this result"},
	{"error", run_error, "JSON: end the turn with this error"},
	{"env", run_env, "[NAME]: say the environment"},
	{"cwd", run_cwd, "say the working directory"},
	{"arguments", run_arguments, "say the command line"},
	{"pid", run_pid, "say the process id and the parent's"},
	{0},
};
