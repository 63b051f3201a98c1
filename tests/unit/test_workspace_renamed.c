/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/workspace_fixture.h"

#define REPEATED_TEXT "  x();\\nint f() {\\nb\\nb\\n}\\n  return;\\na\\nd\\n"

/* One side renames a path while the other edits it, in both directions. */

/* d/a and d/b have ten lines each. */
static void begin_with_folder(struct fixture *fixture)
{
	run(fixture, "mkdir d; seq 10 > d/a; seq 20 30 > d/b; echo 1 > z");
	sync_once(fixture);
}

static void expect_renamed(struct fixture *fixture)
{
	expect_same(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "ls; ls e; sed -n '1p;$p' e/a", "e\nz\na\nb\nnew\nfirst\nlast\n");
}

static void test_edits_follow_a_folder_that_the_user_renamed(void **state)
{
	struct fixture *fixture = *state;
	begin_with_folder(fixture);
	run(fixture, "mv d e; sed -i '1s/.*/first/' e/a; "
		     "sed -i '$s/.*/last/' $R/d/a; echo new > $R/d/new");
	sync_once(fixture);
	expect_renamed(fixture);
	sync_once(fixture);
	expect_renamed(fixture);
}

static void test_edits_follow_a_folder_that_the_agent_renamed(void **state)
{
	struct fixture *fixture = *state;
	begin_with_folder(fixture);
	run(fixture, "mv $R/d $R/e; sed -i '1s/.*/first/' $R/e/a; "
		     "sed -i '$s/.*/last/' d/a; echo new > d/new");
	sync_once(fixture);
	expect_renamed(fixture);
	sync_once(fixture);
	expect_renamed(fixture);
}

static void test_a_delivery_that_fails_changes_nothing_of_that(void **state)
{
	struct fixture *fixture = *state;
	static const char *const renames[] = {
		"mv d e; sed -i '1s/.*/first/' e/a; "
		"sed -i '$s/.*/last/' $R/d/a; echo new > $R/d/new",
		"rm -r e; mkdir d $R/d; seq 10 > d/a; seq 10 > $R/d/a; rm -r $R/e",
		"mv $R/d $R/e; sed -i '1s/.*/first/' $R/e/a; "
		"sed -i '$s/.*/last/' d/a; echo new > d/new",
	};
	begin_with_folder(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(renames); i++) {
		run(fixture, renames[i]);
		dir_transport_hooks.fail_delivers = i != 1;
		begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
		ev_run(fixture->loop, 0);
		assert_int_equal(fixture->is_ok, i == 1);
		sync_once(fixture);
		expect_same(fixture);
		assert_int_equal(fixture->result.conflict_count, 0);
		if (i != 1) {
			expect(fixture, "sed -n '1p;$p' e/a; cat e/new", "first\nlast\nnew\n");
		} else {
			run(fixture, "seq 20 30 > d/b");
			sync_once(fixture);
		}
	}
}

static void test_what_both_changed_is_a_conflict_in_the_new_place(void **state)
{
	struct fixture *fixture = *state;
	begin_with_folder(fixture);
	run(fixture, "mv d e; sed -i '1s/.*/mine/' e/a; sed -i '1s/.*/theirs/' $R/d/a");
	sync_once(fixture);
	expect_same(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	assert_string_equal(fixture->conflict, "e/a");
	expect(fixture, "head -n 1 e/a; head -n 1 $P/a", "mine\ntheirs\n");
}

/* Only an ignored file is in the new place: the user's edit stays with the old name. */
static void test_nothing_is_lost_where_the_new_place_is_taken(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "git init -q; echo /e/a > .git/info/exclude");
	begin_with_folder(fixture);
	run(fixture, "mkdir e; echo secret > e/a; sed -i '$s/.*/mine/' d/a");
	run(fixture, "mv $R/d $R/e; sed -i '1s/.*/theirs/' $R/e/a");
	sync_once(fixture);
	expect(fixture, "cat e/a; tail -n 1 d/a; head -n 1 $P/a", "secret\nmine\ntheirs\n");
	sync_once(fixture);
	expect(fixture, "cat e/a; tail -n 1 d/a", "secret\nmine\n");
}

/* If it were merged with the old base again, the agent's line would come a second time. */
static void test_it_is_not_merged_again_while_something_is_stuck(void **state)
{
	struct fixture *fixture = *state;
	static const char *const renames[] = {"mv d e", "mv $R/d $R/e"};
	for (size_t i = 0; i < ARRAY_LENGTH(renames); i++) {
		run(fixture, "rm -rf d e; mkdir d; printf '" REPEATED_TEXT
			     "e\\na\\n}\\nb\\n' > d/a; echo z > z");
		sync_once(fixture);
		run(fixture, "printf '" REPEATED_TEXT "c\\na\\n}\\nb\\n' > d/a; echo agent > $R/z; "
			     "printf '" REPEATED_TEXT "e\\na\\na\\n}\\nb\\n' > $R/d/a");
		run(fixture, renames[i]);
		int held = open(place_path(fixture->place, "z"), O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_true(held >= 0);
		sync_once(fixture);
		close(held);
		assert_string_equal(fixture->conflict, "z");
		assert_int_equal(fixture->result.conflict_count, 1);
		expect_same(fixture);
		expect(fixture, "tail -n 6 e/a", "d\nc\na\na\n}\nb\n");
	}
}

/* Links here give the new place a guarded name. */
static void test_no_edit_follows_into_a_guarded_place(void **state)
{
	struct fixture *fixture = *state;
	fixture->request.guard_paths = guard_paths_create(NULL, &fixture->err);
	workspace_destroy(fixture->workspace);
	fixture->workspace = workspace_create(&fixture->request);
	guard_paths_destroy((struct guard_paths *)fixture->request.guard_paths);
	run(fixture, "mkdir d; seq 10 > d/tasks.json; seq 20 30 > d/b");
	sync_once(fixture);
	run(fixture, "mv d e; ln -s e .vscode; sed -i '1s/.*/evil/' $R/d/tasks.json; "
		     "sed -i '1s/.*/good/' $R/d/b");
	sync_once(fixture);
	expect(fixture, "head -n 1 e/tasks.json", "1\n");
	expect(fixture, "grep -l evil -r $P | wc -l", "1\n");
}

/* Each file was edited, too, so that no two contents are equal. */
static void test_a_folder_that_was_renamed_and_edited_is_no_deletion(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir d; for i in $(seq 30); do seq $i $((i + 9)) > d/f$i; done");
	sync_once(fixture);
	run(fixture, "mv $R/d $R/e; sed -i '1s/.*/package e/' $R/e/*");
	sync_with(fixture,
		&(struct sync_order){.reason = SYNC_REASON_TURN, .deletions = SYNC_DELETIONS_ASK});
	assert_true(fixture->is_ok);
	expect_same(fixture);
	assert_int_equal(fixture->result.gone, 0);
	expect(fixture, "ls; ls e | wc -l", "e\n30\n");
	run(fixture, "rm $R/e/f1?");
	sync_once(fixture);
	assert_int_equal(fixture->result.gone, 10);
	run(fixture, "for i in $(seq 10 19); do seq $i $((i + 9)) > e/f$i; done");
	sync_once(fixture);
	run(fixture, "mv e x; sed -i '$s/.*/package x/' x/*");
	sync_with(fixture,
		&(struct sync_order){.reason = SYNC_REASON_TURN, .deletions = SYNC_DELETIONS_ASK});
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "ls $R; ls $R/x | wc -l", "x\n30\n");
}

/* The agent deletes all of them and makes one file: the same, or one that is nearly the same. */
static void test_one_file_excuses_the_deletion_of_one(void **state)
{
	struct fixture *fixture = *state;
	static const char *const makes[] = {"seq 20 > $R/new", "seq 21 > $R/new"};
	run(fixture, "mkdir d; for i in $(seq 40); do seq 20 > d/f$i; done");
	sync_once(fixture);
	run(fixture, "rm -r $R/d");
	for (size_t i = 0; i < ARRAY_LENGTH(makes); i++) {
		run(fixture, makes[i]);
		sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN,
					   .deletions = SYNC_DELETIONS_ASK});
		assert_false(fixture->is_ok);
		assert_in_range(fixture->question_count, 39, 40);
		expect(fixture, "ls d | wc -l", "40\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_edits_follow_a_folder_that_the_user_renamed),
		WORKSPACE_TEST(test_edits_follow_a_folder_that_the_agent_renamed),
		WORKSPACE_TEST(test_a_delivery_that_fails_changes_nothing_of_that),
		WORKSPACE_TEST(test_what_both_changed_is_a_conflict_in_the_new_place),
		WORKSPACE_TEST(test_nothing_is_lost_where_the_new_place_is_taken),
		WORKSPACE_TEST(test_it_is_not_merged_again_while_something_is_stuck),
		WORKSPACE_TEST(test_no_edit_follows_into_a_guarded_place),
		WORKSPACE_TEST(test_a_folder_that_was_renamed_and_edited_is_no_deletion),
		WORKSPACE_TEST(test_one_file_excuses_the_deletion_of_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
