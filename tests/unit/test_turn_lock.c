/* SPDX-License-Identifier: MIT */
#include "broker/ledger/turn_lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"
#include "tests/support/facts.h"
#include "tests/unit/record_folder.h"

enum { RECORDS_MAX = 4 };

/* Brokers that live, each with a record. */
struct fixture {
	struct record_folder folder;
	char ids[RECORDS_MAX][RECORD_ID_SIZE];
	int locks[RECORDS_MAX]; // of the records
	struct turn_lock turns[RECORDS_MAX];
	size_t count;
	struct turn_locks taken; // by hand
	struct error err;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	record_folder_make(&fixture->folder);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	turn_locks_finish(&fixture->taken);
	for (size_t i = 0; i < fixture->count; i++) {
		turn_lock_finish(&fixture->turns[i]);
		fd_close(&fixture->locks[i]);
	}
	record_folder_drop(&fixture->folder, fixture->ids, fixture->count); // with the turn's file
	free(fixture);
	return 0;
}

/* Adds a broker on this workspace; returns its number. */
static size_t add(struct fixture *fixture, const char *root)
{
	struct record record;
	struct buf json;
	struct error err;
	size_t number = fixture->count++;
	record_init(&record);
	record.state = RECORD_ACTIVE;
	record.profile = mem_strdup("p");
	record.backend = mem_strdup("local");
	record.sync = mem_strdup("none");
	record.persistence = mem_strdup("reuse");
	record.local_root = mem_strdup(root);
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(&record, &json, &err));
	memcpy(fixture->ids[number], record.id, RECORD_ID_SIZE);
	fixture->locks[number] = record_lock(fixture->folder.fd, record.id, &err);
	assert_true(fixture->locks[number] >= 0);
	assert_true(record_save(fixture->folder.fd, record.id, buf_span(&json), &err));
	turn_lock_init(&fixture->turns[number]);
	buf_finish(&json);
	record_finish(&record);
	return number;
}

static bool begin(struct fixture *fixture, size_t number, const char *list, bool is_lasting)
{
	struct turn_text text = {list, is_lasting};
	return turn_lock_take(&fixture->turns[number], fixture->folder.path, fixture->ids[number],
		&text, &fixture->err);
}

static bool take(struct fixture *fixture, int timeout_ms)
{
	struct turn_search search = {.state_folder = fixture->folder.path,
		.root = "/w",
		.real_root = "/real/w",
		.timeout_ms = timeout_ms};
	return turn_locks_take(&fixture->taken, &search, &fixture->err);
}

static void expect_busy(struct fixture *fixture, const char *list)
{
	char text[ERROR_TEXT_MAX];
	snprintf(text, sizeof(text),
		"in flight | %s | TOOLS_IN_FLIGHT | profile p | process %d | nothing was changed",
		list, (int)getpid());
	assert_false(take(fixture, 0));
	assert_int_equal(fixture->err.code, ERROR_UNAVAILABLE);
	assert_string_equal(fixture->err.reason, "TOOLS_IN_FLIGHT");
	assert_names(fixture->err.text, text);
	assert_int_equal(fixture->taken.count, 0);
}

static void expect_taken(struct fixture *fixture, size_t count)
{
	assert_true(take(fixture, 0));
	assert_int_equal(fixture->taken.count, count);
	turn_locks_finish(&fixture->taken);
}

static void test_what_is_under_way_is_named_until_it_is_over(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "/w");
	expect_taken(fixture, 1);
	assert_true(begin(fixture, 0, "a prompt in s", true));
	expect_busy(fixture, "a prompt in s");
	assert_true(begin(fixture, 0, "term-1 in session s", true)); // it was longer before
	expect_busy(fixture, "term-1 in session s");
	turn_lock_let_go(&fixture->turns[0]);
	expect_taken(fixture, 1);
}

static enum turn_state look(struct fixture *fixture, size_t number, char text[TURN_TEXT_MAX])
{
	struct record_owner owner;
	record_owner_note(fixture->locks[number], true);
	record_owner_find(fixture->folder.fd, fixture->ids[number], &owner);
	enum turn_state state =
		turn_lock_look(fixture->folder.fd, fixture->ids[number], &owner, text);
	record_owner_finish(&owner);
	return state;
}

static void test_who_looks_sees_what_is_under_way_and_is_in_nobodys_way(void **state)
{
	struct fixture *fixture = *state;
	char text[TURN_TEXT_MAX];
	add(fixture, "/w");
	assert_int_equal(look(fixture, 0, text), TURN_IDLE); // no turn yet
	assert_true(begin(fixture, 0, "a prompt in s", true));
	assert_int_equal(look(fixture, 0, text), TURN_OPEN);
	assert_string_equal(text, "a prompt in s");
	turn_lock_let_go(&fixture->turns[0]);
	assert_int_equal(look(fixture, 0, text), TURN_IDLE);
	assert_string_equal(text, "");
	expect_taken(fixture, 1);

	/* If a broker is not seen, nothing is known about it, whatever the file says. */
	struct record_owner nobody = {.pid_fd = -1};
	assert_true(begin(fixture, 0, "a prompt in s", true));
	assert_int_equal(
		turn_lock_look(fixture->folder.fd, fixture->ids[0], &nobody, text), TURN_UNKNOWN);
	assert_string_equal(text, "");
}

static void test_all_brokers_of_the_workspace_count_and_no_others(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "/w");
	size_t real = add(fixture, "/real/w");
	size_t other = add(fixture, "/w2");
	assert_true(begin(fixture, other, "a prompt", true));
	expect_taken(fixture, 2);
	assert_true(begin(fixture, real, "a prompt in r", true));
	expect_busy(fixture, "a prompt in r");
	assert_true(begin(fixture, 0, "a prompt in s", true)); // none was kept
}

static void test_a_broker_that_is_gone_has_nothing_under_way(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "/w");
	assert_true(begin(fixture, 0, "a prompt in s", true));
	turn_lock_finish(&fixture->turns[0]); // as a kill does
	expect_taken(fixture, 1);
	fd_close(&fixture->locks[0]);
	expect_taken(fixture, 0);
}

static void test_what_is_about_to_end_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "/w");
	assert_true(begin(fixture, 0, "term-1 in session s", false));
	long long begun_ms = clock_now_ms();
	assert_false(take(fixture, 120));
	assert_true(clock_now_ms() >= begun_ms + 120);
	assert_non_null(strstr(fixture->err.text, "in flight: term-1 in session s ("));
	assert_true(begin(fixture, 0, "a prompt in s", true));
	assert_false(take(fixture, 3600 * 1000)); // and nothing else
}

static void test_nothing_begins_while_a_workspace_is_brought_back(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "/w");
	assert_true(take(fixture, 0));
	assert_false(begin(fixture, 0, "a prompt in s", true));
	assert_string_equal(fixture->err.reason, "ROLLBACK_IN_PROGRESS");
	turn_lock_let_go(&fixture->turns[0]); // which is not held
	turn_locks_finish(&fixture->taken);
	assert_true(begin(fixture, 0, "a prompt in s", true));
	expect_busy(fixture, "a prompt in s");
}

static void test_the_name_of_a_session_drives_no_terminal(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "/w");
	assert_true(begin(fixture, 0, "a prompt in session \x1b[2J", true));
	expect_busy(fixture, "\"a prompt in session \\033[2J\"");
}

static void test_where_nothing_is_recorded_nobody_is_at_work(void **state)
{
	struct fixture *fixture = *state;
	struct turn_search search = {.state_folder = "/nowhere", .root = "/w"};
	assert_true(turn_locks_take(&fixture->taken, &search, &fixture->err));
	assert_int_equal(fixture->taken.count, 0);
}

#define TURN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(test_what_is_under_way_is_named_until_it_is_over),
		TURN_TEST(test_who_looks_sees_what_is_under_way_and_is_in_nobodys_way),
		TURN_TEST(test_all_brokers_of_the_workspace_count_and_no_others),
		TURN_TEST(test_a_broker_that_is_gone_has_nothing_under_way),
		TURN_TEST(test_what_is_about_to_end_is_waited_for),
		TURN_TEST(test_nothing_begins_while_a_workspace_is_brought_back),
		TURN_TEST(test_the_name_of_a_session_drives_no_terminal),
		TURN_TEST(test_where_nothing_is_recorded_nobody_is_at_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
