/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "acp/frames.h"
#include "base/fd.h"
#include "tests/support/facts.h"

/* ---- messages ---- */

/* Hands a message over as the relay would; it is valid until the return. */
void fixture_with_message(
	const char *text, void (*use)(const struct message *message, void *data), void *data)
{
	struct frame_reader *reader = frame_reader_create(fixture.places, 256 << 20);
	size_t len = strlen(text);
	struct frame frame;
	struct message message;
	struct error err;
	for (size_t at = 0; at <= len;) { // with a newline in the place of the final NUL
		size_t size;
		char *space = frame_reader_space(reader, &size);
		size_t count = len + 1 - at < size ? len + 1 - at : size;
		memcpy(space, text + at, count);
		at += count;
		if (at > len) {
			space[count - 1] = '\n';
		}
		frame_reader_fed(reader, count);
		if (at <= len) {
			assert_false(frame_reader_next(reader, &frame));
		}
	}
	assert_true(frame_reader_next(reader, &frame));
	if (frame.kind != FRAME_MESSAGE) {
		fail_msg("%.200s: %s", text, frame.error.text);
	}
	assert_true(message_read(&message, &frame, &err));
	use(&message, data);
	frame_reader_destroy(reader);
}

static void use_call(const struct message *message, void *data)
{
	assert_true(toolhost_has_method(message->method));
	fixture.is_inside = true;
	toolhost_call(fixture.toolhost, message, fixture.session, fixture.roots, fixture.resolved);
	fixture.is_inside = false;
}

/*
 * Sends a request; `params` has what is inside the braces, except the session. Returns the call's
 * id.
 */
int ask_text(const char *method, const char *params)
{
	char *text = NULL;
	int id = ++fixture.last_id;
	assert_true(id < FIXTURE_ANSWERS_MAX);
	assert_true(asprintf(&text,
			    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{"
			    "\"sessionId\":\"%s\"%s%s}}",
			    id, method, fixture.session, *params ? "," : "", params) > 0);
	fixture_with_message(text, use_call, NULL);
	free(text);
	return id;
}

int ask(const char *method, const char *format, ...)
{
	char *params = NULL;
	va_list args;
	va_start(args, format);
	assert_true(vasprintf(&params, format, args) >= 0);
	va_end(args);
	int id = ask_text(method, params);
	free(params);
	return id;
}

static bool is_answered(const void *data)
{
	return ((const struct answer *)data)->is_there;
}

const struct answer *wait_for(int id)
{
	const struct answer *answer = &fixture.answers[id];
	assert_true(fixture_turn(is_answered, answer, FIXTURE_DEADLINE_MS));
	return answer;
}

const char *result_of(int id)
{
	const struct answer *answer = wait_for(id);
	if (answer->is_failure) {
		fail_msg("%s: %s", answer->code, answer->text);
	}
	return answer->text;
}

void expect_result(int id, const char *result)
{
	assert_string_equal(result_of(id), result);
}

/* Fails with this code and a message that has these facts. */
const struct answer *expect_failure(int id, const char *code, const char *facts)
{
	const struct answer *answer = wait_for(id);
	if (!answer->is_failure) {
		fail_msg("a result: %.300s", answer->text);
	}
	if (strcmp(answer->code, code) != 0 || !text_names(answer->text, facts)) {
		fail_msg(
			"%s: %s; expected %s with \"%s\"", answer->code, answer->text, code, facts);
	}
	return answer;
}

/* A member of a result, decoded; valid until the next call. */
const char *member_of(int id, const char *path)
{
	static char *text;
	const char *result = result_of(id);
	struct json_doc *doc = json_doc_parse(span_of(result), NULL);
	assert_non_null(doc);
	free(text);
	json_node node = json_path(doc, 0, path);
	text = json_is(doc, node, JSON_STRING) ? json_string(doc, node)
	                                       : mem_strndup(json_raw(doc, node));
	json_doc_destroy(doc);
	return text;
}

/* ---- terminals ---- */

const char *terminal_open(const char *command)
{
	static char ids[4][32];
	static int next;
	char *id = ids[next++ % 4];
	int call = ask("terminal/create", "\"command\":\"%s\"", command);
	snprintf(id, sizeof(ids[0]), "%s", member_of(call, "terminalId"));
	return id;
}

int terminal_ask(const char *method, const char *id)
{
	char name[64];
	snprintf(name, sizeof(name), "terminal/%s", method);
	return ask(name, "\"terminalId\":\"%s\"", id);
}

const char *terminal_wait_output(const char *id, const char *words)
{
	long long deadline_ms = clock_now_ms() + FIXTURE_DEADLINE_MS;
	const char *output;
	do {
		output = member_of(terminal_ask("output", id), "output");
		if (strstr(output, words)) {
			return output;
		}
		fixture_run_for(10);
	} while (clock_now_ms() < deadline_ms);
	fail_msg("\"%s\" never came: %s", words, output);
	return NULL;
}

/* ---- the sandbox's files, from outside ---- */

/* A path below the root, on this machine; valid until the fourth call after it. */
const char *local_path(const char *name)
{
	static char paths[4][512];
	static int next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", fixture.files, name);
	return path;
}

void put_file(const char *name, const void *bytes, size_t len)
{
	FILE *file = fopen(local_path(name), "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

void put_text_file(const char *name, const char *text)
{
	put_file(name, text, strlen(text));
}

/* Owned by the caller. */
char *get_file(const char *name)
{
	FILE *file = fopen(local_path(name), "re");
	if (!file) {
		return NULL;
	}
	struct buf content;
	buf_init(&content, 64 << 20);
	size_t count;
	do {
		char *at = buf_reserve(&content, 65536, NULL);
		assert_non_null(at);
		count = fread(at, 1, 65536, file);
		buf_commit(&content, count);
	} while (count > 0);
	fclose(file);
	char *text = mem_strndup(buf_span(&content));
	buf_finish(&content);
	return text;
}
