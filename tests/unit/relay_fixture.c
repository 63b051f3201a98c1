/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"
#include "tests/support/facts.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

enum { MESSAGE_BYTES = 1 << 26, DEADLINE_MS = 60000 };

const char initialize_request[] =
	"'method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{}}";
const char initialize_result[] = "'result':{'protocolVersion':1,'agentCapabilities':{}}";

/* ---- life ---- */

static void on_editor_gone(void *data)
{
	struct fixture *fixture = data;
	assert_false(fixture->is_gone);
	fixture->is_gone = true;
	if (fixture->ends_when_gone) {
		relay_end(fixture->relay);
	}
}

static void on_finished(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	assert_false(fixture->is_finished);
	fixture->is_finished = true;
	snprintf(fixture->finish_error, sizeof(fixture->finish_error), "%s", err ? err->text : "");
}

static const struct relay_listener listener = {
	.on_editor_gone = on_editor_gone,
	.on_finished = on_finished,
};

int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	stage_init(&fixture->stage);
	fixture->to_broker = fixture->from_broker = -1;
	fixture->ends_when_gone = true;
	fixture->sync_moment_ms = 600000;
	fixture->link_show_ms = 600000;
	buf_init(&fixture->heard, MESSAGE_BYTES);
	*state = fixture;
	return 0;
}

int tear_down(void **state)
{
	struct fixture *fixture = *state;
	if (fixture->relay) {
		relay_destroy(fixture->relay);
	}
	pool_destroy(fixture->pool);
	stage_finish(&fixture->stage);
	fd_close(&fixture->to_broker);
	fd_close(&fixture->from_broker);
	buf_finish(&fixture->heard);
	free(fixture);
	return 0;
}

struct profile *profile_of(struct fixture *fixture)
{
	return &fixture->stage.config.profile;
}

static void unblock(int fd)
{
	struct error err;
	assert_true(fd_set_nonblock(fd, true, &err));
}

void begin_traced(struct fixture *fixture, struct trace *trace)
{
	struct error err;
	int in[2];
	int out[2];
	struct relay_config config = {
		.loop = fixture->stage.loop,
		.provider = &fixture->stage.provider,
		.profile = profile_of(fixture),
		.pool = fixture->pool,
		.state_folder = fixture->state_folder,
		.sync_moment_ms = fixture->sync_moment_ms,
		.link_show_ms = fixture->link_show_ms,
		.trace = trace,
		.listener = &listener,
		.data = fixture,
	};
	fixture->relay = relay_create(&config);
	assert_true(fd_pipe(in, &err) && fd_pipe(out, &err));
	for (int i = 0; i < 2; i++) {
		unblock(in[i]);
		unblock(out[i]);
	}
	fixture->to_broker = in[1];
	fixture->from_broker = out[0];
	relay_start(fixture->relay, in[0], out[1]);
}

void begin(struct fixture *fixture)
{
	begin_traced(fixture, NULL);
}

void begin_greeted(struct fixture *fixture)
{
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_says(fixture, 0, "'id':0,%s", initialize_result);
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"id\":0,\"result\":{"));
	free(line);
}

void begin_with_sessions(struct fixture *fixture, const char *const *names)
{
	begin_greeted(fixture);
	for (int i = 0; names[i]; i++) {
		editor_says(fixture, "'id':'new','method':'session/new','params':{'cwd':'/w'}");
		agent_hears(
			fixture, 0, "'id':%d,'method':'session/new','params':{'cwd':'/w'}", i + 1);
		agent_says(fixture, 0, "'id':%d,'result':{'sessionId':'%s'}", i + 1, names[i]);
		editor_hears(fixture, "'id':'new','result':{'sessionId':'%s'}", names[i]);
	}
}

void begin_with_session(struct fixture *fixture)
{
	begin_with_sessions(fixture, (const char *const[]){"s", NULL});
}

/* ---- messages ---- */

/* {"jsonrpc":"2.0",…}, with " for '; owned by the caller. */
static char *message_of(const char *format, va_list args) ATTR_PRINTF(1, 0);
static char *message_of(const char *format, va_list args)
{
	static const char begin_text[] = "{\"jsonrpc\":\"2.0\",";
	va_list again;
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	assert_true(len >= 0);
	size_t at = sizeof(begin_text) - 1;
	char *text = mem_alloc(at + (size_t)len + 2);
	memcpy(text, begin_text, at);
	vsnprintf(text + at, (size_t)len + 1, format, args);
	for (char *quote = text + at; (quote = strchr(quote, '\'')) != NULL;) {
		*quote = '"';
	}
	memcpy(text + at + (size_t)len, "}", 2);
	return text;
}

static void assert_line(char *line, char *expected)
{
	if (!line) {
		fail_msg("nothing came instead of %s", expected);
		return;
	}
	if (strcmp(line, expected) != 0) {
		print_error("came:     %.2000s\nexpected: %.2000s\n", line, expected);
		fail();
	}
	free(line);
	free(expected);
}

void assert_message(char *line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = message_of(format, args);
	va_end(args);
	assert_line(line, text);
}

static void assert_failure(
	char *line, const char *id, const char *code, const char *stage, const char *facts)
{
	char begin_text[512];
	char data[256];
	snprintf(begin_text, sizeof(begin_text), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{", id);
	snprintf(data, sizeof(data), "\"data\":{\"code\":\"%s\",\"retryable\":", code);
	char stage_text[64];
	snprintf(stage_text, sizeof(stage_text), "\"stage\":\"%s\"", stage);
	assert_non_null(line);
	if (strncmp(line, begin_text, strlen(begin_text)) != 0 || !strstr(line, data) ||
		!strstr(line, stage_text) || !text_names(line, facts)) {
		print_error("came: %.2000s\nexpected: %s with %s, %s and %s\n", line, begin_text,
			data, stage_text, facts);
		fail();
	}
	free(line);
}

/* ---- the editor ---- */

void editor_writes(struct fixture *fixture, struct span bytes)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (bytes.len > 0) {
		ssize_t wrote = write(fixture->to_broker, bytes.data, bytes.len);
		if (wrote > 0) {
			bytes = (struct span){bytes.data + wrote, bytes.len - (size_t)wrote};
			continue;
		}
		assert_int_equal(errno, EAGAIN);
		assert_true(clock_now_ms() < deadline_ms);
		ev_run(fixture->stage.loop, EVRUN_NOWAIT);
	}
}

void editor_says(struct fixture *fixture, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = message_of(format, args);
	va_end(args);
	editor_writes(fixture, span_of(text));
	editor_writes(fixture, SPAN_LITERAL("\n"));
	free(text);
}

enum { RANDOM_LENGTH = 32 };

static void replace(char *at, size_t length, const char *with)
{
	size_t with_length = strlen(with);
	assert_true(with_length <= length);
	memcpy(at, with, with_length);
	memmove(at + with_length, at + length, strlen(at + length) + 1);
}

static const char *name_of(struct fixture *fixture, const char *random, const char *line)
{
	static const char id[] = "{\"jsonrpc\":\"2.0\",\"id\":";
	for (int i = 0; i < fixture->tool_call_count; i++) {
		if (strncmp(fixture->tool_calls[i][0], random, RANDOM_LENGTH) == 0) {
			return fixture->tool_calls[i][1];
		}
	}
	assert_true(fixture->tool_call_count < TOOL_CALLS_MAX);
	assert_int_equal(strncmp(line, id, strlen(id)), 0);
	char(*names)[40] = fixture->tool_calls[fixture->tool_call_count++];
	snprintf(names[0], sizeof(names[0]), "%.*s", RANDOM_LENGTH, random);
	snprintf(names[1], sizeof(names[1]), "%ld", strtol(line + strlen(id), NULL, 10));
	return names[1];
}

static void name_tool_calls(struct fixture *fixture, char *line)
{
	static const char prefix[] = "\"acp-broker-";
	static const char notice[] = "notice-";
	for (char *at = line; (at = strstr(at, prefix)) != NULL;) {
		at += strlen(prefix);
		bool is_notice = strncmp(at, notice, strlen(notice)) == 0;
		at += is_notice ? strlen(notice) : 0;
		if (strspn(at, "0123456789abcdef") == RANDOM_LENGTH) {
			replace(at, RANDOM_LENGTH + is_notice,
				is_notice ? "" : name_of(fixture, at, line));
		}
	}
}

char *editor_line(struct fixture *fixture)
{
	char *line = stage_line(&fixture->stage, fixture->from_broker, &fixture->heard);
	if (line) {
		name_tool_calls(fixture, line);
	}
	return line;
}

void editor_hears(struct fixture *fixture, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = message_of(format, args);
	va_end(args);
	assert_line(editor_line(fixture), text);
}

void editor_hears_failure(struct fixture *fixture, const char *id, const char *code,
	const char *stage, const char *facts)
{
	assert_failure(editor_line(fixture), id, code, stage, facts);
}

void editor_hears_nothing(struct fixture *fixture)
{
	char text[1024];
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->heard.len, 0);
	ssize_t got = read(fixture->from_broker, text, sizeof(text) - 1);
	if (got > 0) {
		fail_msg("came: %.*s", (int)got, text);
	}
}

void editor_closes(struct fixture *fixture)
{
	stage_settle(&fixture->stage);
	fd_close(&fixture->to_broker);
	stage_settle(&fixture->stage);
}

/* ---- agents ---- */

struct actor *agent(struct fixture *fixture, int index)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (fixture->stage.actor_count <= index && clock_now_ms() < deadline_ms) {
		stage_settle(&fixture->stage);
	}
	assert_true(fixture->stage.actor_count > index);
	return fixture->stage.actors[index];
}

void agent_writes(struct fixture *fixture, int index, struct span bytes)
{
	actor_writes(agent(fixture, index), bytes);
}

void agent_says(struct fixture *fixture, int index, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = message_of(format, args);
	va_end(args);
	agent_writes(fixture, index, span_of(text));
	agent_writes(fixture, index, SPAN_LITERAL("\n"));
	free(text);
}

char *agent_next_line(struct fixture *fixture, int index)
{
	return actor_line(agent(fixture, index));
}

void agent_hears(struct fixture *fixture, int index, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = message_of(format, args);
	va_end(args);
	assert_line(agent_next_line(fixture, index), text);
}

void agent_hears_failure(struct fixture *fixture, int index, const char *id, const char *code,
	const char *stage, const char *facts)
{
	assert_failure(agent_next_line(fixture, index), id, code, stage, facts);
}

void agent_hears_nothing(struct fixture *fixture, int index)
{
	struct actor *actor = agent(fixture, index);
	actor_reads(actor);
	if (actor->heard.len > 0) {
		fail_msg("came: %.*s", (int)actor->heard.len, buf_span(&actor->heard).data);
	}
}

void agent_hears_end(struct fixture *fixture, int index)
{
	struct actor *actor = agent(fixture, index);
	assert_false(actor_reads(actor));
	agent_hears_nothing(fixture, index);
}

void agent_dies(struct fixture *fixture, int index)
{
	stage_settle(&fixture->stage);
	actor_dies(agent(fixture, index), 1, 0);
	stage_settle(&fixture->stage);
}

void wait_ms(struct fixture *fixture, int ms)
{
	long long end = clock_now_ms() + ms;
	while (clock_now_ms() < end) {
		stage_wait_turn(&fixture->stage);
	}
}
