/* SPDX-License-Identifier: MIT */
#include "broker/ledger/plain_record.h"

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

struct fixture {
	struct ev_loop *loop;
	struct pool *pool;
	char folder[64];
	int fd;
	struct plain_records *records;
	size_t count;
	char last[RECORD_ID_SIZE];
};

static char one[] = "/one", two[] = "/two";
static char *first_roots[] = {one, two, NULL};
static char *second_roots[] = {one, NULL};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	struct error err;
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-plain-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	fixture->fd = plain_folder_open(fixture->folder, &err);
	assert_true(fixture->fd >= 0);
	fixture->records = plain_records_create(&(struct plain_config){.pool = fixture->pool,
		.state_folder = fixture->folder,
		.profile = "p",
		.backend = "local"});
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char path[96];
	plain_records_destroy(fixture->records);
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	fd_close(&fixture->fd);
	snprintf(path, sizeof(path), "%s/plain", fixture->folder);
	assert_int_equal(rmdir(path), 0); // nothing is left in it
	assert_int_equal(rmdir(fixture->folder), 0);
	free(fixture);
	return 0;
}

static void count_one(void *data, const char *id)
{
	struct fixture *fixture = data;
	fixture->count++;
	memcpy(fixture->last, id, RECORD_ID_SIZE);
}

static size_t files(struct fixture *fixture)
{
	struct error err;
	fixture->count = 0;
	assert_true(record_visit(fixture->fd, count_one, fixture, &err));
	return fixture->count;
}

static void test_each_workspace_has_a_record_while_a_session_is_open_in_it(void **state)
{
	struct fixture *fixture = *state;
	struct record record;
	struct error err;
	plain_records_add(fixture->records, first_roots, "s1");
	plain_records_add(fixture->records, second_roots, "s2");
	ev_run(fixture->loop, 0);
	assert_int_equal(files(fixture), 2);
	plain_records_remove(fixture->records, "s1");
	ev_run(fixture->loop, 0);
	assert_int_equal(files(fixture), 1);
	assert_true(record_load(fixture->fd, fixture->last, &record, &err));
	assert_string_equal(record.local_root, "/one");
	assert_int_equal(record.session_count, 1);
	assert_string_equal(record.sessions[0], "s2");
	assert_int_equal(record.state, RECORD_ACTIVE);
	record_finish(&record);
	plain_records_remove(fixture->records, "s2");
	ev_run(fixture->loop, 0);
	assert_int_equal(files(fixture), 0);
}

static void test_a_sweep_leaves_those_of_a_broker_that_lives(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	plain_records_add(fixture->records, second_roots, "s1");
	ev_run(fixture->loop, 0);
	assert_true(record_save(fixture->fd, "0123456789abcdef", span_of("{}"), &err));
	int lock = record_lock(fixture->fd, "0123456789abcdef", &err);
	assert_true(lock >= 0);
	assert_true(plain_folder_sweep(fixture->fd, &err));
	assert_int_equal(files(fixture), 2);
	fd_close(&lock); // as a kill does
	assert_true(plain_folder_sweep(fixture->fd, &err));
	assert_int_equal(files(fixture), 1);
}

static void test_the_end_while_a_file_is_being_written_leaves_none(void **state)
{
	struct fixture *fixture = *state;
	plain_records_add(fixture->records, first_roots, "s1");
	plain_records_destroy(fixture->records);
	fixture->records = NULL; // tear_down looks
}

static void test_a_folder_that_cannot_be_made_changes_nothing_for_the_session(void **state)
{
	struct fixture *fixture = *state;
	plain_records_destroy(fixture->records);
	fixture->records = plain_records_create(&(struct plain_config){.pool = fixture->pool,
		.state_folder = "/dev/null/state",
		.profile = "p",
		.backend = "local"});
	plain_records_add(fixture->records, first_roots, "s1");
	ev_run(fixture->loop, 0);
	plain_records_remove(fixture->records, "s1");
	ev_run(fixture->loop, 0);
	assert_int_equal(files(fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_each_workspace_has_a_record_while_a_session_is_open_in_it, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_sweep_leaves_those_of_a_broker_that_lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_end_while_a_file_is_being_written_leaves_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_folder_that_cannot_be_made_changes_nothing_for_the_session, set_up,
			tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
