/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/workspace_fixture.h"
#include "tests/support/facts.h"

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
	expect(fixture, "cat a $R/a $P/a", "mine\nmine\nits\n");
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

static void deliver_in_part(void *data)
{
	run(data, "cp a $R/a; echo new > $R/new");
}

static void test_what_a_cut_delivery_has_brought_is_not_the_agents(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	run(fixture, "echo a2 > a; echo b2 > b; echo new > new");
	dir_transport_hooks.before_deliver = deliver_in_part;
	dir_transport_hooks.data = fixture;
	dir_transport_hooks.fail_delivers = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	dir_transport_hooks.before_deliver = NULL;
	run(fixture, "echo a3 > a; echo b > b; rm new");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect_same(fixture);
	expect(fixture, "ls; cat a b", "a\nb\na3\nb\n");
	/*
	 * That delivery is over. What the agent does now is its own change, even if the delivery
	 * did the same.
	 */
	run(fixture, "echo a2 > $R/a");
	sync_once(fixture);
	expect(fixture, "cat a", "a2\n");
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
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->result.conflict_count, 1);
	expect(fixture, "cat b $R/a $R/b", "b2\nlate 2\nb2\n");
	assert_names(fixture->note, "sandbox | a");
	sync_once(fixture);
	expect_same(fixture);
	/* Each version that the runtime had is somewhere. */
	expect(fixture, "cat a; cat $P/a | sort | tail -1", "mine\nlate 2\n");
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
	run(fixture, "rm $R/f1 $R/f2; rm f3 f4 f5 f6 f7 f8 f9");
	sync_once(fixture);
	assert_int_equal(fixture->result.kept, 0);
	expect(fixture, "ls | wc -l; ls f? 2>/dev/null || :", "22\n");
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

static void test_who_is_in_a_hurry_waits_for_no_lock(void **state)
{
	struct fixture *fixture = *state;
	sync_once(fixture);
	char path[FIXTURE_PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/acp-broker.lock", fixture->place->store_path);
	int lock = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_STOP});
	for (int i = 0; i < 5; i++) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(fixture->told, 1);
	workspace_hurry(fixture->workspace);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 2);
	assert_false(fixture->is_ok);
	assert_non_null(strstr(fixture->err.text, "next session"));
	fd_close(&lock);
	sync_once(fixture); // without somebody else nothing has to wait
}

static void test_a_sync_whose_workspace_is_destroyed_is_silent(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
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

static void test_a_damaged_checkpoint_is_told_once_and_stops_no_sync(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, "echo rubbish > \"$PLACE\"/state/store/refs/acp-broker/checkpoints/00000001; "
		     "echo b > a");
	sync_once(fixture);
	assert_non_null(strstr(fixture->note, "checkpoint 1 cannot be read"));
	run(fixture, "echo c > a");
	sync_once(fixture);
	assert_string_equal(fixture->note, "");
	assert_int_equal(fixture->result.checkpoint, 3);
	run(fixture, "test -f \"$PLACE\"/state/store/refs/acp-broker/checkpoints/00000001");
}

static void test_what_is_left_out_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	static const char *const one[] = {"d/secret\x1b", NULL};
	static const char *const two[] = {"b", "a", NULL};
	static const char *const turned[] = {"a", "b", NULL};
	static const char *const others[] = {"b", "c", NULL};
	static const char *const fresh[] = {"e", "f", NULL};
	const struct {
		const char *const *left;
		const char *note;
	} syncs[] = {
		{NULL, ""}, {one, "left | sandbox | \"d/secret\\033\""}, {one, ""},
		{two, "left | sandbox | b and 1 more"}, {turned, ""},
		{others, "left | sandbox | b and 1 more"}, {NULL, ""},
		{others, ""}, // a file that is busy in some syncs and not in others
	};
	for (size_t i = 0; i < ARRAY_LENGTH(syncs); i++) {
		dir_transport_hooks.left = syncs[i].left;
		sync_once(fixture);
		assert_int_equal(*fixture->note != 0, *syncs[i].note != 0);
		assert_names(fixture->note, syncs[i].note);
	}
	dir_transport_hooks.left = fresh;
	dir_transport_hooks.fail_delivers = 1; // in that case nobody was told
	run(fixture, "echo a > a");
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	sync_once(fixture);
	assert_non_null(strstr(fixture->note, ": e and 1 more"));
	dir_transport_hooks.left = NULL;
}

static void test_too_much_is_warned_of_once_a_kind_however_it_changes(void **state)
{
	struct fixture *fixture = *state;
	workspace_destroy(fixture->workspace);
	fixture->request.limits.files_warn = 2;
	fixture->request.limits.bytes_warn = 1 << 20;
	fixture->workspace = workspace_create(&fixture->request);
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	assert_string_equal(fixture->note, "");
	run(fixture, "echo c > c");
	sync_once(fixture);
	assert_names(fixture->note, "3 files | excluding");
	run(fixture, "echo d > d");
	sync_once(fixture);
	assert_string_equal(fixture->note, "");
	run(fixture, "head -c 2097152 /dev/zero > large");
	sync_once(fixture);
	assert_names(fixture->note, "2 MiB | excluding");
	run(fixture, "head -c 4194304 /dev/zero > large; rm a b c d; echo e > $R/e");
	sync_once(fixture);
	assert_string_equal(fixture->note, "");
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	assert_string_equal(fixture->note, "");
}

static void exclude_s(struct fixture *fixture)
{
	static const char *const exclude[] = {"s", NULL};
	workspace_destroy(fixture->workspace);
	fixture->request.exclude = exclude;
	fixture->workspace = workspace_create(&fixture->request);
}

static void test_what_is_excluded_after_it_was_synced_stays_here_and_goes_there(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo s > s");
	sync_once(fixture);
	exclude_s(fixture);
	run(fixture, "echo s2 > s");
	sync_once(fixture);
	expect(fixture, "cat s; ls $R", "s2\na\n");
	run(fixture, "echo mine > $R/a");
	sync_once(fixture);
	expect(fixture, "cat a s; ls $R", "mine\ns2\na\n");
}

static void test_what_the_agent_did_to_it_before_is_parked(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo s > s");
	sync_once(fixture);
	exclude_s(fixture);
	run(fixture, "echo its > $R/s");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	assert_string_equal(fixture->conflict, "s");
	expect(fixture, "cat s $P/s; ls $R", "s\nits\na\n");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "cat s", "s\n");
}

static void test_what_the_agent_deleted_before_it_was_excluded_stays_here(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo s > s");
	sync_once(fixture);
	exclude_s(fixture);
	run(fixture, "rm $R/s");
	sync_once(fixture);
	expect(fixture, "cat s; ls $R", "s\na\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_the_first_sync_fills_the_runtime),
		WORKSPACE_TEST(test_a_second_sync_changes_nothing),
		WORKSPACE_TEST(test_both_sides_changes_meet),
		WORKSPACE_TEST(test_a_conflict_parks_the_runtimes_version_and_is_told_once),
		WORKSPACE_TEST(test_a_failed_delivery_leaves_nothing_half_known),
		WORKSPACE_TEST(test_what_a_cut_delivery_has_brought_is_not_the_agents),
		WORKSPACE_TEST(test_a_failed_collection_changes_nothing),
		WORKSPACE_TEST(test_a_directory_that_cannot_be_read_fails_the_sync),
		WORKSPACE_TEST(test_a_runtime_that_changes_meanwhile_gets_another_round),
		WORKSPACE_TEST(test_many_deletions_are_not_followed),
		WORKSPACE_TEST(test_another_brokers_sync_is_waited_for),
		WORKSPACE_TEST(test_a_lock_that_is_never_let_go_ends_the_wait),
		WORKSPACE_TEST(test_who_is_in_a_hurry_waits_for_no_lock),
		WORKSPACE_TEST(test_a_sync_whose_workspace_is_destroyed_is_silent),
		WORKSPACE_TEST(test_a_root_that_may_not_be_synced_is_refused),
		WORKSPACE_TEST(test_what_is_left_out_is_told_once),
		WORKSPACE_TEST(test_too_much_is_warned_of_once_a_kind_however_it_changes),
		WORKSPACE_TEST(test_a_damaged_checkpoint_is_told_once_and_stops_no_sync),
		WORKSPACE_TEST(test_what_is_excluded_after_it_was_synced_stays_here_and_goes_there),
		WORKSPACE_TEST(test_what_the_agent_did_to_it_before_is_parked),
		WORKSPACE_TEST(test_what_the_agent_deleted_before_it_was_excluded_stays_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
