/* SPDX-License-Identifier: MIT */
#include "broker/session/trace.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json_doc.h"
#include "base/secrets.h"
#include "tests/unit/stderr_capture.h"

enum { TEXT_MAX = 1 << 20 };

static char path[64];
static struct capture capture;
static struct secrets *secrets; // of the trace that was opened last

static int set_up(void **state)
{
	snprintf(path, sizeof(path), "/tmp/test-trace-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	capture_pipe(&capture);
	return 0;
}

static int tear_down(void **state)
{
	capture_stop(&capture);
	secrets_destroy(secrets);
	secrets = NULL;
	unlink(path);
	return 0;
}

static const char *const no_environment[] = {NULL};

static struct trace *open_trace(const char *const *environment, const char *const *names)
{
	struct error err;
	secrets_destroy(secrets);
	secrets = secrets_create(environment, names);
	struct trace *trace = trace_open(path, secrets, &err);
	if (!trace) {
		fail_msg("%s", err.text);
	}
	return trace;
}

/* The whole file; the test's until the next call. */
static const char *traced(void)
{
	static char text[TEXT_MAX];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	return text;
}

/* The only line of the file, without its time, which is checked here. */
static const char *traced_line(void)
{
	static const char shape[] = "{\"time\":\"dddd-dd-ddTdd:dd:dd.dddZ\",";
	const char *text = traced();
	for (size_t i = 0; i < sizeof(shape) - 1; i++) {
		bool ok = shape[i] == 'd' && i > 8 ? text[i] >= '0' && text[i] <= '9'
		                                   : text[i] == shape[i];
		if (!ok) {
			fail_msg("not the shape of a time: %.40s", text);
		}
	}
	return text + sizeof(shape) - 1;
}

static void message(struct trace *trace, const char *text)
{
	trace_message(trace, "editor", true, span_of(text));
}

/* ---- lines ---- */

static void test_a_message_is_a_line_as_it_was_on_the_wire(void **state)
{
	struct trace *trace = open_trace(no_environment, NULL);
	message(trace, "{ \"id\":1.0, \"x\":\"\\u0061\" }");
	assert_string_equal(traced_line(), "\"hop\":\"editor\",\"direction\":\"in\","
					   "\"message\":{ \"id\":1.0, \"x\":\"\\u0061\" }}\n");
	trace_close(trace);
}

static void test_direction_and_hop_are_told(void **state)
{
	struct trace *trace = open_trace(no_environment, NULL);
	trace_message(trace, "agent 1", false, SPAN_LITERAL("{}"));
	assert_string_equal(
		traced_line(), "\"hop\":\"agent 1\",\"direction\":\"out\",\"message\":{}}\n");
	trace_close(trace);
}

static void test_noise_is_quoted_with_its_length(void **state)
{
	struct trace *trace = open_trace(no_environment, NULL);
	trace_noise(trace, "agent 1", SPAN_LITERAL("Welcome \"back\"\x01\xff"), 4711);
	assert_string_equal(traced_line(),
		"\"hop\":\"agent 1\",\"direction\":\"in\","
		"\"noise\":\"Welcome \\\"back\\\"\\u0001\xef\xbf\xbd\",\"length\":4711}\n");
	trace_close(trace);
}

static void test_lines_are_appended_to_a_private_file(void **state)
{
	struct stat status;
	unlink(path);
	for (int i = 0; i < 2; i++) {
		struct trace *trace = open_trace(no_environment, NULL);
		message(trace, "{}");
		trace_close(trace);
	}
	const char *second = strchr(traced(), '\n');
	assert_non_null(second);
	assert_int_equal(second[1], '{');
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
}

static void test_no_trace_is_fine(void **state)
{
	trace_message(NULL, "editor", true, SPAN_LITERAL("{}"));
	trace_noise(NULL, "editor", SPAN_LITERAL("x"), 1);
	trace_close(NULL);
}

/* ---- secrets ---- */

static void assert_masked(const char *text, const char *expected)
{
	char line[1024];
	struct trace *trace = open_trace(no_environment, NULL);
	message(trace, text);
	trace_close(trace);
	snprintf(line, sizeof(line), "\"hop\":\"editor\",\"direction\":\"in\",\"message\":%s}\n",
		expected);
	assert_string_equal(traced_line(), line);
}

static void test_values_of_mcp_environments_are_masked(void **state)
{
	assert_masked("{\"params\":{\"mcpServers\":[{\"name\":\"a\",\"env\":[{\"name\":\"N\","
		      "\"value\":\"v1\"},{\"value\":\"v2\",\"name\":\"M\"}]}]}}",
		"{\"params\":{\"mcpServers\":[{\"name\":\"a\",\"env\":[{\"name\":\"N\","
		"\"value\":\"***\"},{\"value\":\"***\",\"name\":\"M\"}]}]}}");
}

static void test_values_of_mcp_headers_are_masked(void **state)
{
	assert_masked("{\"params\":{\"mcpServers\":[{},{\"headers\":[{\"name\":\"N\","
		      "\"value\":{\"odd\":1}}]}]}}",
		"{\"params\":{\"mcpServers\":[{},{\"headers\":[{\"name\":\"N\","
		"\"value\":\"***\"}]}]}}");
}

/* A password in an address, a key among the words of a command. */
static void test_addresses_and_words_of_mcp_servers_are_masked(void **state)
{
	assert_masked("{\"params\":{\"mcpServers\":[{\"type\":\"http\",\"url\":"
		      "\"https://me:word@h/?key=k\"},{\"command\":\"c\",\"args\":"
		      "[\"--key\",\"k\"]}]}}",
		"{\"params\":{\"mcpServers\":[{\"type\":\"http\",\"url\":"
		"\"***\"},{\"command\":\"c\",\"args\":\"***\"}]}}");
}

static void test_values_of_a_terminals_environment_are_masked(void **state)
{
	assert_masked("{\"params\":{\"command\":\"ls\",\"env\":[{\"name\":\"N\","
		      "\"value\":\"\"}]}}",
		"{\"params\":{\"command\":\"ls\",\"env\":[{\"name\":\"N\",\"value\":\"***\"}]}}");
}

static void test_environments_of_login_methods_are_masked(void **state)
{
	assert_masked("{\"result\":{\"authMethods\":[{\"id\":\"x\",\"env\":{\"K\":\"v\"}}]}}",
		"{\"result\":{\"authMethods\":[{\"id\":\"x\",\"env\":\"***\"}]}}");
}

static void test_the_same_names_elsewhere_are_shown(void **state)
{
	static const char text[] = "{\"params\":{\"update\":{\"env\":[{\"value\":\"v\"}]}},"
				   "\"env\":[{\"value\":\"v\"}],\"value\":\"v\"}";
	assert_masked(text, text);
}

static void test_values_of_secret_variables_are_masked_wherever_they_stand(void **state)
{
	static const char *const environment[] = {"OPENAI_API_KEY=sk-12345678",
		"My_Token=tok-654321", "DB_PASSWORD=pass word", "PLAIN=visible-value", "odd",
		"ANTHROPIC_THING=named-secret", "SHORT_KEY=12345", "EMPTY_KEY=", NULL};
	static const char *const names[] = {"ANTHROPIC_THING", "NOT_SET", NULL};
	struct trace *trace = open_trace(environment, names);
	message(trace, "{\"a\":\"use sk-12345678sk-12345678!\",\"tok-654321\":[\"pass word\","
		       "\"visible-value\",\"named-secret\",\"12345\"]}");
	trace_noise(trace, "agent 1", SPAN_LITERAL("export KEY=sk-12345678"), 22);
	trace_close(trace);
	const char *text = traced();
	assert_non_null(strstr(text, "{\"a\":\"use ******!\",\"***\":[\"***\","
				     "\"visible-value\",\"***\",\"12345\"]}"));
	assert_non_null(strstr(text, "\"noise\":\"export KEY=***\""));
	assert_null(strstr(text, "sk-1"));
}

static void test_a_secret_is_found_as_json_spells_it(void **state)
{
	static const char *const environment[] = {"A_SECRET=line\n\"quoted\\", NULL};
	struct trace *trace = open_trace(environment, NULL);
	message(trace, "{\"a\":\"<line\\n\\\"quoted\\\\>\"}");
	trace_noise(trace, "agent 1", SPAN_LITERAL("<line\n\"quoted\\>"), 15);
	message(trace, "{\"b\":\"<\\u006cine\\u000a\\u0022quoted\\\\>\"}");
	trace_noise(trace, "agent 1", SPAN_LITERAL("[\"\\u006cine\\n\\\"quoted\\\\>"), 40);
	trace_close(trace);
	assert_non_null(strstr(traced(), "{\"a\":\"<***>\"}"));
	assert_non_null(strstr(traced(), "\"noise\":\"<***>\""));
	assert_non_null(strstr(traced(), "{\"b\":\"<***>\"}"));
	assert_non_null(strstr(traced(), "\"noise\":\"[\\\"***>\""));
}

static void test_of_two_secrets_the_longer_is_masked_whole(void **state)
{
	static const char *const environment[] = {
		"A_KEY=secret", "B_KEY=secret-and-more", "C_KEY=my-secret", NULL};
	struct trace *trace = open_trace(environment, NULL);
	message(trace, "[\"secret-and-more\",\"my-secret\",\"secret\"]");
	trace_close(trace);
	assert_non_null(strstr(traced(), "[\"***\",\"***\",\"***\"]"));
}

/* ---- failures ---- */

static void test_a_file_that_cannot_be_opened_is_a_mistake_of_the_user(void **state)
{
	struct error err;
	assert_null(trace_open("/nowhere/at/all", NULL, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_string_equal(err.text, "--trace /nowhere/at/all: No such file or directory");
}

static void test_a_fifo_without_a_reader_does_not_hang(void **state)
{
	struct error err;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(trace_open(path, NULL, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_non_null(strstr(err.text, "No such device or address"));
}

static void test_a_full_disk_ends_the_trace_and_is_said_once(void **state)
{
	struct error err;
	struct trace *trace = trace_open("/dev/full", NULL, &err);
	assert_non_null(trace);
	message(trace, "{}");
	message(trace, "{}");
	trace_noise(trace, "agent 1", SPAN_LITERAL("x"), 1);
	trace_close(trace);
	const char *text = logged(&capture);
	assert_non_null(strstr(text, "<3>trace /dev/full: "));
	assert_non_null(strstr(text, "No space left on device; nothing more is traced\n"));
	assert_int_equal(strchr(text, '\n') - text, strlen(text) - 1);
}

/* A message with more secrets than edits are allowed is not written unmasked. */
static void test_what_cannot_be_masked_is_not_shown(void **state)
{
	struct buf text;
	struct trace *trace = open_trace(no_environment, NULL);
	buf_init(&text, (size_t)4 * TEXT_MAX);
	assert_true(buf_append(&text, SPAN_LITERAL("{\"params\":{\"env\":[{}"), NULL));
	for (int i = 0; i < 70000; i++) {
		assert_true(buf_append(&text, SPAN_LITERAL(",{\"value\":\"s3cret\"}"), NULL));
	}
	assert_true(buf_append(&text, SPAN_LITERAL("]}}"), NULL));
	trace_message(trace, "editor", true, buf_span(&text));
	trace_close(trace);
	char expected[128];
	snprintf(expected, sizeof(expected),
		"\"hop\":\"editor\",\"direction\":\"in\",\"unmaskable\":%zu}\n", text.len);
	assert_string_equal(traced_line(), expected);
	buf_finish(&text);
}

#define TRACE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACE_TEST(test_a_message_is_a_line_as_it_was_on_the_wire),
		TRACE_TEST(test_direction_and_hop_are_told),
		TRACE_TEST(test_noise_is_quoted_with_its_length),
		TRACE_TEST(test_lines_are_appended_to_a_private_file),
		TRACE_TEST(test_no_trace_is_fine),
		TRACE_TEST(test_values_of_mcp_environments_are_masked),
		TRACE_TEST(test_values_of_mcp_headers_are_masked),
		TRACE_TEST(test_addresses_and_words_of_mcp_servers_are_masked),
		TRACE_TEST(test_values_of_a_terminals_environment_are_masked),
		TRACE_TEST(test_environments_of_login_methods_are_masked),
		TRACE_TEST(test_the_same_names_elsewhere_are_shown),
		TRACE_TEST(test_values_of_secret_variables_are_masked_wherever_they_stand),
		TRACE_TEST(test_a_secret_is_found_as_json_spells_it),
		TRACE_TEST(test_of_two_secrets_the_longer_is_masked_whole),
		TRACE_TEST(test_a_file_that_cannot_be_opened_is_a_mistake_of_the_user),
		TRACE_TEST(test_a_fifo_without_a_reader_does_not_hang),
		TRACE_TEST(test_a_full_disk_ends_the_trace_and_is_said_once),
		TRACE_TEST(test_what_cannot_be_masked_is_not_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
