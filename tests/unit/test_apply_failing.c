/* SPDX-License-Identifier: MIT */
#include "sync/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/moment_fixture.h"

/* ---- failing ---- */

static void fail_everywhere(struct place *place, int errnum)
{
	struct moment moment;
	struct error err;
	int at = 0;
	do {
		moment_reset(&moment, place);
		calls_begin(++at);
		calls.fail_with = errnum;
		bool applied = moment_apply(&moment, &moment.from, &moment.to, &err);
		calls_end();
		assert_true(applied || err.code == ERROR_SYSTEM);
		moment.left = 0;
		if (!moment_apply(&moment, &moment.from, &moment.to, &err)) {
			fail_msg("after errno %d at call %d: %s", errnum, at, err.text);
		}
		moment_assert_finished(&moment);
	} while (calls.count >= at);
}

static void test_a_full_disk_anywhere_is_an_error_and_once_more_finishes(void **state)
{
	fail_everywhere(*state, ENOSPC);
}

static void test_a_broken_disk_anywhere_is_an_error_and_once_more_finishes(void **state)
{
	fail_everywhere(*state, EIO);
}

static void test_a_refusal_anywhere_leaves_a_path_and_once_more_finishes(void **state)
{
	fail_everywhere(*state, EACCES);
}

/* ---- a disk that can do little ---- */

static void test_a_disk_without_links_and_exchanges_is_enough(void **state)
{
	struct moment moment;
	struct error err;
	moment_reset(&moment, *state);
	calls_are_of_a_plain_disk = true;
	bool applied = moment_apply(&moment, &moment.from, &moment.to, &err);
	calls_are_of_a_plain_disk = false;
	if (!applied) {
		fail_msg("%s", err.text);
	}
	moment_assert_finished(&moment);
}

static void test_without_links_and_exchanges_what_is_there_stays(void **state)
{
	struct moment moment;
	struct error err;
	struct place *place = *state;
	moment_reset(&moment, place);
	place_write(place, "up", "the user's\n");
	calls_are_of_a_plain_disk = true;
	bool applied = moment_apply(&moment, &moment.from, &moment.to, &err);
	calls_are_of_a_plain_disk = false;
	assert_true(applied);
	assert_int_equal(tree_count(place->root, "up", "the user's\n"), 1);
	assert_int_equal(tree_count(place->root, ".tmp", NULL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_full_disk_anywhere_is_an_error_and_once_more_finishes),
		TEST(test_a_broken_disk_anywhere_is_an_error_and_once_more_finishes),
		TEST(test_a_refusal_anywhere_leaves_a_path_and_once_more_finishes),
		TEST(test_a_disk_without_links_and_exchanges_is_enough),
		TEST(test_without_links_and_exchanges_what_is_there_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
