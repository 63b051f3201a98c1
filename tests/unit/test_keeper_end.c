/* SPDX-License-Identifier: MIT */
#include "broker/state_folder.h"
#include "sync/store_lock.h"
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
	/* Nothing that is gone with it was deleted by anybody. */
	run(fixture, "rm -rf ra rb; mkdir ra rb");
	renew(fixture);
	open_root(fixture, "a");
	assert_true(fixture->is_ok);
	run(fixture, "cat a/late a/f ra/late ra/f >/dev/null");
}

/* Nothing was collected that a receipt could be given for, and so the sandbox stays. */
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

/* It is there alone: a sandbox that is kept may end its session, one that goes may not. */
static void test_what_cannot_be_read_in_a_transient_sandbox_keeps_it(void **state)
{
	static const char *const left[] = {"secret", "db/data", NULL};
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	dir_transport_hooks.left = left;
	expect_end_keeps_it(fixture);
	assert_non_null(strstr(fixture->record.error, "2 of the files"));
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

/* Writes the record of another broker that lives as long as the descriptor. */
static int other_broker(struct fixture *fixture, enum record_state record_state)
{
	struct error err;
	struct record record;
	struct buf json;
	buf_init(&json, RECORD_FILE_MAX);
	record_init(&record);
	record.profile = mem_strdup("p");
	record.backend = mem_strdup("fake");
	record.sync = mem_strdup("none");
	record.persistence = mem_strdup("transient");
	bool is_made = record_state != RECORD_CREATING;
	record.local_root = is_made ? mem_strdup("/elsewhere") : path_of(fixture, "a");
	record.runtime_root = is_made ? path_of(fixture, "ra") : NULL;
	record.state = record_state;
	int folder_fd = record_folder_open(fixture->state, &err);
	int lock_fd = record_lock(folder_fd, record.id, &err);
	assert_true(lock_fd >= 0);
	assert_true(record_write_json(&record, &json, &err));
	assert_true(record_save(folder_fd, record.id, buf_span(&json), &err));
	fd_close(&folder_fd);
	buf_finish(&json);
	record_finish(&record);
	return lock_fd;
}

static void test_a_sandbox_that_another_broker_works_in_stays(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd = other_broker(fixture, RECORD_ACTIVE);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
	fd_close(&lock_fd); // it was killed: what it left has been collected
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_int_equal(fixture->destroys, 1);
}

static void test_a_sandbox_that_another_broker_is_about_to_use_stays(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd = other_broker(fixture, RECORD_CREATING);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->destroys, 0);
	fd_close(&lock_fd);
}

static void test_the_last_of_two_brokers_that_leave_ends_it(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd = other_broker(fixture, RECORD_STOPPED);
	open_root(fixture, "a");
	close_keeper(fixture);
	assert_int_equal(fixture->destroys, 1);
	fd_close(&lock_fd);
}

static void test_stores_are_pruned_once_a_day(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	close_keeper(fixture);
	ev_run(fixture->loop, 0);
	run(fixture, "test -e state/stores/*/pruned");
	run(fixture, "touch -d '1 hour ago' state/stores/*/pruned state/then");
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	ev_run(fixture->loop, 0);
	run(fixture, "! test state/stores/*/pruned -nt state/then");
	run(fixture, "touch -d '25 hours ago' state/stores/*/pruned");
	renew(fixture);
	open_root(fixture, "a");
	close_keeper(fixture);
	ev_run(fixture->loop, 0);
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
		/* As its owner does. */
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

/* Another broker has the store's lock while a directory is announced. */
static void test_who_announces_waits_for_the_stores_lock(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int fd;
	open_root(fixture, "a"); // makes the store
	fixture->settings.lock_timeout_ms = 150;
	fixture->sandbox.root_count = 0; // as one that has the root no more
	renew(fixture);
	char *path = path_of(fixture, "a");
	char *store = state_folder_store(fixture->state, path);
	assert_true(store_lock_find(store, &fd, &err));
	assert_true(store_lock_try(fd));
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
	assert_int_equal(fixture->records, 2); // of two that waited one has written it
	fixture->sandbox.root_count = 1;
	free(store);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEEPER_TEST(test_a_transient_sandbox_ends_once_everything_is_here),
		KEEPER_TEST(test_what_cannot_be_read_in_a_transient_sandbox_keeps_it),
		KEEPER_TEST(test_commits_that_could_not_be_taken_keep_a_transient_sandbox),
		KEEPER_TEST(test_a_sandbox_that_could_not_be_collected_stays),
		KEEPER_TEST(test_a_sandbox_that_another_broker_works_in_stays),
		KEEPER_TEST(test_a_sandbox_that_another_broker_is_about_to_use_stays),
		KEEPER_TEST(test_the_last_of_two_brokers_that_leave_ends_it),
		KEEPER_TEST(test_a_sandbox_that_is_kept_rests_once_everything_is_here),
		KEEPER_TEST(test_what_could_not_be_collected_does_not_rest),
		KEEPER_TEST(test_what_is_not_synced_stays_as_it_is),
		KEEPER_TEST(test_a_sandbox_that_no_session_used_does_not_go_on),
		KEEPER_TEST(test_stores_are_pruned_once_a_day),
		KEEPER_TEST(test_destroyed_at_any_moment_it_tells_nothing),
		KEEPER_TEST(test_who_announces_waits_for_the_stores_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
