/* SPDX-License-Identifier: MIT */
#include "tests/unit/workspace_fixture.h"

/* ---- deletions that are asked about ---- */

static void make_many_and_delete(struct fixture *fixture)
{
	run(fixture, "mkdir d; for i in $(seq 30); do echo $i > d/f$i; done");
	sync_once(fixture);
	run(fixture, "rm -r $R/d; echo new > $R/new; echo mine > mine");
}

static void order(struct fixture *fixture, enum sync_deletions deletions)
{
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN,
				   .deletions = deletions,
				   .asked = fixture->asked});
}

static void test_a_question_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	make_many_and_delete(fixture);
	order(fixture, SYNC_DELETIONS_ASK);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->question_count, 30);
	assert_string_equal(fixture->question_first, "d/f1");
	expect(fixture, "ls; ls d | wc -l; ls $R", "d\nmine\n30\nnew\n");
	order(fixture, SYNC_DELETIONS_KEEP);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->question_count, 0);
	assert_int_equal(fixture->result.kept, 30);
	expect_same(fixture);
	expect(fixture, "ls; ls d | wc -l", "d\nmine\nnew\n30\n");
}

static void test_a_yes_is_followed_and_can_be_gone_back_on(void **state)
{
	struct fixture *fixture = *state;
	make_many_and_delete(fixture);
	order(fixture, SYNC_DELETIONS_ASK);
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->result.followed, 30);
	assert_int_equal(fixture->result.kept, 0);
	expect_same(fixture);
	expect(fixture, "ls", "mine\nnew\n");
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "ls d | wc -l; cat d/f7", "30\n7\n");
}

static void test_a_yes_is_about_what_was_asked_alone(void **state)
{
	struct fixture *fixture = *state;
	make_many_and_delete(fixture);
	run(fixture, "mkdir $R/d; echo 30 > $R/d/f30");
	order(fixture, SYNC_DELETIONS_ASK);
	assert_int_equal(fixture->question_count, 29);
	run(fixture, "rm -r $R/d; echo more > $R/more");
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->question_count, 30);
	expect(fixture, "ls d | wc -l", "30\n");
	run(fixture, "echo changed > $R/new; echo here > here");
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "ls", "here\nmine\nmore\nnew\n");
}

static void test_what_the_person_deletes_is_not_asked_about(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "for i in $(seq 30); do echo $i > f$i; done");
	sync_once(fixture);
	run(fixture, "rm f*");
	order(fixture, SYNC_DELETIONS_ASK);
	assert_true(fixture->is_ok);
	expect(fixture, "ls $R", "");
}

/* ---- what is stuck ---- */

static void test_an_ignored_file_in_the_way_is_a_conflict_once(void **state)
{
	struct fixture *fixture = *state;
	run(fixture,
		"git init -q; echo secret > .git/info/exclude; echo mine > secret; echo 1 > a");
	sync_once(fixture);
	expect(fixture, "ls $R", "a\n");
	run(fixture, "echo theirs > $R/secret; echo 2 > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	assert_string_equal(fixture->conflict, "secret");
	assert_string_equal(fixture->why, "something is there now");
	expect(fixture, "cat secret a secret.*.acp-conflict; ls $R", "mine\n2\ntheirs\na\n");
	run(fixture, "echo 3 > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "cat secret a; ls $R", "mine\n3\na\n");
}

static void test_what_is_stuck_is_no_part_of_the_base_until_both_sides_agree(void **state)
{
	struct fixture *fixture = *state;
	run(fixture,
		"git init -q; echo secret > .git/info/exclude; echo mine > secret; echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo theirs > $R/secret; echo 2 > $R/a");
	dir_transport_hooks.fail_delivers = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	sync_once(fixture);
	expect(fixture, "cat secret a; ls $R; ls *.acp-conflict | wc -l", "mine\n2\na\n1\n");
}

static void test_folders_and_files_in_each_others_way_are_conflicts(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "git init -q; printf 'x\\ny\\n' > .git/info/exclude; echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo file > x; mkdir y; echo deep > y/z");
	run(fixture, "mkdir $R/x; echo 1 > $R/x/1; echo 2 > $R/x/2; echo y > $R/y; echo 2 > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 3);
	expect(fixture, "cat x y/z a; ls *.acp-conflict | wc -l; ls $R", "file\ndeep\n2\n3\na\n");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
}

/* Permission is nothing to root: what nobody may change stands for it. */
static void test_a_file_that_may_not_be_changed_stays_and_goes_back(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir d; echo 1 > d/a; echo 1 > d/b; echo 1 > c");
	sync_once(fixture);
	char *answer = ask(fixture, "chattr +i d/a d/b 2>&1 && echo yes || true");
	bool can = strcmp(answer, "yes\n") == 0;
	free(answer);
	if (!can) {
		skip(); // the file system has no such flag, or we are not root
	}
	run(fixture, "rm $R/d/a; echo 2 > $R/d/b; echo 2 > $R/c");
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	run(fixture, "chattr -i d/a d/b");
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->result.conflict_count, 2);
	expect(fixture, "cat d/a d/b c; cat d/*.acp-conflict", "1\n1\n2\n2\n");
	expect_same(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_a_question_changes_nothing),
		WORKSPACE_TEST(test_a_yes_is_followed_and_can_be_gone_back_on),
		WORKSPACE_TEST(test_a_yes_is_about_what_was_asked_alone),
		WORKSPACE_TEST(test_what_the_person_deletes_is_not_asked_about),
		WORKSPACE_TEST(test_an_ignored_file_in_the_way_is_a_conflict_once),
		WORKSPACE_TEST(test_what_is_stuck_is_no_part_of_the_base_until_both_sides_agree),
		WORKSPACE_TEST(test_folders_and_files_in_each_others_way_are_conflicts),
		WORKSPACE_TEST(test_a_file_that_may_not_be_changed_stays_and_goes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
