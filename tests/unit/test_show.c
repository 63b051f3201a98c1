/* SPDX-License-Identifier: MIT */
#include "broker/chat/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UPDATE(kind, rest)                                                                         \
	"{\"update\":{\"sessionUpdate\":\"" kind "\",\"toolCallId\":\"1\"," rest "}}"
#define DIFF                                                                                       \
	"\"content\":[{\"type\":\"diff\",\"path\":\"/w/f\",\"oldText\":\"a\",\"newText\":\"b\"}]"

static int set_up(void **state)
{
	struct show *show = mem_alloc_zero(sizeof(*show));
	show_init(show, false);
	show_set_root(show, 0, "/w");
	show_set_root(show, 1, "/copies/1/w");
	*state = show;
	return 0;
}

static int tear_down(void **state)
{
	show_finish(*state);
	free(*state);
	return 0;
}

static void assert_shown(struct show *show, const char *params, const char *wanted)
{
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	show_update(show, span_of(params), &out);
	char *text = mem_strndup(buf_span(&out));
	assert_string_equal(text, wanted);
	free(text);
	buf_finish(&out);
}

static void assert_asked(struct show *show, const char *call, const char *wanted)
{
	struct buf out;
	struct json_doc *doc = json_doc_parse_unchecked(span_of(call), NULL);
	buf_init(&out, SIZE_MAX / 2);
	show_asked_call(show, doc, 0, &out);
	char *text = mem_strndup(buf_span(&out));
	assert_string_equal(text, wanted);
	free(text);
	buf_finish(&out);
	json_doc_destroy(doc);
}

static void test_a_call_that_is_announced_bare_has_one_line(void **state)
{
	assert_shown(*state,
		UPDATE("tool_call",
			"\"title\":\"Edit\",\"rawInput\":{},\"content\":[],\"status\":\"pending\""),
		"");
	assert_shown(*state,
		UPDATE("tool_call", "\"title\":\"Edit `/copies/1/w/f`\",\"rawInput\":{\"f\":1}"),
		"* Edit `f`\n");
	assert_shown(*state, UPDATE("tool_call", "\"title\":\"Edit `/copies/1/w/f`\""), "");
	assert_shown(
		*state, UPDATE("tool_call_update", "\"status\":\"completed\""), "+ Edit `f`\n");
}

static void test_a_question_shows_the_diff_that_came_with_the_call(void **state)
{
	assert_shown(*state, UPDATE("tool_call", "\"title\":\"Edit\"," DIFF), "* Edit\n");
	assert_asked(*state, "{\"toolCallId\":\"1\",\"title\":\"Edit\"}", "   f\n  - a\n  + b\n");
	assert_shown(
		*state, UPDATE("tool_call_update", "\"status\":\"completed\"," DIFF), "+ Edit\n");
}

static void test_a_diff_that_no_question_has_shown_comes_with_the_end(void **state)
{
	assert_shown(*state, UPDATE("tool_call", "\"title\":\"Edit\"," DIFF), "* Edit\n");
	assert_asked(*state, "{\"toolCallId\":\"2\",\"title\":\"Other\"}", "");
	assert_shown(*state, UPDATE("tool_call_update", "\"status\":\"completed\""),
		"+ Edit\n   f\n  - a\n  + b\n");
}

static void test_only_paths_below_the_workspace_become_shorter(void **state)
{
	assert_shown(*state,
		UPDATE("tool_call", "\"title\":\"/w/a:/w /x/w/b /wide/c '/copies/1/w/d' /w\""),
		"* a:/w /x/w/b /wide/c 'd' /w\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_call_that_is_announced_bare_has_one_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_question_shows_the_diff_that_came_with_the_call, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_diff_that_no_question_has_shown_comes_with_the_end, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_only_paths_below_the_workspace_become_shorter, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
