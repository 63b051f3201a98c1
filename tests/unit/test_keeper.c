/* SPDX-License-Identifier: MIT */
#include "tests/unit/keeper_fixture.h"

/* ---- records ---- */

static void test_a_record_says_how_far_it_is(void **state)
{
	struct fixture *fixture = *state;
	fixture->settings.persistence = PERSISTENCE_REUSE;
	open_root(fixture, "a");
	assert_true(fixture->is_ok);
	assert_int_equal(record_of(fixture, "a")->state, RECORD_STARTING);
	add_session(fixture, "ra", "s");
	assert_int_equal(record_of(fixture, "a")->state, RECORD_ACTIVE);
	add_session(fixture, "a", "t");
	assert_int_equal(record_of(fixture, "a")->session_count, 2);
	assert_string_equal(fixture->record.receipt.runtime_tree, "");
	close_keeper(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(record_of(fixture, "a")->state, RECORD_STOPPED);
	assert_int_equal(strlen(fixture->record.receipt.runtime_tree), 40);
	assert_int_equal(fixture->destroys, 0);
}

static void test_a_record_says_before_the_sync_that_it_begins(void **state)
{
	struct fixture *fixture = *state;
	char *path = path_of(fixture, "a");
	dir_transport_hooks.holds = true;
	keeper_open(fixture->keeper, (char *[]){path, NULL}, on_done, fixture);
	free(path);
	while (!dir_transport_hooks.held) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(record_of(fixture, "a")->state, RECORD_SYNCING);
	dir_transport_hooks.holds = false;
	dir_transport_release();
	wait_done(fixture);
	assert_true(fixture->is_ok);
}

static void test_a_turn_that_fails_ends_nothing(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	add_session(fixture, "a", "s");
	dir_transport_hooks.fail_collects = 1;
	sync_root(fixture, "ra");
	assert_false(fixture->is_ok);
	assert_int_equal(record_of(fixture, "a")->state, RECORD_ACTIVE);
	assert_non_null(strstr(fixture->record.error, "the link is down"));
	sync_root(fixture, "ra");
	assert_true(fixture->is_ok);
	assert_null(record_of(fixture, "a")->error);
}

static void test_the_sync_after_an_agents_crash_is_no_receipt(void **state)
{
	struct fixture *fixture = *state;
	struct sync_order order = {.reason = SYNC_REASON_CRASH};
	struct kept kept;
	open_root(fixture, "a");
	keeper_sync(fixture->keeper, NULL, &order, on_done, fixture);
	wait_done(fixture);
	assert_true(fixture->is_ok);
	assert_true(keeper_at(fixture->keeper, 0, &kept));
	assert_int_equal(kept.last->reason, SYNC_REASON_CRASH);
	assert_string_equal(record_of(fixture, "a")->receipt.runtime_tree, "");
}

/* ---- the queue ---- */

static char ended[16]; // the names of orders, in the order of their end

static void on_order_done(void *data, const struct error *err)
{
	assert_null(err);
	strncat(ended, data, sizeof(ended) - strlen(ended) - 1);
}

static void order_sync(struct fixture *fixture, const char *name)
{
	struct sync_order order = {.reason = SYNC_REASON_TURN, .deletions = SYNC_DELETIONS_ASK};
	keeper_sync(fixture->keeper, NULL, &order, on_order_done, (char *)name);
}

static void test_orders_that_waited_for_an_answer_come_before_later_ones(void **state)
{
	struct fixture *fixture = *state;
	ended[0] = '\0';
	run(fixture, "for i in $(seq 20); do echo $i >a/$i; done");
	open_root(fixture, "a");
	run(fixture, "rm ra/[0-9]*");
	order_sync(fixture, "1");
	order_sync(fixture, "2");
	ev_run(fixture->loop, 0);
	assert_string_equal(ended, "");
	assert_int_equal(fixture->questions, 1);
	order_sync(fixture, "3"); // nothing else has to be done, so it begins
	order_sync(fixture, "4");
	keeper_decide(fixture->keeper, true);
	ev_run(fixture->loop, 0);
	assert_string_equal(ended, "3124");
	assert_int_equal(fixture->questions, 1);
	run(fixture, "test ! -e a/20");
}

/* ---- announced ---- */

static void test_a_record_says_before_a_root_is_made_that_it_will_be(void **state)
{
	struct fixture *fixture = *state;
	char id[RECORD_ID_SIZE];
	announce(fixture, "b");
	assert_true(fixture->is_ok);
	assert_int_equal(record_of(fixture, "b")->state, RECORD_CREATING);
	assert_null(fixture->record.runtime_root);
	memcpy(id, fixture->record.id, sizeof(id));
	announce(fixture, "b"); // another session in the same workspace
	record_of(fixture, "b");
	assert_int_equal(fixture->records, 1);
	add_root(fixture, "b", "rb");
	open_root(fixture, "b");
	assert_true(fixture->is_ok);
	assert_int_equal(record_of(fixture, "b")->state, RECORD_STARTING);
	assert_string_equal(fixture->record.id, id);
	announce(fixture, "b"); // it is kept
	assert_int_equal(record_of(fixture, "b")->state, RECORD_STARTING);
	assert_int_equal(fixture->records, 1);
}

static void test_a_root_that_was_not_made_is_no_ones(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	char *path = path_of(fixture, "b");
	announce(fixture, "b");
	error_set(&err, ERROR_UNAVAILABLE, "no room");
	keeper_renounce(fixture->keeper, (char *[]){path, NULL}, &err);
	free(path);
	ev_run(fixture->loop, 0);
	assert_int_equal(record_of(fixture, "b")->state, RECORD_STOPPED);
	assert_string_equal(fixture->record.error, "no room");
}

static void test_a_keeper_that_ends_is_done_with_announcing(void **state)
{
	struct fixture *fixture = *state;
	for (int turns = 0; turns < 6; turns++) {
		char *path = path_of(fixture, "b");
		assert_true(
			keeper_announce(fixture->keeper, (char *[]){path, NULL}, on_done, fixture));
		free(path);
		int told = fixture->told;
		for (int i = 0; i < turns && fixture->told == told; i++) {
			ev_run(fixture->loop, EVRUN_ONCE);
		}
		told = fixture->told;
		renew(fixture);
		ev_run(fixture->loop, 0);
		assert_int_equal(fixture->told, told);
	}
}

/* ---- roots ---- */

static void test_a_root_that_cannot_be_synced_is_in_nobody_elses_way(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "a");
	add_root(fixture, "b", "rb");
	dir_transport_hooks.fail_collects = 1;
	open_root(fixture, "b");
	assert_false(fixture->is_ok);
	dir_transport_hooks.fail_collects = 1; // it would fail again
	sync_root(fixture, "b");
	assert_false(fixture->is_ok);
	add_session(fixture, "a", "s");
	assert_int_equal(record_of(fixture, "b")->session_count, 0);
	open_root(fixture, "a");
	assert_true(fixture->is_ok);
	sync_root(fixture, "a");
	assert_true(fixture->is_ok);
}

static void test_two_names_of_a_directory_are_one_root(void **state)
{
	struct fixture *fixture = *state;
	struct kept kept;
	run(fixture, "ln -s a link");
	add_root(fixture, "link", "ra");
	open_root(fixture, "link");
	open_root(fixture, "a");
	assert_true(fixture->is_ok);
	record_of(fixture, "a");
	assert_int_equal(fixture->records, 1);
	assert_false(keeper_at(fixture->keeper, 1, &kept));
	char *link = path_of(fixture, "link/");
	assert_true(keeper_find(fixture->keeper, link, &kept));
	free(link);
	run(fixture, "test $(ls state/stores | wc -l) = 1");
}

static void test_what_is_no_root_is_not_taken_for_synced(void **state)
{
	struct fixture *fixture = *state;
	open_root(fixture, "b");
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEEPER_TEST(test_a_record_says_how_far_it_is),
		KEEPER_TEST(test_a_record_says_before_the_sync_that_it_begins),
		KEEPER_TEST(test_a_turn_that_fails_ends_nothing),
		KEEPER_TEST(test_the_sync_after_an_agents_crash_is_no_receipt),
		KEEPER_TEST(test_orders_that_waited_for_an_answer_come_before_later_ones),
		KEEPER_TEST(test_a_record_says_before_a_root_is_made_that_it_will_be),
		KEEPER_TEST(test_a_root_that_was_not_made_is_no_ones),
		KEEPER_TEST(test_a_keeper_that_ends_is_done_with_announcing),
		KEEPER_TEST(test_a_root_that_cannot_be_synced_is_in_nobody_elses_way),
		KEEPER_TEST(test_two_names_of_a_directory_are_one_root),
		KEEPER_TEST(test_what_is_no_root_is_not_taken_for_synced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
