/* SPDX-License-Identifier: MIT */
#include "broker/ledger/state_folder.h"
#include "sync/store_lock.h"
#include "tests/support/facts.h"
#include "tests/unit/keeper_fixture.h"

/* ---- the end ---- */

static void rest(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	CONTAINER_OF(sandbox, struct fixture, sandbox)->rests++;
	sandbox_raise_later(sandbox, done, data, NULL);
}

static const struct sandbox_impl resting_impl = {
	.destroy = destroy_sandbox, .close = close_sandbox, .rest = rest};

static void test_a_sandbox_that_is_kept_rests_once_everything_is_here(void **state)
{
	struct fixture *fixture = *state;
	fixture->sandbox.impl = &resting_impl;
	fixture->sandbox.reference = "box-1";
	fixture->sandbox.instance = "id-1";
	for (int i = 0; i < 2; i++) {
		fixture->settings.persistence = i ? PERSISTENCE_ARCHIVE : PERSISTENCE_REUSE;
		open_root(fixture, "a");
		close_keeper(fixture);
		assert_true(fixture->is_ok);
		assert_int_equal(fixture->rests, i + 1);
		assert_int_equal(record_of(fixture, "a")->state, RECORD_STOPPED);
		assert_string_equal(fixture->record.reference, "box-1");
		assert_string_equal(fixture->record.instance, "id-1");
		renew(fixture);
	}
	assert_int_equal(fixture->destroys, 0);
}

/* The service does not answer. */
static void hang(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	CONTAINER_OF(sandbox, struct fixture, sandbox)->rests++;
}

static const struct sandbox_impl hanging_impl = {
	.destroy = hang, .close = close_sandbox, .rest = hang};

static void test_an_end_that_is_urgent_leaves_the_sandbox_to_the_next_start(void **state)
{
	struct fixture *fixture = *state;
	fixture->sandbox.impl = &hanging_impl;
	fixture->sandbox.reference = "box-1";
	for (int i = 0; i < 2; i++) {
		fixture->settings.persistence = i ? PERSISTENCE_TRANSIENT : PERSISTENCE_REUSE;
		open_root(fixture, "a");
		int told = fixture->told;
		keeper_close(fixture->keeper, on_done, fixture);
		while (fixture->rests == i) {
			ev_run(fixture->loop, EVRUN_ONCE);
		}
		keeper_hurry(fixture->keeper);
		assert_int_equal(fixture->told, told); // not from within the call
		wait_done(fixture);
		assert_false(fixture->is_ok);
		assert_string_equal(fixture->err.reason, "SHUTTING_DOWN");
		assert_names(fixture->err.text, "box-1 | second signal");
		assert_int_equal(record_of(fixture, "a")->state, RECORD_COLLECTING);
		assert_string_not_equal(fixture->record.receipt.runtime_tree, "");
		renew(fixture);
	}
}

static void test_an_end_that_was_urgent_before_the_sandbox_was_told_is_so_too(void **state)
{
	struct fixture *fixture = *state;
	fixture->sandbox.impl = &hanging_impl;
	fixture->sandbox.reference = "box-1";
	for (int i = 0; i < 2; i++) {
		fixture->settings.persistence = i ? PERSISTENCE_TRANSIENT : PERSISTENCE_REUSE;
		open_root(fixture, "a");
		keeper_close(fixture->keeper, on_done, fixture);
		keeper_hurry(fixture->keeper);
		assert_int_equal(fixture->rests, i);
		wait_done(fixture);
		assert_int_equal(fixture->rests, i + 1); // the last sync came first
		assert_false(fixture->is_ok);
		assert_string_equal(fixture->err.reason, "SHUTTING_DOWN");
		assert_int_equal(record_of(fixture, "a")->state, RECORD_COLLECTING);
		assert_string_not_equal(fixture->record.receipt.runtime_tree, "");
		renew(fixture);
	}
}

static void test_what_could_not_be_collected_does_not_rest(void **state)
{
	struct fixture *fixture = *state;
	fixture->sandbox.impl = &resting_impl;
	fixture->settings.persistence = PERSISTENCE_REUSE;
	open_root(fixture, "a");
	dir_transport_hooks.fail_collects = 1;
	close_keeper(fixture);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->rests, 0);
	assert_int_equal(record_of(fixture, "a")->state, RECORD_FAILED);
}

static void test_what_is_not_synced_stays_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	fixture->sandbox.impl = &resting_impl;
	fixture->settings.mode = SYNC_MODE_NONE;
	for (int i = 0; i < 2; i++) {
		fixture->settings.persistence = i ? PERSISTENCE_REUSE : PERSISTENCE_TRANSIENT;
		open_root(fixture, "a");
		close_keeper(fixture);
		assert_true(fixture->is_ok);
		renew(fixture);
	}
	assert_int_equal(fixture->rests + fixture->destroys, 0);
}

static void test_a_sandbox_that_no_session_used_does_not_go_on(void **state)
{
	struct fixture *fixture = *state;
	fixture->sandbox.impl = &resting_impl;
	close_sandbox(&fixture->sandbox);
	fixture->sandbox.roots = NULL;
	fixture->sandbox.root_count = 0;
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 1);
	fixture->settings.persistence = PERSISTENCE_REUSE;
	renew(fixture);
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 1);
	assert_int_equal(fixture->rests, 1);
}

static void test_a_transient_sandbox_ends_once_everything_is_here(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	add_root(fixture, "b", "rb"); // no session was opened in it
	run(fixture, "echo late >ra/late; echo late >rb/late");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 1);
	run(fixture, "cat a/late b/late >/dev/null");
	/* Nobody has deleted the files that are gone with the sandbox. */
	run(fixture, "rm -rf ra rb; mkdir ra rb");
	renew(fixture);
	open_root(fixture, "a");
	assert_true(fixture->is_ok);
	run(fixture, "cat a/late a/f ra/late ra/f >/dev/null");
}

/* Nothing was collected, so there is no receipt, and the sandbox stays. */
static void expect_end_keeps_it(struct fixture *fixture)
{
	close_keeper(fixture);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
	assert_int_equal(record_of(fixture, "a")->state, RECORD_FAILED);
	assert_string_equal(fixture->record.receipt.runtime_tree, "");
}

static void test_a_sandbox_that_could_not_be_collected_stays(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	dir_transport_hooks.fail_collects = 1;
	expect_end_keeps_it(fixture);
}

/*
 * These files exist only there. A sandbox that is kept may end its session; a transient one may not
 * end.
 */
static void test_what_could_not_be_taken_from_a_transient_sandbox_keeps_it(void **state)
{
	static const char *const left[] = {"secret", "db/data", NULL};
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	dir_transport_hooks.left = left;
	expect_end_keeps_it(fixture);
	assert_names(fixture->record.error, "2 of the files | first: secret");
	assert_non_null(strstr(fixture->record.error, "sessions discard"));
	fixture->settings.persistence = PERSISTENCE_REUSE;
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
}

static void test_commits_that_could_not_be_taken_keep_a_transient_sandbox(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	dir_transport_hooks.commits_left = true;
	expect_end_keeps_it(fixture);
	assert_non_null(strstr(fixture->record.error, "commits in the sandbox"));
}

static struct record record_in(enum record_state record_state, char *local, char *runtime)
{
	struct record record;
	record_init(&record);
	record.profile = mem_strdup("p");
	record.backend = mem_strdup("fake");
	record.sync = mem_strdup("none");
	record.persistence = mem_strdup("transient");
	record.local_root = local;
	record.runtime_root = runtime;
	record.state = record_state;
	return record;
}

/* Writes a record whose broker lives as long as the returned descriptor. */
static int write_record(struct fixture *fixture, const struct record *record)
{
	struct error err;
	int folder_fd = record_folder_open(fixture->state, &err);
	int lock_fd = record_lock(folder_fd, record->id, &err);
	assert_true(lock_fd >= 0);
	assert_true(record_put(folder_fd, record, &err));
	fd_close(&folder_fd);
	return lock_fd;
}

/* Another broker with a sandbox that has this reference, or none (NULL). */
static int other_broker(
	struct fixture *fixture, enum record_state record_state, const char *reference)
{
	bool is_made = record_state != RECORD_CREATING;
	struct record record =
		record_in(record_state, path_of(fixture, is_made ? "elsewhere" : "a"),
			is_made ? path_of(fixture, "ra") : NULL);
	record.reference = mem_strdup_or_null(reference);
	int lock_fd = write_record(fixture, &record);
	record_finish(&record);
	return lock_fd;
}

static void test_a_sandbox_that_another_broker_works_in_stays(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd = other_broker(fixture, RECORD_ACTIVE, NULL);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
	fd_close(&lock_fd); // it was killed: what it left has been collected
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_int_equal(fixture->destroys, 1);
	const struct record *record = record_of(fixture, "elsewhere");
	assert_int_equal(record->state, RECORD_COLLECTING); // and it says so
	assert_int_equal(strlen(record->receipt.runtime_tree), RECORD_TREE_SIZE - 1);
}

static void test_one_in_a_sandbox_of_another_name_is_in_no_ones_way(void **state)
{
	struct fixture *fixture = *state;
	int made_fd = other_broker(fixture, RECORD_ACTIVE, "box-2");
	int making_fd = other_broker(fixture, RECORD_CREATING, "box-2");
	fixture->sandbox.reference = "box-1";
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 1);
	fd_close(&made_fd);
	fd_close(&making_fd);
}

/*
 * Two brokers shared the sandbox. The first was killed when it had collected, before it noticed
 * that the second one had gone on; the second was killed later.
 */
static void test_what_was_collected_before_another_left_files_in_it_stays(void **state)
{
	static const char tree[] = "0123456789abcdef0123456789abcdef01234567";
	struct fixture *fixture = *state;
	struct record record =
		record_in(RECORD_COLLECTING, path_of(fixture, "a"), path_of(fixture, "ra"));
	memcpy(record.receipt.runtime_tree, tree, sizeof(tree));
	memcpy(record.receipt.merged_tree, tree, sizeof(tree));
	int lock_fd = other_broker(fixture, RECORD_ACTIVE, NULL);
	fd_close(&lock_fd);
	keeper_adopt(fixture->keeper, &record, write_record(fixture, &record));
	keeper_recover(fixture->keeper, on_done, fixture);
	wait_done(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
	assert_int_equal(record_of(fixture, "a")->state, RECORD_STOPPED);
}

static void test_a_sandbox_that_another_broker_is_about_to_use_stays(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd = other_broker(fixture, RECORD_CREATING, NULL);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
	fd_close(&lock_fd);
}

static void test_the_last_of_two_brokers_that_leave_ends_it(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd = other_broker(fixture, RECORD_STOPPED, NULL);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_int_equal(fixture->destroys, 1);
	fd_close(&lock_fd);
}

/*
 * A broker was killed when it had collected everything in its sandbox; this broker ends the
 * sandbox.
 */
static void end_collected(struct fixture *fixture)
{
	static const char tree[] = "0123456789abcdef0123456789abcdef01234567";
	struct record record =
		record_in(RECORD_COLLECTING, path_of(fixture, "a"), path_of(fixture, "ra"));
	memcpy(record.receipt.runtime_tree, tree, sizeof(tree));
	memcpy(record.receipt.merged_tree, tree, sizeof(tree));
	renew(fixture);
	keeper_adopt(fixture->keeper, &record, write_record(fixture, &record));
	keeper_recover(fixture->keeper, on_done, fixture);
}

static int lock_store_of(const struct fixture *fixture, const char *name)
{
	struct error err;
	int fd;
	char *path = path_of(fixture, name);
	char *store = state_folder_store(fixture->state, path);
	assert_true(store_lock_find(store, &fd, &err));
	assert_true(store_lock_try(fd));
	free(store);
	free(path);
	return fd;
}

static void test_a_sync_of_its_workspace_elsewhere_delays_the_end(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a"); // makes the store
	close_keeper(fixture);
	int store_fd = lock_store_of(fixture, "a");
	int told = fixture->told;
	end_collected(fixture);
	for (int turn = 0; turn < 20; turn++) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(fixture->told, told);
	fd_close(&store_fd);
	wait_done(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 2);
}

static void test_a_sync_of_its_workspace_in_it_keeps_the_sandbox(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	close_keeper(fixture);
	int store_fd = lock_store_of(fixture, "a");
	int lock_fd = other_broker(fixture, RECORD_ACTIVE, NULL);
	end_collected(fixture);
	wait_done(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 1);
	fd_close(&lock_fd);
	fd_close(&store_fd);
}

static void test_stores_are_pruned_once_a_day(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	close_keeper(fixture);
	run(fixture, "test -e state/stores/*/pruned");
	run(fixture, "touch -d '1 hour ago' state/stores/*/pruned state/then");
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	run(fixture, "! test state/stores/*/pruned -nt state/then");
	run(fixture, "touch -d '25 hours ago' state/stores/*/pruned");
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	run(fixture, "test state/stores/*/pruned -nt state/then");
}

static void test_destroyed_at_any_moment_it_tells_nothing(void **state)
{
	struct fixture *fixture = *state;
	for (int turns = 0; turns < 40; turns++) {
		char *path = path_of(fixture, "a");
		keeper_open(fixture->keeper, (char *[]){path, NULL}, on_done, fixture);
		keeper_close(fixture->keeper, on_done, fixture);
		free(path);
		for (int i = 0; i < turns && fixture->told < 2; i++) {
			ev_run(fixture->loop, EVRUN_ONCE);
		}
		keeper_destroy(fixture->keeper);
		/* The owner of the sandbox does this, too. */
		sandbox_close(&fixture->sandbox);
		fixture->told = 0;
		ev_run(fixture->loop, 0);
		assert_int_equal(fixture->told, 0);
		sandbox_init(&fixture->sandbox, &sandbox_impl, fixture->loop);
		fixture->sandbox.was_ready = true;
		fixture->sandbox.capabilities.isolated = true;
		add_root(fixture, "a", "ra");
		begin(fixture);
	}
	open_root(fixture, "a");
	assert_true(fixture->is_ok);
	run(fixture, "diff -r a ra");
}

/* Another broker holds the store's lock while this one announces a directory. */
static void test_who_announces_waits_for_the_stores_lock(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a"); // makes the store
	fixture->settings.lock_timeout_ms = 150;
	fixture->sandbox.root_count = 0; // like a sandbox that does not have the root any more
	renew(fixture);
	char *path = path_of(fixture, "a");
	int fd = lock_store_of(fixture, "a");
	announce(fixture, "a");
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	assert_non_null(strstr(fixture->err.text, "(sync-lock-timeout)"));
	record_of(fixture, "a");
	assert_int_equal(fixture->records, 1);
	fixture->settings.lock_timeout_ms = 60000;
	assert_true(keeper_announce(fixture->keeper, (char *[]){path, NULL}, on_done, fixture));
	assert_true(keeper_announce(fixture->keeper, (char *[]){path, NULL}, on_done, fixture));
	ev_run(fixture->loop, EVRUN_ONCE);
	assert_int_equal(fixture->told, 2);
	fd_close(&fd);
	wait_done(fixture);
	assert_true(fixture->is_ok);
	wait_done(fixture);
	assert_true(fixture->is_ok);
	record_of(fixture, "a");
	assert_int_equal(fixture->records, 2); // two records waited, one has written it
	fixture->sandbox.root_count = 1;
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEEPER_TEST(test_a_transient_sandbox_ends_once_everything_is_here),
		KEEPER_TEST(test_what_could_not_be_taken_from_a_transient_sandbox_keeps_it),
		KEEPER_TEST(test_commits_that_could_not_be_taken_keep_a_transient_sandbox),
		KEEPER_TEST(test_a_sandbox_that_could_not_be_collected_stays),
		KEEPER_TEST(test_a_sandbox_that_another_broker_works_in_stays),
		KEEPER_TEST(test_one_in_a_sandbox_of_another_name_is_in_no_ones_way),
		KEEPER_TEST(test_what_was_collected_before_another_left_files_in_it_stays),
		KEEPER_TEST(test_a_sandbox_that_another_broker_is_about_to_use_stays),
		KEEPER_TEST(test_the_last_of_two_brokers_that_leave_ends_it),
		KEEPER_TEST(test_a_sync_of_its_workspace_elsewhere_delays_the_end),
		KEEPER_TEST(test_a_sync_of_its_workspace_in_it_keeps_the_sandbox),
		KEEPER_TEST(test_a_sandbox_that_is_kept_rests_once_everything_is_here),
		KEEPER_TEST(test_an_end_that_is_urgent_leaves_the_sandbox_to_the_next_start),
		KEEPER_TEST(test_an_end_that_was_urgent_before_the_sandbox_was_told_is_so_too),
		KEEPER_TEST(test_what_could_not_be_collected_does_not_rest),
		KEEPER_TEST(test_what_is_not_synced_stays_as_it_is),
		KEEPER_TEST(test_a_sandbox_that_no_session_used_does_not_go_on),
		KEEPER_TEST(test_stores_are_pruned_once_a_day),
		KEEPER_TEST(test_destroyed_at_any_moment_it_tells_nothing),
		KEEPER_TEST(test_who_announces_waits_for_the_stores_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
