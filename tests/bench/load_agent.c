/* SPDX-License-Identifier: MIT */
/*
 * An agent that costs as little as it can: it answers `initialize`,
 * `session/new` and `_bench/echo`, and a prompt "stream SHAPE COUNT" with COUNT
 * session updates of that shape, one write each as agents do. A prompt
 * "tools …" is answered with what tests/bench/tools.h measures, in _meta.bench.
 * `load_agent write BYTES` writes text.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/lines.h"
#include "tests/bench/shape.h"
#include "tests/bench/tools.h"

enum { ENVELOPE_MAX = 512, ID_MAX = 64 };

struct request {
	char *data;
	size_t len;
	char id[ID_MAX]; // its bytes as they came
};

struct agent {
	struct lines lines;
	unsigned sessions;
	unsigned asked; // the last id of a request of its own
};

static bool answer(const struct request *request, const char *result)
{
	char line[1024];
	const int len = snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", request->id, result);

	return write_all(STDOUT_FILENO, line, (size_t)len);
}

static bool on_initialize(struct agent *agent, struct request *request)
{
	return answer(request,
		"{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":false},"
		"\"agentInfo\":{\"name\":\"load-agent\",\"version\":\"1\"},"
		"\"authMethods\":[]}");
}

static bool on_session_new(struct agent *agent, struct request *request)
{
	char result[64];

	(void)snprintf(result, sizeof(result), "{\"sessionId\":\"bench-%04u\"}", ++agent->sessions);
	return answer(request, result);
}

/*
 * The head of the answer is shorter than the bytes before the params. So it is written over them,
 * and the whole answer is sent in one write.
 */
static bool on_echo(struct agent *agent, struct request *request)
{
	char head[ENVELOPE_MAX];
	const char *const key = "\"params\":";
	char *params = memmem(request->data, request->len, key, strlen(key));

	if (params == NULL) {
		return false;
	}
	params += strlen(key);
	const int len = snprintf(
		head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":", request->id);
	if (len > params - request->data) {
		return false;
	}
	params -= len;
	memcpy(params, head, (size_t)len);
	return write_all(STDOUT_FILENO, params, (size_t)(request->data + request->len - params));
}

static bool stream(const char *session, const char *shape, unsigned long count)
{
	struct line line;

	if (!line_init(&line, shape, LINE_UPDATE, session)) {
		return false;
	}
	bool written = true;
	for (unsigned i = 0; written && i < count; i++) {
		line_set_number(&line, LINE_FIRST_NUMBER + i);
		written = write_all(STDOUT_FILENO, line.data, line.len);
	}
	line_finish(&line);
	return written;
}

static bool measure_tools(
	struct agent *agent, const char *session, const char *what, const struct request *request)
{
	char measured[256];
	char result[512];
	struct asker asker = {.lines = &agent->lines, .session = session, .last_id = agent->asked};

	if (!tools_measure(&asker, what, measured, sizeof(measured))) {
		return false;
	}
	agent->asked = asker.last_id;
	(void)snprintf(result, sizeof(result),
		"{\"stopReason\":\"end_turn\",\"_meta\":{\"bench\":%s}}", measured);
	return answer(request, result);
}

static bool on_prompt(struct agent *agent, struct request *request)
{
	char session[64];
	char what[64];
	char *count = NULL;

	if (!text_between(request->data, request->len, "\"sessionId\":\"", '"', session,
		    sizeof(session))) {
		return false;
	}
	if (text_between(request->data, request->len, "\"tools ", '"', what, sizeof(what))) {
		return measure_tools(agent, session, what, request);
	}
	if (!text_between(request->data, request->len, "\"stream ", '"', what, sizeof(what))) {
		return false;
	}
	count = strchr(what, ' ');
	if (count == NULL) {
		return false;
	}
	*count++ = '\0';
	return stream(session, what, strtoul(count, NULL, 10)) &&
	       answer(request, "{\"stopReason\":\"end_turn\"}");
}

static const struct {
	const char *method;
	bool (*handle)(struct agent *agent, struct request *request);
} methods[] = {
	{"_bench/echo", on_echo},
	{"session/prompt", on_prompt},
	{"session/new", on_session_new},
	{"initialize", on_initialize},
};

/* The id and the method are at the beginning of every line that the client sends. */
static bool handle_line(struct agent *agent, char *data, size_t len)
{
	struct request request = {.data = data, .len = len};
	const size_t front = len < ENVELOPE_MAX ? len : ENVELOPE_MAX;
	char method[64];

	if (!text_between(data, front, "\"method\":\"", '"', method, sizeof(method))) {
		return true;
	}
	if (!text_between(data, front, "\"id\":", ',', request.id, sizeof(request.id))) {
		return true;
	}
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].method, method) != 0) {
			continue;
		}
		if (!methods[i].handle(agent, &request)) { // the line may be gone by now
			(void)fprintf(stderr, "load_agent: cannot handle %s\n", method);
			return false;
		}
		return true;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct agent agent = {0};
	size_t len = 0;

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "write") == 0) {
		return tools_write_text(strtoull(argv[2], NULL, 10)) ? 0 : 1;
	}
	lines_init(&agent.lines, STDIN_FILENO);
	for (;;) {
		char *line = lines_next(&agent.lines, &len);
		if (line == NULL) {
			break;
		}
		if (!handle_line(&agent, line, len)) {
			lines_finish(&agent.lines);
			return 1;
		}
	}
	lines_finish(&agent.lines);
	return 0;
}
