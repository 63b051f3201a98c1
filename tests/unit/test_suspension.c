/* SPDX-License-Identifier: MIT */
#include "providers/suspension.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A sandbox with one process, which answers when the test says so. */
struct fixture {
	struct ev_loop *loop;
	struct sandbox_impl impl;
	struct sandbox sandbox;
	struct suspension suspension;
	struct suspension_member member;
};

struct outcome {
	int count;
	bool is_ok;
	char reason[32];
};

static bool order(struct suspension_member *member, bool freezes)
{
	return true;
}

static void on_done(void *data, const struct error *err)
{
	struct outcome *outcome = data;
	outcome->count++;
	outcome->is_ok = !err;
	snprintf(outcome->reason, sizeof(outcome->reason), "%s", err ? err->reason : "");
}

static void close_sandbox(struct sandbox *sandbox)
{
}

static int set_up(void **state)
{
	static struct fixture fixture;
	fixture = (struct fixture){.loop = ev_loop_new(0), .impl.close = close_sandbox};
	sandbox_init(&fixture.sandbox, &fixture.impl, fixture.loop);
	suspension_init(&fixture.suspension, &fixture.sandbox);
	fixture.member.order = order;
	suspension_join(&fixture.suspension, &fixture.member);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	suspension_finish(&fixture->suspension);
	sandbox_close(&fixture->sandbox);
	ev_loop_destroy(fixture->loop);
	return 0;
}

static void turn(struct fixture *fixture)
{
	ev_run(fixture->loop, EVRUN_NOWAIT);
}

static void expect_interrupted(struct outcome *outcome)
{
	assert_int_equal(outcome->count, 1);
	assert_false(outcome->is_ok);
	assert_string_equal(outcome->reason, "PAUSE_INTERRUPTED");
}

static void test_a_suspend_while_another_is_taken_back_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct outcome outcomes[4] = {{0}};
	suspension_suspend(&fixture->suspension, on_done, &outcomes[0]);
	suspension_resume(&fixture->suspension, NULL, NULL);
	suspension_suspend(&fixture->suspension, on_done, &outcomes[1]); // it freezes
	suspension_answer(&fixture->member, NULL);
	suspension_suspend(&fixture->suspension, on_done, &outcomes[2]); // it thaws
	turn(fixture);
	assert_int_equal(outcomes[0].count, 0);
	expect_interrupted(&outcomes[1]);
	expect_interrupted(&outcomes[2]);
	suspension_answer(&fixture->member, NULL);
	turn(fixture);
	expect_interrupted(&outcomes[0]);
	suspension_suspend(&fixture->suspension, on_done, &outcomes[3]);
	suspension_answer(&fixture->member, NULL);
	turn(fixture);
	assert_true(outcomes[3].is_ok);
}

static void test_no_resume_succeeds_before_everything_goes_on(void **state)
{
	struct fixture *fixture = *state;
	struct outcome outcomes[3] = {{0}};
	suspension_suspend(&fixture->suspension, on_done, &outcomes[0]);
	suspension_answer(&fixture->member, NULL);
	suspension_resume(&fixture->suspension, on_done, &outcomes[1]);
	suspension_resume(&fixture->suspension, on_done, &outcomes[2]);
	suspension_resume(&fixture->suspension, NULL, NULL); // nobody asks
	turn(fixture);
	assert_true(outcomes[0].is_ok);
	expect_interrupted(&outcomes[1]);
	assert_int_equal(outcomes[2].count, 0);
	suspension_answer(&fixture->member, NULL);
	turn(fixture);
	assert_true(outcomes[2].is_ok);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_suspend_while_another_is_taken_back_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_no_resume_succeeds_before_everything_goes_on, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
