/* SPDX-License-Identifier: MIT */
#include "broker/chat/ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "acp/places.h"
#include "broker/gate/grant_hosts_question.h"

enum { TEXT_MAX = 4096 };

struct fixture {
	struct json_places *places;
	struct json_check *check;
	char text[TEXT_MAX];
	struct show show;
	struct ask ask;
	char *shown; // what the question has printed
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->places = places_create();
	fixture->check = json_check_create(fixture->places);
	show_init(&fixture->show, false);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	ask_close(&fixture->ask);
	show_finish(&fixture->show);
	json_check_destroy(fixture->check);
	json_places_destroy(fixture->places);
	free(fixture->shown);
	free(fixture);
	return 0;
}

static void open_question(
	struct fixture *fixture, const char *id, const char *title, const char *options)
{
	struct error err;
	struct buf out;
	snprintf(fixture->text, sizeof(fixture->text),
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/"
		"request_permission\",\"params\":"
		"{\"toolCall\":{\"toolCallId\":\"%s\",\"title\":\"%s\"},\"options\":%s}}",
		id, title, options);
	const struct message message = {.text = span_of(fixture->text),
		.id = SPAN_LITERAL("7"),
		.check = fixture->check,
		.method = "session/request_permission"};
	assert_true(json_check_feed(fixture->check, message.text, &err));
	assert_true(json_check_end(fixture->check, &err));
	buf_init(&out, SIZE_MAX / 2);
	assert_true(ask_open(&fixture->ask, &message, "claude", &fixture->show, &out));
	fixture->shown = mem_strndup(buf_span(&out));
	buf_finish(&out);
}

static void assert_answers(const struct fixture *fixture, char key, const char *option)
{
	struct buf out;
	char wanted[128];
	int found = ask_find(&fixture->ask, key);
	snprintf(wanted, sizeof(wanted),
		"{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"%s\"}}", option);
	assert_true(found >= 0);
	buf_init(&out, SIZE_MAX / 2);
	ask_write(&fixture->ask, found, &out);
	char *text = mem_strndup(buf_span(&out));
	assert_string_equal(text, wanted);
	free(text);
	buf_finish(&out);
}

static void test_each_of_six_answers_has_a_key(void **state)
{
	struct fixture *fixture = *state;
	open_question(
		fixture, "acp-broker-1", "acp-broker asks because of x", grant_hosts_options_kept);
	assert_int_equal(fixture->ask.count, 6);
	assert_answers(fixture, 'y', "once");
	assert_answers(fixture, 'a', "session");
	assert_answers(fixture, '3', "always");
	assert_answers(fixture, 'n', "no");
	assert_answers(fixture, 'd', "no-session");
	assert_answers(fixture, '6', "no-more");
	assert_int_equal(ask_find(&fixture->ask, '7'), -1);
	assert_int_equal(ask_find_refusal(&fixture->ask), 3);
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;
	while ((text = strstr(text, word))) {
		text += strlen(word);
		count++;
	}
	return count;
}

static void test_who_asks_is_said_once(void **state)
{
	struct fixture *fixture = *state;
	open_question(fixture, "acp-broker-1", "acp-broker asks because of x: Connect",
		grant_hosts_options);
	assert_int_equal(count_of(fixture->shown, "asks"), 1);
	assert_non_null(strstr(fixture->shown, "acp-broker asks"));
}

static void test_a_title_of_the_brokers_without_it_says_who_asks(void **state)
{
	struct fixture *fixture = *state;
	open_question(fixture, "acp-broker-1", "Delete 3 files", grant_hosts_options);
	assert_non_null(strstr(fixture->shown, "acp-broker asks: Delete 3 files"));
}

/* The agent's words do not decide whose question it seems to be. */
static void test_an_agent_cannot_pass_for_the_broker(void **state)
{
	struct fixture *fixture = *state;
	open_question(fixture, "1", "acp-broker asks because of x: Connect", grant_hosts_options);
	assert_non_null(strstr(fixture->shown, "The agent claude asks: "));
}

#define ASK_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ASK_TEST(test_each_of_six_answers_has_a_key),
		ASK_TEST(test_who_asks_is_said_once),
		ASK_TEST(test_a_title_of_the_brokers_without_it_says_who_asks),
		ASK_TEST(test_an_agent_cannot_pass_for_the_broker),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
