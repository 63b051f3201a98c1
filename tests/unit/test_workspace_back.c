/* SPDX-License-Identifier: MIT */
#include "sync/round.h"
#include "tests/unit/workspace_fixture.h"
#include "tests/support/facts.h"

/* A rollback to a checkpoint, and syncs with a sandbox that was replaced. */

static void test_one_goes_back_and_forth(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo 1 > a; echo k > k");
	sync_once(fixture);
	run(fixture, "echo 2 > $R/a; echo n > $R/n; rm $R/k");
	sync_once(fixture);
	run(fixture, "echo 3 > a");
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect(fixture, "cat a k; ls", "1\nk\na\nk\n");
	expect_same(fixture);
	assert_int_equal(fixture->result.checkpoint, 4);
	roll_back(fixture, "3"); // the state before the rollback
	expect(fixture, "cat a n; ls", "3\nn\na\nn\n");
	expect_same(fixture);
	roll_back(fixture, "17");
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
	expect(fixture, "cat a", "3\n");
}

/* A number from the end is counted before the sync adds a checkpoint. */
static void test_the_newest_to_go_back_to_is_the_one_before_the_sync(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo 2 > a");
	roll_back(fixture, "-1");
	assert_true(fixture->is_ok);
	expect(fixture, "cat a $R/a", "1\n1\n");
	roll_back(fixture, "-2");
	expect(fixture, "cat a $R/a", "2\n2\n");
}

static void test_the_oldest_can_be_gone_back_to_though_the_sync_forgets_it(void **state)
{
	struct fixture *fixture = *state;
	workspace_destroy(fixture->workspace);
	fixture->request.max_checkpoints = 1;
	fixture->workspace = workspace_create(&fixture->request);
	run(fixture, "echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo 2 > a");
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect(fixture, "cat a $R/a", "1\n1\n");
}

static void test_what_is_old_of_the_agents_commits_goes_with_the_checkpoints(void **state)
{
	struct fixture *fixture = *state;
	workspace_destroy(fixture->workspace);
	fixture->request.checkpoint_age_ms = 3600 * 1000;
	fixture->workspace = workspace_create(&fixture->request);
	run(fixture, "echo 1 > a");
	sync_once(fixture);
	run(fixture, "cd ../state/store/refs/acp-broker; mkdir agent; cp checkpoints/* agent/new\n"
		     "cp checkpoints/* agent/old; touch -d '2 hours ago' agent/old");
	sync_once(fixture);
	expect(fixture, "ls ../state/store/refs/acp-broker/agent", "new\n");
}

static void test_a_checkpoint_that_is_not_there_is_told_before_anything_is_done(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo 2 > a");
	roll_back(fixture, "9");
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
	expect(fixture, "cat $R/a", "1\n");
}

/* An ignored folder has the name of a file in the checkpoint. */
static void test_what_cannot_go_back_is_told_and_all_else_does(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo 1 > a; echo o > out");
	sync_once(fixture);
	run(fixture, "echo 2 > a; rm out; mkdir out; echo i > out/i; echo out/ > .gitignore");
	sync_once(fixture);
	roll_back(fixture, "1");
	assert_false(fixture->is_ok);
	assert_string_equal(fixture->err.reason, "SYNC_BUSY");
	assert_names(fixture->err.text, "/out | a folder | everything else");
	expect(fixture, "cat a out/i", "1\ni\n");
	sync_once(fixture);
	expect(fixture, "cat $R/a out/i", "1\ni\n");
}

/* Somebody deleted the sandbox between two brokers, and made it again. */
static void test_a_runtime_that_was_made_anew_takes_nothing_away(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b; echo i > i");
	sync_once(fixture);
	workspace_destroy(fixture->workspace);
	run(fixture, "rm $R/a $R/b");
	fixture->workspace = workspace_create(&fixture->request);
	sync_once(fixture);
	expect(fixture, "ls $R; ls", "a\nb\ni\na\nb\ni\n");
	assert_int_equal(fixture->result.kept, 2);
	run(fixture, "rm $R/a $R/b"); // now the agent does it
	sync_once(fixture);
	expect(fixture, "ls", "i\n");
}

static void test_a_forgotten_base_takes_nothing_away_either(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	run(fixture, "echo a > a; echo b > b; echo c > c");
	sync_once(fixture);
	workspace_destroy(fixture->workspace);
	assert_true(round_forget_base(&fixture->place->store, "runtime", &err));
	assert_true(round_forget_base(&fixture->place->store, "runtime", &err));
	run(fixture, "rm $R/a");
	fixture->workspace = workspace_create(&fixture->request);
	sync_once(fixture);
	expect(fixture, "ls $R; ls", "a\nb\nc\na\nb\nc\n");
	assert_int_equal(fixture->result.kept, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_one_goes_back_and_forth),
		WORKSPACE_TEST(test_the_newest_to_go_back_to_is_the_one_before_the_sync),
		WORKSPACE_TEST(test_the_oldest_can_be_gone_back_to_though_the_sync_forgets_it),
		WORKSPACE_TEST(test_what_is_old_of_the_agents_commits_goes_with_the_checkpoints),
		WORKSPACE_TEST(test_a_checkpoint_that_is_not_there_is_told_before_anything_is_done),
		WORKSPACE_TEST(test_what_cannot_go_back_is_told_and_all_else_does),
		WORKSPACE_TEST(test_a_runtime_that_was_made_anew_takes_nothing_away),
		WORKSPACE_TEST(test_a_forgotten_base_takes_nothing_away_either),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
