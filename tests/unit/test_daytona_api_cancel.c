/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* Calls that are given up at each of their moments, and many calls at once. */

static void begin(bool is_list)
{
	outcome.call = is_list ? daytona_list(api, NULL, &on_listed, NULL)
	                       : daytona_get(api, "p1", on_told, NULL);
}

static void will_two_pages(void)
{
	server_will_answer(
		200, "", "{\"items\":[{\"id\":\"e1\"},{\"id\":\"e2\"}],\"nextCursor\":\"b\"}");
	server_will_answer(200, "", "{\"items\":[{\"id\":\"e3\"}],\"nextCursor\":null}");
}

/*
 * Gives the call up after this many turns of the loop. Returns true if the call had ended before;
 * then no later moment is left. The first answer makes it wait and try again.
 */
static bool is_over_after(int turns, bool is_list, bool with_api)
{
	api_setup(NULL);
	server_will_answer(503, "", "{}");
	if (is_list) {
		will_two_pages();
	} else {
		will_sandbox();
	}
	begin(is_list);
	for (int i = 0; i < turns && outcome.count == 0; i++) {
		ev_run(loop, EVRUN_ONCE);
	}
	bool is_over = outcome.count == 1;
	if (with_api) {
		daytona_api_destroy(api);
		api = NULL;
	} else if (!is_over) {
		daytona_call_cancel(outcome.call);
	}
	loop_for_ms(is_over ? 0 : 5);
	assert_int_equal(outcome.count, is_over);
	api_teardown(NULL);
	return is_over;
}

static void test_a_call_is_given_up_at_any_moment(void **state)
{
	for (int way = 0; way < 4; way++) {
		int turns = 0;
		while (!is_over_after(turns, way & 1, way & 2)) {
			turns++;
			assert_true(turns < 2000);
		}
		assert_true(turns > 3);
	}
}

static void test_a_pause_is_given_up(void **state)
{
	config.pause_ms = 50;
	api_again();
	server_will_answer(503, "", "{}");
	begin(false);
	wait_requests(1);
	loop_for_ms(10);
	daytona_call_cancel(outcome.call);
	loop_for_ms(80);
	assert_int_equal(server_count(), 1);
	assert_int_equal(outcome.count, 0);
}

static void test_nothing_is_told_before_the_call_returns(void **state)
{
	will_sandbox();
	begin(false);
	assert_int_equal(outcome.count, 0);
	assert_int_equal(server_count(), 0);
	expect_done();
}

static void test_a_list_is_given_up_while_it_is_told(void **state)
{
	will_two_pages();
	outcome.cancels = true;
	begin(true);
	wait_requests(1);
	loop_for_ms(20);
	assert_string_equal(outcome.ids, "e1 ");
	assert_int_equal(outcome.count, 0);
	assert_int_equal(server_count(), 1);
}

static void test_the_api_may_go_while_a_list_is_told(void **state)
{
	will_two_pages();
	outcome.destroys = true;
	begin(true);
	wait_requests(1);
	loop_for_ms(20);
	assert_string_equal(outcome.ids, "e1 ");
	assert_int_equal(outcome.count, 0);
}

static void test_the_api_may_go_while_an_end_is_told(void **state)
{
	will_sandbox();
	will_sandbox();
	outcome.destroys = true;
	begin(false);
	daytona_get(api, "p2", on_told, NULL);
	wait_done();
	loop_for_ms(10);
	assert_int_equal(outcome.count, 1);
	assert_null(api);
}

static void test_an_idle_api_does_not_keep_the_loop_running(void **state)
{
	will_sandbox();
	begin(false);
	expect_done();
	server_end();
	ev_run(loop, 0);
	server_begin(loop);
}

static void on_counted(void *data, const struct daytona_sandbox *sandbox, const struct error *err)
{
	assert_null(err);
	*(int *)data += 1;
}

static void test_many_calls_share_a_few_connections(void **state)
{
	enum { CALLS = 100 };
	int ended = 0;
	for (int i = 0; i < CALLS; i++) {
		will_sandbox();
		daytona_get(api, "p1", on_counted, &ended);
	}
	wait_requests(CALLS);
	loop_for_ms(50);
	assert_int_equal(ended, CALLS);
	assert_true(server_connections() <= 32);
}

/* ---- long lists ---- */

static void will_page(int first, int count, bool is_last)
{
	struct buf body;
	buf_init(&body, 1 << 20);
	bool ok = buf_append(&body, SPAN_LITERAL("{\"items\":["), NULL);
	for (int i = 0; ok && i < count; i++) {
		ok = buf_append_format(
			&body, NULL, "%s{\"id\":\"e%d\"}", i > 0 ? "," : "", first + i);
	}
	ok = ok &&
	     (is_last ? buf_append_format(&body, NULL, "]}%c", '\0')
		      : buf_append_format(&body, NULL, "],\"nextCursor\":\"c%d\"}%c", first, '\0'));
	assert_true(ok);
	server_will_answer(200, "", buf_span(&body).data);
	buf_finish(&body);
}

static void test_a_list_has_a_bound_that_is_told(void **state)
{
	for (int page = 0; page < DAYTONA_LIST_MAX / 100; page++) {
		will_page(page * 100, 100, false);
	}
	will_page(DAYTONA_LIST_MAX, 1, true);
	begin(true);
	wait_done();
	assert_int_equal(outcome.listed, DAYTONA_LIST_MAX);
	assert_int_equal(outcome.err.code, ERROR_LIMIT);
	assert_has(outcome.err.text, "more than 2000 sandboxes");
}

static void test_a_list_as_long_as_the_bound_is_whole(void **state)
{
	for (int page = 0; page < DAYTONA_LIST_MAX / 100; page++) {
		will_page(page * 100, 100, page == DAYTONA_LIST_MAX / 100 - 1);
	}
	begin(true);
	expect_done();
	assert_int_equal(outcome.listed, DAYTONA_LIST_MAX);
}

/* Each sandbox is a value, so these are more than one document of ours may have. */
static void test_a_page_may_have_many_labels(void **state)
{
	struct buf body;
	buf_init(&body, 8 << 20);
	bool ok = buf_append(&body, SPAN_LITERAL("{\"items\":["), NULL);
	for (int i = 0; ok && i < 100; i++) {
		ok = buf_append_format(&body, NULL, "%s{\"id\":\"e%d\",\"labels\":{\"n\":\"v\"",
			i > 0 ? "," : "", i);
		for (int label = 0; ok && label < 400; label++) {
			ok = buf_append_format(&body, NULL, ",\"n%d\":\"v\"", label);
		}
		ok = ok && buf_append(&body, SPAN_LITERAL("}}"), NULL);
	}
	ok = ok && buf_append_format(&body, NULL, "],\"nextCursor\":null}%c", '\0');
	assert_true(ok);
	server_will_answer(200, "", buf_span(&body).data);
	buf_finish(&body);
	begin(true);
	expect_done();
	assert_int_equal(outcome.listed, 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call_is_given_up_at_any_moment),
		TEST(test_a_pause_is_given_up),
		TEST(test_nothing_is_told_before_the_call_returns),
		TEST(test_a_list_is_given_up_while_it_is_told),
		TEST(test_the_api_may_go_while_a_list_is_told),
		TEST(test_the_api_may_go_while_an_end_is_told),
		TEST(test_an_idle_api_does_not_keep_the_loop_running),
		TEST(test_many_calls_share_a_few_connections),
		TEST(test_a_list_has_a_bound_that_is_told),
		TEST(test_a_list_as_long_as_the_bound_is_whole),
		TEST(test_a_page_may_have_many_labels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
