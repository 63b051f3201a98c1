/* SPDX-License-Identifier: MIT */
#include "tests/support/facts.h"
#include "tests/unit/held_fixture.h"

/* More guarded files than can be held; in a separate program, because it takes long. */

static void test_too_many_guarded_files_stay_there_and_the_users_edits_travel(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo b > b; echo c > c");
	sync_once(fixture);
	run(fixture, "mkdir $R/.husky; cd $R/.husky; seq 10001 | xargs touch; cd ..; "
		     "echo its > a; echo its > b; echo its > new; rm c");
	run(fixture, "echo mine > b; echo mine > d; echo mine > .envrc");
	sync_held(fixture, 0, false);
	assert_names(fixture->note, "10000 | guard-paths | .husky/1");
	sync_held(fixture, 0, false);
	assert_int_equal(fixture->result.left, 1);
	assert_string_equal(fixture->note, "");
	expect(fixture, "cat a b; ls .; cd $R; cat ./a b d .envrc; ls; ls .husky | wc -l",
		"a\nmine\na\nb\nc\nd\nits\nits\nmine\nmine\na\nb\nd\nnew\n10001\n");
	run(fixture, "rm $R/.husky/1*");
	sync_once(fixture);
	assert_int_equal(fixture->result.left, 0);
	assert_true(fixture->result.held_count > 8000);
	assert_string_equal(fixture->conflict, "b");
	expect(fixture, "cat a b new $P/b; ls [!b]*", "its\nmine\nits\nits\na\nd\nnew\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_too_many_guarded_files_stay_there_and_the_users_edits_travel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
