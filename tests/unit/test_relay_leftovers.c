/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_leftovers.h"
#include "broker/relay/relay_state.h"

#include "broker/ledger/record.h"
#include "tests/support/facts.h"
#include "tests/unit/relay_sync_fixture.h"

/* Opens the only session, with edits that only the sandbox has. */
static void begin_with_edits(struct fixture *fixture)
{
	begin_synced(fixture);
	write_file(runtime, "late", "late");
}

/* The link is lost, and the edits there could not be collected. */
static void lose(struct fixture *fixture)
{
	dir_transport_hooks.fail_collects = 1;
	stage_lose(&fixture->stage, "the link is down");
	while (stage_open_sandboxes(&fixture->stage) > 0) {
		stage_wait_turn(&fixture->stage);
	}
}

static bool is_collected(void)
{
	char late[128];
	snprintf(late, sizeof(late), "%s/late", workspace);
	return access(late, F_OK) == 0;
}

static void wait_until_prepared(struct fixture *fixture, int count)
{
	while (fixture->stage.prepared < count) {
		stage_wait_turn(&fixture->stage);
	}
}

static void wait_until_finished(struct fixture *fixture)
{
	stage_until(&fixture->stage, &fixture->is_finished);
}

/* ---- the records ---- */

struct looking {
	int folder_fd, count;
	char id[RECORD_ID_SIZE]; // of one of them
	enum record_state state;
};

static void look_at(void *data, const char *id)
{
	struct looking *looking = data;
	struct record record;
	struct error err;
	assert_true(record_load(looking->folder_fd, id, &record, &err));
	snprintf(looking->id, sizeof(looking->id), "%s", id);
	looking->state = record.state;
	looking->count++;
	record_finish(&record);
}

/* The caller closes the folder. */
static struct looking the_record(void)
{
	struct error err;
	struct looking looking = {.folder_fd = record_folder_open(state_folder, &err)};
	assert_true(looking.folder_fd >= 0);
	assert_true(record_visit(looking.folder_fd, look_at, &looking, &err));
	assert_int_equal(looking.count, 1);
	return looking;
}

static void assert_state(enum record_state state)
{
	struct looking looking = the_record();
	assert_int_equal(looking.state, state);
	fd_close(&looking.folder_fd);
}

/* ---- reached ---- */

static void test_what_is_in_a_lost_sandbox_is_collected_at_the_end(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	lose(fixture);
	assert_int_equal(fixture->stage.prepared, 1);
	assert_state(RECORD_FAILED);
	editor_closes(fixture);
	wait_until_finished(fixture);
	assert_string_equal(fixture->finish_error, "");
	assert_true(is_collected());
	assert_state(RECORD_STOPPED);
	assert_int_equal(fixture->stage.prepared, 2);
	assert_int_equal(fixture->stage.actor_count, 1); // no agent was started to reach it
}

static void test_what_becomes_of_its_record_is_told(void **state)
{
	static const char *const states[] = {"collecting", "stopped"};
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	lose(fixture);
	relay_state_want(fixture->relay, true);
	free(editor_line(fixture)); // the notice that the sync has failed
	editor_closes(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		char wanted[64];
		char *line = editor_line(fixture);
		assert_non_null(strstr(line, "\"sessionIds\":[\"s\"]"));
		snprintf(wanted, sizeof(wanted), "\"state\":\"%s\"", states[i]);
		assert_non_null(strstr(line, wanted));
		free(line);
	}
	assert_null(editor_line(fixture));
}

static void test_one_that_is_lost_in_the_last_sync_is_collected_too(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	dir_transport_hooks.holds = true;
	editor_closes(fixture);
	agent_dies(fixture, 0);
	wait_held(fixture);
	stage_lose(&fixture->stage, "the link is down");
	dir_transport_hooks.fail_collects = 1;
	dir_transport_hooks.holds = false;
	dir_transport_release();
	wait_until_finished(fixture);
	assert_string_equal(fixture->finish_error, "");
	assert_true(is_collected());
	assert_state(RECORD_STOPPED);
}

/* ---- left where it is ---- */

static void assert_left(struct fixture *fixture, const char *why, int prepared)
{
	wait_until_finished(fixture);
	assert_names(fixture->finish_error, why);
	assert_non_null(strstr(fixture->finish_error, "next start"));
	assert_int_equal(fixture->stage.prepared, prepared);
	assert_false(is_collected());
	assert_state(RECORD_FAILED);
}

static void test_one_that_is_out_of_reach_is_left_and_said(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	lose(fixture);
	error_set(&fixture->stage.ready_error, ERROR_UNAVAILABLE, "host is away");
	editor_closes(fixture);
	assert_left(fixture, "host is away", 2);
}

static void test_the_time_to_reach_it_is_prepare_timeout(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	lose(fixture);
	fixture->stage.holds_ready = true;
	profile_of(fixture)->prepare_timeout_ms = 30;
	editor_closes(fixture);
	assert_left(fixture, "prepare-timeout", 2);
}

static void test_a_hurried_end_does_not_reach_for_it(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	lose(fixture);
	fixture->stage.holds_ready = true;
	relay_end(fixture->relay);
	wait_until_prepared(fixture, 2);
	relay_hurry(fixture->relay);
	fd_close(&fixture->from_broker);
	assert_left(fixture, "the link is down", 2);
}

/* The collect failed for another reason, and reaching the sandbox again would not change that. */
static void test_one_that_was_not_lost_is_not_reached_for(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	dir_transport_hooks.fail_collects = 1;
	editor_closes(fixture);
	agent_dies(fixture, 0);
	assert_left(fixture, "the link is down", 1);
}

/* During the end, the broker has already waited in vain for an agent's own sandbox. */
static void test_the_time_to_reach_it_is_not_taken_twice(void **state)
{
	struct fixture *fixture = *state;
	begin_with_edits(fixture);
	lose(fixture);
	fixture->stage.holds_ready = true;
	editor_says(
		fixture, "'id':'again','method':'session/new','params':{'cwd':'%s'}", workspace);
	wait_until_prepared(fixture, 2);
	editor_closes(fixture);
	stage_lose(&fixture->stage, "host is away");
	assert_left(fixture, "the link is down", 2);
}

/* ---- records that another broker has ---- */

static struct looking hold_record(int *lock_fd)
{
	struct error err;
	struct looking looking = the_record();
	*lock_fd = record_lock(looking.folder_fd, looking.id, &err);
	assert_true(*lock_fd >= 0);
	return looking;
}

static void test_another_broker_that_has_it_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd;
	begin_with_edits(fixture);
	lose(fixture);
	struct looking looking = hold_record(&lock_fd);
	editor_closes(fixture);
	wait_ms(fixture, 120);
	assert_false(fixture->is_finished);
	assert_int_equal(fixture->stage.prepared, 1);
	fd_close(&lock_fd);
	wait_until_finished(fixture);
	assert_string_equal(fixture->finish_error, "");
	assert_true(is_collected());
	fd_close(&looking.folder_fd);
}

static void test_another_broker_that_has_it_is_not_waited_for_longer(void **state)
{
	struct fixture *fixture = *state;
	int lock_fd;
	begin_with_edits(fixture);
	lose(fixture);
	struct looking looking = hold_record(&lock_fd);
	profile_of(fixture)->prepare_timeout_ms = 100;
	editor_closes(fixture);
	assert_left(fixture, "belongs to | broker", 1);
	fd_close(&lock_fd);
	fd_close(&looking.folder_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_TEST(test_what_is_in_a_lost_sandbox_is_collected_at_the_end),
		SYNC_TEST(test_what_becomes_of_its_record_is_told),
		SYNC_TEST(test_one_that_is_lost_in_the_last_sync_is_collected_too),
		SYNC_TEST(test_one_that_is_out_of_reach_is_left_and_said),
		SYNC_TEST(test_the_time_to_reach_it_is_prepare_timeout),
		SYNC_TEST(test_a_hurried_end_does_not_reach_for_it),
		SYNC_TEST(test_one_that_was_not_lost_is_not_reached_for),
		SYNC_TEST(test_the_time_to_reach_it_is_not_taken_twice),
		SYNC_TEST(test_another_broker_that_has_it_is_waited_for),
		SYNC_TEST(test_another_broker_that_has_it_is_not_waited_for_longer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
