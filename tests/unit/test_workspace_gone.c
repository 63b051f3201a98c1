/* SPDX-License-Identifier: MIT */
#include "tests/support/facts.h"
#include "tests/unit/workspace_fixture.h"

/* Many files are gone here: nothing is deleted in the runtime before the user has agreed. */

static void order(struct fixture *fixture, enum sync_deletions deletions)
{
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN,
				   .deletions = deletions,
				   .asked = fixture->asked});
}

static void begin_with_files(struct fixture *fixture)
{
	run(fixture, "mkdir d; for i in $(seq 30); do echo $i > d/f$i; done; echo t > top");
	sync_once(fixture);
}

static void unmount(struct fixture *fixture)
{
	run(fixture, "mkdir ../disk; mv d top ../disk");
}

static void expect_asked(struct fixture *fixture, size_t count)
{
	order(fixture, SYNC_DELETIONS_ASK);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->question_count, count);
}

static void test_an_emptied_workspace_empties_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_with_files(fixture);
	unmount(fixture);
	run(fixture, "echo new > $R/new");
	expect_asked(fixture, 31);
	assert_string_equal(fixture->question_first, "d/f1");
	expect(fixture, "ls; ls $R/d | wc -l", "30\n");
	order(fixture, SYNC_DELETIONS_KEEP);
	assert_true(fixture->is_ok);
	assert_names(fixture->note, "31 of 31 | sandbox");
	expect(fixture, "ls; ls $R/d | wc -l; cat $R/top", "new\n30\nt\n");
}

/* When the file system is mounted again, neither side has lost anything. */
static void test_after_a_remount_both_sides_have_all(void **state)
{
	struct fixture *fixture = *state;
	begin_with_files(fixture);
	unmount(fixture);
	expect_asked(fixture, 31);
	order(fixture, SYNC_DELETIONS_KEEP);
	run(fixture, "echo its > $R/d/f7; rm $R/d/f8; echo n > $R/d/n");
	order(fixture, SYNC_DELETIONS_ASK); // a no holds as long as it is about the same files
	assert_int_equal(fixture->question_count, 30);
	order(fixture, SYNC_DELETIONS_KEEP);
	order(fixture, SYNC_DELETIONS_ASK);
	assert_true(fixture->is_ok);
	expect(fixture, "cat $R/d/f7; ls $R/d | wc -l", "its\n30\n");
	run(fixture, "rm -rf d; mv ../disk/* .");
	sync_once(fixture);
	expect(fixture, "cat d/f7; ls d | wc -l; cat top", "its\n30\nt\n");
	expect_same(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
}

static void test_a_yes_deletes_them_there(void **state)
{
	struct fixture *fixture = *state;
	begin_with_files(fixture);
	unmount(fixture);
	expect_asked(fixture, 31);
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_true(fixture->is_ok);
	expect(fixture, "ls $R", "");
}

static void test_few_deletions_are_not_asked_about(void **state)
{
	struct fixture *fixture = *state;
	begin_with_files(fixture);
	run(fixture, "rm d/f?; echo x > d/f10");
	order(fixture, SYNC_DELETIONS_ASK);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	run(fixture, "rm -r $R/d; rm top");
	expect_asked(fixture, 21); // the agent's
	assert_string_equal(fixture->question_first, "d/f10");
}

static void test_what_was_moved_is_not_deleted(void **state)
{
	struct fixture *fixture = *state;
	begin_with_files(fixture);
	run(fixture, "mv d moved");
	order(fixture, SYNC_DELETIONS_ASK);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	run(fixture, "mkdir $R/again; mv $R/moved $R/again/d");
	order(fixture, SYNC_DELETIONS_ASK);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "ls again/d | wc -l; ls", "30\nagain\ntop\n");
}

static void expect_replaced(struct fixture *fixture)
{
	assert_false(fixture->is_ok);
	assert_string_equal(fixture->err.reason, "WORKSPACE_REPLACED");
}

/* Nobody knows whether it is empty on purpose, so the agent's changes are not brought to it. */
static void test_another_folder_is_refused_until_somebody_says_yes(void **state)
{
	struct fixture *fixture = *state;
	char moved[FIXTURE_PATH_MAX + 16], other[FIXTURE_PATH_MAX + 16];
	const char *root = fixture->place->root;
	snprintf(moved, sizeof(moved), "%s.moved", root);
	snprintf(other, sizeof(other), "%s.other", root);
	begin_with_files(fixture);
	assert_int_equal(rename(root, moved), 0);
	assert_int_equal(mkdir(root, 0755), 0);
	run(fixture, "echo its > $R/new");
	order(fixture, SYNC_DELETIONS_ASK);
	expect_replaced(fixture);
	git_oid asked = fixture->asked;
	assert_non_null(workspace_question(fixture->workspace));
	assert_names(fixture->err.text, root);
	order(fixture, SYNC_DELETIONS_KEEP); // nobody could be asked, or the answer was no
	expect_replaced(fixture);
	assert_null(workspace_question(fixture->workspace));
	expect(fixture, "ls; ls $R/d | wc -l", "30\n");
	assert_int_equal(rename(root, other), 0);
	assert_int_equal(rename(moved, root), 0); // it is mounted again
	order(fixture, SYNC_DELETIONS_ASK);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	assert_int_equal(rename(root, moved), 0);
	assert_int_equal(rename(other, root), 0);
	run(fixture, "cp -r ../*.moved/. .; rm top");
	fixture->asked = asked;
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "test ! -e $R/top; cat $R/new", "its\n");
	order(fixture, SYNC_DELETIONS_KEEP);
	assert_true(fixture->is_ok); // it is the present folder
}

static void test_an_empty_folder_in_its_place_is_asked_about_twice(void **state)
{
	struct fixture *fixture = *state;
	char moved[FIXTURE_PATH_MAX + 16];
	snprintf(moved, sizeof(moved), "%s.moved", fixture->place->root);
	begin_with_files(fixture);
	assert_int_equal(rename(fixture->place->root, moved), 0);
	assert_int_equal(mkdir(fixture->place->root, 0755), 0);
	expect_asked(fixture, 0);
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->question_count, 31);
	order(fixture, SYNC_DELETIONS_KEEP);
	assert_true(fixture->is_ok);
	expect(fixture, "ls; ls $R/d | wc -l", "30\n");
}

/*
 * The user wants the rollback, so nobody is asked about the files that its first sync has spared.
 */
static void test_a_rollback_brings_them_back_here(void **state)
{
	struct fixture *fixture = *state;
	begin_with_files(fixture);
	unmount(fixture);
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect(fixture, "ls d | wc -l; cat top", "30\nt\n");
	expect_same(fixture);
	sync_once(fixture);
	expect_same(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_an_emptied_workspace_empties_nothing),
		WORKSPACE_TEST(test_after_a_remount_both_sides_have_all),
		WORKSPACE_TEST(test_a_yes_deletes_them_there),
		WORKSPACE_TEST(test_few_deletions_are_not_asked_about),
		WORKSPACE_TEST(test_what_was_moved_is_not_deleted),
		WORKSPACE_TEST(test_another_folder_is_refused_until_somebody_says_yes),
		WORKSPACE_TEST(test_an_empty_folder_in_its_place_is_asked_about_twice),
		WORKSPACE_TEST(test_a_rollback_brings_them_back_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
