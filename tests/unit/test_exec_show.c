/* SPDX-License-Identifier: MIT */
#include "broker/cli/exec_show.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/text.h"

enum { READ_MAX = 8192 };

/* What it prints, read through a pipe that replaces stdout. */
struct fixture {
	struct ev_loop *loop;
	struct output output;
	struct exec_show show;
	int from;
	char told[64];
};

static void on_drained(void *data)
{
	struct fixture *fixture = data;
	text_append(fixture->told, sizeof(fixture->told), "drained ");
}

static void on_flushed(void *data)
{
}

static void on_broken(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	text_append(fixture->told, sizeof(fixture->told), "%s ",
		err->code == ERROR_UNAVAILABLE ? "gone" : "failed");
}

static const struct output_listener listener = {
	.on_drained = on_drained,
	.on_flushed = on_flushed,
	.on_broken = on_broken,
};

static void begin(struct fixture *fixture, bool is_json)
{
	struct error err;
	int fds[2];
	*fixture = (struct fixture){.loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV)};
	assert_true(fd_pipe(fds, &err));
	fixture->from = fds[0];
	assert_true(output_init(&fixture->output, fixture->loop, fds[1], &listener, fixture, &err));
	close(fds[1]);
	exec_show_init(&fixture->show, &fixture->output, is_json);
	log_set_level(LOG_LEVEL_ERROR); // not into the test's own report
}

static void end(struct fixture *fixture)
{
	exec_show_finish(&fixture->show);
	output_finish(&fixture->output);
	close(fixture->from);
	ev_loop_destroy(fixture->loop);
}

/* Ends, and compares all that came. */
static void assert_printed(struct fixture *fixture, const char *expected)
{
	static char text[READ_MAX];
	assert_true(output_is_idle(&fixture->output));
	size_t len = strlen(expected);
	ssize_t count = len > 0 ? read(fixture->from, text, sizeof(text) - 1) : 0;
	assert_true(count >= 0);
	text[count] = '\0';
	assert_string_equal(text, expected);
	end(fixture);
}

static void update(struct fixture *fixture, const char *update)
{
	char params[1024];
	snprintf(params, sizeof(params), "{\"sessionId\":\"s\",\"update\":{%s}}", update);
	exec_show_update(&fixture->show, span_of(params));
}

#define WORDS(text)                                                                                \
	"\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":"       \
	"\"" text "\"}"
#define CALL "\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"title\":\"t\""

static void test_words_are_printed_as_they_come(void **state)
{
	struct fixture fixture;
	begin(&fixture, false);
	update(&fixture, WORDS("a"));
	update(&fixture, WORDS("\\u00e4\\n\\u0000b"));
	update(&fixture, "\"sessionUpdate\":\"agent_thought_chunk\",\"content\":{\"type\":"
			 "\"text\",\"text\":\"secret\"}");
	update(&fixture, "\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":"
			 "\"text\",\"text\":\"mine\"}");
	exec_show_result(&fixture.show, "end_turn", SPAN_LITERAL("{}"));
	char text[READ_MAX];
	assert_int_equal(read(fixture.from, text, sizeof(text)), 7);
	assert_memory_equal(text, "a\xc3\xa4\n\0b\n", 7);
	end(&fixture);
}

static void test_words_after_a_tool_call_begin_a_line(void **state)
{
	struct fixture fixture;
	begin(&fixture, false);
	update(&fixture, CALL);
	update(&fixture, WORDS("a"));
	update(&fixture, CALL);
	update(&fixture, CALL);
	update(&fixture, WORDS("b\\n"));
	update(&fixture, CALL);
	update(&fixture, WORDS("c"));
	assert_printed(&fixture, "a\nb\nc");
}

static void test_updates_that_are_odd_print_nothing(void **state)
{
	static const char *const odd[] = {"", "\"sessionUpdate\":7",
		"\"sessionUpdate\":\"new_kind\"", "\"sessionUpdate\":\"agent_message_chunk\"",
		"\"sessionUpdate\":\"agent_message_chunk\",\"content\":[]",
		"\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"image\"}",
		"\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\"}",
		WORDS(""), WORDS("\",\"annotations\":\""),
		"\"sessionUpdate\":\"agent_message_chunk\",\"content\":null",
		"\"sessionUpdate\":\"tool_call\"",
		"\"sessionUpdate\":\"tool_call_update\",\"status\":\"failed\""};
	struct fixture fixture;
	begin(&fixture, false);
	for (size_t i = 0; i < ARRAY_LENGTH(odd); i++) {
		update(&fixture, odd[i]);
	}
	exec_show_update(&fixture.show, SPAN_LITERAL("null"));
	exec_show_update(&fixture.show, SPAN_LITERAL("[1]"));
	assert_printed(&fixture, "");
}

static void test_json_is_a_line_an_object_and_one_result(void **state)
{
	struct fixture fixture;
	begin(&fixture, true);
	update(&fixture, WORDS("a"));
	exec_show_question(&fixture.show, SPAN_LITERAL("{\"x\":1}"), SPAN_LITERAL("{\"y\":2}"));
	exec_show_result(&fixture.show, "refusal", SPAN_LITERAL("{\"usage\":{\"n\":1}}"));
	exec_show_error(&fixture.show, SPAN_LITERAL("{}"));
	exec_show_failure(&fixture.show, "late");
	assert_printed(&fixture,
		"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":"
		"{" WORDS("a") "}}}\n"
			       "{\"method\":\"session/request_permission\",\"params\":{\"x\":1},"
			       "\"answer\":{\"y\":2}}\n"
			       "{\"stopReason\":\"refusal\",\"text\":\"a\",\"isTextCut\":false,"
			       "\"usage\":{\"n\":1}}\n");
	begin(&fixture, true);
	exec_show_error(&fixture.show, SPAN_LITERAL("{\"code\":1}"));
	assert_printed(&fixture, "{\"error\":{\"code\":1}}\n");
	begin(&fixture, true);
	exec_show_failure(&fixture.show, "why");
	assert_printed(&fixture, "{\"error\":{\"message\":\"why\"}}\n");
}

static void test_the_text_of_the_result_has_a_limit(void **state)
{
	struct fixture fixture;
	begin(&fixture, true);
	buf_finish(&fixture.show.text);
	buf_init(&fixture.show.text, 4);
	update(&fixture, WORDS("abc\\u00e4d"));
	update(&fixture, WORDS("e"));
	assert_true(fixture.show.is_text_cut);
	assert_true(span_is(buf_span(&fixture.show.text), "abc"));
	end(&fixture);
}

/* ---- the output itself ---- */

static void test_a_slow_reader_fills_a_queue_that_drains(void **state)
{
	static char bytes[OUTPUT_MAX + 200 * 1024];
	memset(bytes, 'x', sizeof(bytes));
	struct fixture fixture;
	begin(&fixture, false);
	output_print(&fixture.output, (struct span){bytes, sizeof(bytes)});
	assert_true(output_is_over(&fixture.output));
	size_t got = 0;
	while (got < sizeof(bytes)) {
		ssize_t count = read(fixture.from, bytes, sizeof(bytes));
		assert_true(count > 0);
		got += (size_t)count;
		ev_run(fixture.loop, EVRUN_NOWAIT);
	}
	assert_string_equal(fixture.told, "drained ");
	assert_true(output_is_idle(&fixture.output));
	end(&fixture);
}

static void test_a_reader_that_leaves_is_noticed_without_a_word(void **state)
{
	struct fixture fixture;
	begin(&fixture, false);
	ev_run(fixture.loop, EVRUN_NOWAIT);
	assert_string_equal(fixture.told, "");
	close(fixture.from);
	ev_run(fixture.loop, EVRUN_ONCE);
	assert_string_equal(fixture.told, "gone ");
	output_print(&fixture.output, SPAN_LITERAL("x"));
	assert_true(output_is_idle(&fixture.output));
	fixture.from = -1;
	end(&fixture);
}

static void test_what_is_dropped_is_never_written(void **state)
{
	static char bytes[OUTPUT_MAX];
	struct fixture fixture;
	begin(&fixture, false);
	output_print(&fixture.output, (struct span){bytes, sizeof(bytes)});
	assert_false(output_is_idle(&fixture.output));
	output_drop(&fixture.output);
	assert_true(output_is_idle(&fixture.output));
	ev_run(fixture.loop, EVRUN_NOWAIT);
	assert_string_equal(fixture.told, "");
	end(&fixture);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_are_printed_as_they_come),
		cmocka_unit_test(test_words_after_a_tool_call_begin_a_line),
		cmocka_unit_test(test_updates_that_are_odd_print_nothing),
		cmocka_unit_test(test_json_is_a_line_an_object_and_one_result),
		cmocka_unit_test(test_the_text_of_the_result_has_a_limit),
		cmocka_unit_test(test_a_slow_reader_fills_a_queue_that_drains),
		cmocka_unit_test(test_a_reader_that_leaves_is_noticed_without_a_word),
		cmocka_unit_test(test_what_is_dropped_is_never_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
