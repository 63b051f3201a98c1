/* SPDX-License-Identifier: MIT */
#include "broker/relay/sync_show.h"

#include "tests/unit/relay_fixture.h"

static struct sync_show show;

/* The next line shows this of the tool call with this number, or ends the tool call. */
static void editor_is_shown(struct fixture *fixture, const char *kind, int number,
	const char *title, const char *status)
{
	bool is_new = strcmp(kind, "tool_call") == 0;
	editor_hears(fixture,
		"'method':'session/update','params':{'sessionId':'s','update':{"
		"'sessionUpdate':'%s','toolCallId':'acp-broker-notice-%d','title':'%s',%s"
		"'status':'%s'}}",
		kind, number, title, is_new ? "'kind':'other'," : "", status);
}

static struct fixture *start(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	sync_show_begin(&show, fixture->relay, "s");
	return fixture;
}

static struct fixture *start_slow(void **state)
{
	struct fixture *fixture = *state;
	fixture->sync_moment_ms = 1;
	return start(state);
}

static void test_a_quick_sync_without_news_is_not_shown(void **state)
{
	struct fixture *fixture = start(state);
	sync_show_add(&show, "all is well", false, false);
	sync_show_end(&show);
	editor_hears_nothing(fixture);
}

static void test_the_news_of_a_quick_sync_are_shown_once(void **state)
{
	struct fixture *fixture = start(state);
	sync_show_add(&show, "well", false, false);
	sync_show_add(&show, "one conflict", true, false);
	sync_show_add(&show, "well too", false, false);
	sync_show_add(&show, "another", true, false);
	sync_show_end(&show);
	editor_is_shown(fixture, "tool_call", 1, "one conflict; another", "completed");
	editor_hears_nothing(fixture);
}

static void test_a_failure_is_shown_as_one(void **state)
{
	struct fixture *fixture = start(state);
	sync_show_add(&show, "no space left", true, true);
	sync_show_add(&show, "a note", true, false);
	sync_show_end(&show);
	editor_is_shown(fixture, "tool_call", 1, "no space left; a note", "failed");
}

static void test_a_slow_sync_is_shown_and_ends_with_what_it_did(void **state)
{
	struct fixture *fixture = start_slow(state);
	editor_is_shown(fixture, "tool_call", 1, "Syncing workspace", "in_progress");
	sync_show_add(&show, "one file", false, false);
	sync_show_add(&show, "two files", false, false);
	sync_show_end(&show);
	editor_is_shown(fixture, "tool_call_update", 1, "one file; two files", "completed");
}

static void test_a_slow_sync_that_nobody_waits_for_shows_only_its_news_then(void **state)
{
	struct fixture *fixture = start_slow(state);
	editor_is_shown(fixture, "tool_call", 1, "Syncing workspace", "in_progress");
	sync_show_leave(&show, "cancelled");
	editor_is_shown(fixture, "tool_call_update", 1, "cancelled", "failed");
	sync_show_add(&show, "well", false, false);
	sync_show_end(&show);
	editor_hears_nothing(fixture);
	sync_show_add(&show, "a conflict", true, false);
	sync_show_end(&show);
	editor_is_shown(fixture, "tool_call", 2, "a conflict", "completed");
}

static void test_a_session_that_is_gone_is_shown_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	sync_show_begin(&show, fixture->relay, "unknown");
	sync_show_add(&show, "a conflict", true, false);
	sync_show_end(&show);
	editor_hears_nothing(fixture);
}

static void test_what_does_not_fit_is_cut(void **state)
{
	struct fixture *fixture = start(state);
	char text[SYNC_TEXT_MAX];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 4; i++) {
		sync_show_add(&show, text, true, false);
	}
	assert_int_equal(strlen(show.text), SYNC_SHOW_TEXT_MAX - 1);
	sync_show_end(&show);
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "xxxx"));
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_quick_sync_without_news_is_not_shown),
		RELAY_TEST(test_the_news_of_a_quick_sync_are_shown_once),
		RELAY_TEST(test_a_failure_is_shown_as_one),
		RELAY_TEST(test_a_slow_sync_is_shown_and_ends_with_what_it_did),
		RELAY_TEST(test_a_slow_sync_that_nobody_waits_for_shows_only_its_news_then),
		RELAY_TEST(test_a_session_that_is_gone_is_shown_nothing),
		RELAY_TEST(test_what_does_not_fit_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
