/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/workspace_fixture.h"

static void test_the_first_sync_fills_the_runtime(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir d; echo a > a; echo b > d/b; ln -s a l; chmod +x d/b");
	sync_once(fixture);
	expect_same(fixture);
	assert_int_equal(fixture->result.to_runtime.added, 3);
	assert_int_equal(fixture->result.to_local.added, 0);
	assert_int_equal(fixture->result.files, 3);
	assert_int_equal(fixture->result.checkpoint, 1);
	assert_non_null(workspace_tree(fixture->workspace));
}

static void test_a_second_sync_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	dir_transport_hooks.delivers = 0;
	sync_once(fixture);
	assert_int_equal(dir_transport_hooks.delivers, 0);
	assert_int_equal(fixture->result.to_local.changed + fixture->result.to_local.added +
				 fixture->result.to_local.deleted,
		0);
	assert_int_equal(fixture->result.checkpoint, 1);
}

static void test_both_sides_changes_meet(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b; echo c > c; seq 20 > n");
	sync_once(fixture);
	run(fixture, "echo a2 > a; rm b; sed -i s/^1$/one/ n; echo r > $R/new; rm $R/c; "
		     "sed -i s/^20$/twenty/ $R/n");
	sync_once(fixture);
	expect_same(fixture);
	expect(fixture, "ls; cat a; head -1 n; tail -1 n", "a\nn\nnew\na2\none\ntwenty\n");
	assert_int_equal(fixture->result.conflict_count, 0);
	assert_int_equal(fixture->result.text_merges, 1);
}

static void test_a_conflict_parks_the_runtimes_version_and_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, "echo mine > a; echo its > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	assert_string_equal(fixture->conflict, "a");
	expect(fixture, "cat a $R/a a.*.acp-conflict", "mine\nmine\nits\n");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "ls $R", "a\n");
}

static void test_a_failed_delivery_leaves_nothing_half_known(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	run(fixture, "echo mine > a; echo its > $R/b");
	dir_transport_hooks.fail_delivers = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_non_null(strstr(fixture->err.text, "the link is down"));
	assert_non_null(strstr(fixture->err.text, fixture->place->root));
	expect(fixture, "cat b", "its\n"); // it is here already
	run(fixture, "echo mine again > b");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "cat $R/a $R/b", "mine\nmine again\n");
}

static void test_a_failed_collection_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	dir_transport_hooks.fail_collects = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_START});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	expect(fixture, "ls $R", "");
	sync_once(fixture);
	expect_same(fixture);
}

static void test_a_directory_that_cannot_be_read_fails_the_sync(void **state)
{
	struct fixture *fixture = *state;
	char moved[FIXTURE_PATH_MAX + 16];
	run(fixture, "echo a > a");
	sync_once(fixture);
	snprintf(moved, sizeof(moved), "%s.moved", fixture->place->root);
	assert_int_equal(rename(fixture->place->root, moved), 0);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_non_null(strstr(fixture->err.text, "the workspace"));
	assert_int_equal(rename(moved, fixture->place->root), 0);
	run(fixture, "echo b > a");
	sync_once(fixture);
	expect_same(fixture);
}

static void write_late(void *data)
{
	struct fixture *fixture = data;
	static int times;
	char script[64];
	snprintf(script, sizeof(script), "echo late %d > $R/a", ++times);
	run(fixture, script);
}

static void test_a_runtime_that_changes_meanwhile_gets_another_round(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	run(fixture, "echo mine > a; echo b2 > b");
	dir_transport_hooks.before_deliver = write_late;
	dir_transport_hooks.data = fixture;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	dir_transport_hooks.before_deliver = NULL;
	assert_false(fixture->is_ok);
	assert_string_equal(fixture->err.reason, "RUNTIME_CHANGED");
	sync_once(fixture);
	expect_same(fixture);
	/* Each version that was in the runtime is somewhere. */
	expect(fixture, "cat a; cat a.*.acp-conflict | sort | tail -1", "mine\nlate 3\n");
}

static void test_many_deletions_are_not_followed(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "for i in $(seq 30); do echo $i > f$i; done");
	sync_once(fixture);
	run(fixture, "rm $R/f*; echo new > $R/new");
	sync_once(fixture);
	assert_int_equal(fixture->result.kept, 30);
	expect(fixture, "ls | wc -l", "31\n");
	expect_same(fixture);
	run(fixture, "rm $R/f1 $R/f2; rm f3 f4 f5 f6 f7 f8 f9 f1? f2?");
	sync_once(fixture);
	assert_int_equal(fixture->result.kept, 0);
	expect(fixture, "ls", "f30\nnew\n");
	expect_same(fixture);
}

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

static void test_another_brokers_sync_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	char path[FIXTURE_PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/acp-broker.lock", fixture->place->store_path);
	int lock = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	for (int i = 0; i < 5; i++) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(fixture->told, 1);
	fd_close(&lock);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 2);
	assert_true(fixture->is_ok);
}

static void test_a_lock_that_is_never_let_go_ends_the_wait(void **state)
{
	struct fixture *fixture = *state;
	sync_once(fixture);
	workspace_destroy(fixture->workspace);
	fixture->request.lock_timeout_ms = 100;
	fixture->workspace = workspace_create(&fixture->request);
	char path[FIXTURE_PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/acp-broker.lock", fixture->place->store_path);
	int lock = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	fd_close(&lock);
}

static void test_syncs_are_done_in_order_and_destroyed_ones_are_silent(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	for (int i = 0; i < 3; i++) {
		begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	}
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 3);
	for (int turns = 0; turns < 12; turns++) {
		begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
		for (int i = 0; i < turns; i++) {
			ev_run(fixture->loop, EVRUN_ONCE);
		}
		fixture->told = 0;
		workspace_destroy(fixture->workspace);
		ev_run(fixture->loop, 0);
		assert_int_equal(fixture->told, 0);
		fixture->workspace = workspace_create(&fixture->request);
	}
	sync_once(fixture);
	expect_same(fixture);
}

static void test_a_root_that_may_not_be_synced_is_refused(void **state)
{
	struct fixture *fixture = *state;
	workspace_destroy(fixture->workspace);
	fixture->request.local_root = "/";
	fixture->workspace = workspace_create(&fixture->request);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_START});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_DENIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_the_first_sync_fills_the_runtime),
		WORKSPACE_TEST(test_a_second_sync_changes_nothing),
		WORKSPACE_TEST(test_both_sides_changes_meet),
		WORKSPACE_TEST(test_a_conflict_parks_the_runtimes_version_and_is_told_once),
		WORKSPACE_TEST(test_a_failed_delivery_leaves_nothing_half_known),
		WORKSPACE_TEST(test_a_failed_collection_changes_nothing),
		WORKSPACE_TEST(test_a_directory_that_cannot_be_read_fails_the_sync),
		WORKSPACE_TEST(test_a_runtime_that_changes_meanwhile_gets_another_round),
		WORKSPACE_TEST(test_many_deletions_are_not_followed),
		WORKSPACE_TEST(test_a_question_changes_nothing),
		WORKSPACE_TEST(test_a_yes_is_followed_and_can_be_gone_back_on),
		WORKSPACE_TEST(test_a_yes_is_about_what_was_asked_alone),
		WORKSPACE_TEST(test_what_the_person_deletes_is_not_asked_about),
		WORKSPACE_TEST(test_an_ignored_file_in_the_way_is_a_conflict_once),
		WORKSPACE_TEST(test_what_is_stuck_is_no_part_of_the_base_until_both_sides_agree),
		WORKSPACE_TEST(test_folders_and_files_in_each_others_way_are_conflicts),
		WORKSPACE_TEST(test_a_file_that_may_not_be_changed_stays_and_goes_back),
		WORKSPACE_TEST(test_another_brokers_sync_is_waited_for),
		WORKSPACE_TEST(test_a_lock_that_is_never_let_go_ends_the_wait),
		WORKSPACE_TEST(test_syncs_are_done_in_order_and_destroyed_ones_are_silent),
		WORKSPACE_TEST(test_a_root_that_may_not_be_synced_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
