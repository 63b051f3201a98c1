/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_saver.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

struct fixture {
	struct ev_loop *loop;
	struct pool *pool;
	char folder[64];
	struct record_saver *saver;
	struct record record;
	char told[16]; // one letter a save: o or e
	struct error err;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-saver-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	fixture->saver = record_saver_create(fixture->loop, fixture->pool, fixture->folder);
	record_init(&fixture->record);
	fixture->record.profile = mem_strdup("p");
	fixture->record.backend = mem_strdup("local");
	fixture->record.sync = mem_strdup("none");
	fixture->record.persistence = mem_strdup("reuse");
	fixture->record.local_root = mem_strdup("/w");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	char path[96];
	record_saver_destroy(fixture->saver);
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	int folder_fd = record_folder_open(fixture->folder, &err);
	assert_true(record_remove(folder_fd, fixture->record.id, &err));
	fd_close(&folder_fd);
	snprintf(path, sizeof(path), "%s/sessions", fixture->folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(fixture->folder), 0);
	record_finish(&fixture->record);
	free(fixture);
	return 0;
}

static void on_saved(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	size_t len = strlen(fixture->told);
	assert_true(len + 1 < sizeof(fixture->told));
	fixture->told[len] = err ? 'e' : 'o';
	if (err) {
		fixture->err = *err;
	}
}

static void save(struct fixture *fixture, enum record_state record_state)
{
	fixture->record.state = record_state;
	record_saver_save(fixture->saver, &fixture->record, on_saved, fixture);
}

static struct record load(struct fixture *fixture)
{
	struct error err;
	struct record record;
	int folder_fd = record_folder_open(fixture->folder, &err);
	assert_true(record_load(folder_fd, fixture->record.id, &record, &err));
	fd_close(&folder_fd);
	return record;
}

static void test_saves_are_done_in_order_as_each_was_asked_for(void **state)
{
	struct fixture *fixture = *state;
	save(fixture, RECORD_SYNCING);
	save(fixture, RECORD_STARTING);
	save(fixture, RECORD_ACTIVE);
	fixture->record.state = RECORD_FAILED; // not asked for
	assert_string_equal(fixture->told, "");
	ev_run(fixture->loop, 0);
	assert_string_equal(fixture->told, "ooo");
	struct record record = load(fixture);
	assert_int_equal(record.state, RECORD_ACTIVE);
	record_finish(&record);
}

static void test_the_first_save_sweeps_what_a_killed_broker_left(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int folder_fd = record_folder_open(fixture->folder, &err);
	int draft = openat(folder_fd, "00112233445566aa.new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(draft >= 0);
	fd_close(&draft);
	save(fixture, RECORD_ACTIVE);
	ev_run(fixture->loop, 0);
	assert_string_equal(fixture->told, "o");
	assert_int_equal(faccessat(folder_fd, "00112233445566aa.new", F_OK, 0), -1);
	fd_close(&folder_fd);
}

static void test_the_lock_is_held_while_the_saver_lives(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	save(fixture, RECORD_ACTIVE);
	ev_run(fixture->loop, 0);
	int folder_fd = record_folder_open(fixture->folder, &err);
	assert_int_equal(record_lock(folder_fd, fixture->record.id, &err), -1);
	record_saver_destroy(fixture->saver);
	fixture->saver = NULL;
	int lock = record_lock(folder_fd, fixture->record.id, &err);
	assert_true(lock >= 0);
	fd_close(&lock);
	fd_close(&folder_fd);
}

static void test_another_brokers_record_is_not_written(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int folder_fd = record_folder_open(fixture->folder, &err);
	int lock = record_lock(folder_fd, fixture->record.id, &err);
	save(fixture, RECORD_ACTIVE);
	ev_run(fixture->loop, 0);
	assert_string_equal(fixture->told, "e");
	assert_int_equal(fixture->err.code, ERROR_UNAVAILABLE);
	fd_close(&lock);
	save(fixture, RECORD_ACTIVE);
	ev_run(fixture->loop, 0);
	assert_string_equal(fixture->told, "eo");
	fd_close(&folder_fd);
}

static void test_a_folder_that_cannot_be_made_is_told(void **state)
{
	struct fixture *fixture = *state;
	record_saver_destroy(fixture->saver);
	fixture->saver = record_saver_create(fixture->loop, fixture->pool, "/proc/nowhere");
	save(fixture, RECORD_ACTIVE);
	ev_run(fixture->loop, 0);
	assert_string_equal(fixture->told, "e");
	assert_non_null(strstr(fixture->err.text, "/proc/nowhere"));
}

static void test_destroyed_in_the_middle_it_tells_nothing(void **state)
{
	struct fixture *fixture = *state;
	for (int i = 0; i < 4; i++) {
		save(fixture, RECORD_ACTIVE);
	}
	ev_run(fixture->loop, EVRUN_ONCE);
	char told[sizeof(fixture->told)];
	memcpy(told, fixture->told, sizeof(told));
	record_saver_destroy(fixture->saver);
	fixture->saver = NULL;
	ev_run(fixture->loop, 0);
	assert_string_equal(fixture->told, told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_saves_are_done_in_order_as_each_was_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_first_save_sweeps_what_a_killed_broker_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_lock_is_held_while_the_saver_lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_another_brokers_record_is_not_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_folder_that_cannot_be_made_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_destroyed_in_the_middle_it_tells_nothing, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
