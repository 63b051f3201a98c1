/* SPDX-License-Identifier: MIT */
#include "sync/store_lock.h"

#include <errno.h>
#include <stdio.h>

#include "base/fd.h"
#include "sync/workspace.h"
#include "tests/unit/store_fixture.h"

static int waits;

static void on_wait(void)
{
	waits++;
}

static int open_lock(struct place *place)
{
	struct error err;
	int fd = store_lock_open(&place->store, &err);
	if (fd < 0) {
		fail_msg("%s", err.text);
	}
	return fd;
}

static void test_one_holds_it_at_a_time(void **state)
{
	int first = open_lock(*state);
	int second = open_lock(*state);
	assert_true(store_lock_try(first));
	assert_false(store_lock_try(second));
	assert_int_equal(errno, EWOULDBLOCK);
	fd_close(&first);
	assert_true(store_lock_try(second));
	fd_close(&second);
}

static void test_a_free_lock_is_not_waited_for(void **state)
{
	struct error err;
	int fd = open_lock(*state);
	waits = 0;
	assert_true(store_lock_wait(fd, 0, on_wait, &err));
	assert_int_equal(waits, 0);
	fd_close(&fd);
}

static void test_waiting_ends_at_the_deadline(void **state)
{
	struct error err;
	int holder = open_lock(*state);
	int fd = open_lock(*state);
	assert_true(store_lock_try(holder));
	waits = 0;
	assert_false(store_lock_wait(fd, clock_now_ms() + 120, on_wait, &err));
	assert_int_equal(err.code, ERROR_TIMEOUT);
	assert_int_equal(waits, 1);
	assert_false(store_lock_wait(fd, 0, NULL, &err));
	assert_int_equal(err.code, ERROR_TIMEOUT);
	fd_close(&holder);
	assert_true(store_lock_wait(fd, 0, NULL, &err));
	fd_close(&fd);
}

static int *to_release;

static void release(void)
{
	fd_close(to_release);
}

static void test_waiting_ends_when_the_holder_lets_go(void **state)
{
	struct error err;
	int holder = open_lock(*state);
	int fd = open_lock(*state);
	assert_true(store_lock_try(holder));
	to_release = &holder;
	assert_true(store_lock_wait(fd, clock_now_ms() + 60000, release, &err));
	fd_close(&fd);
}

static void test_it_is_found_by_the_folder_of_its_store(void **state)
{
	struct place *place = *state;
	struct error err;
	int holder = open_lock(*state);
	int fd;
	assert_true(store_lock_try(holder));
	assert_true(store_lock_find(place->store.path, &fd, &err));
	assert_false(store_lock_try(fd));
	fd_close(&holder);
	assert_true(store_lock_try(fd));
	fd_close(&fd);
	assert_true(store_lock_find("/nowhere/at/all", &fd, &err));
	assert_int_equal(fd, -1);
	assert_true(store_lock_find("/dev/null", &fd, &err)); // making it there fails later
	assert_int_equal(fd, -1);
	char folder[FIXTURE_PATH_MAX];
	place_run(place, "mkdir -p odd/" WORKSPACE_LOCK_NAME);
	snprintf(folder, sizeof(folder), "%s/odd", place->root);
	assert_false(store_lock_find(folder, &fd, &err));
	assert_non_null(strstr(err.text, folder));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_one_holds_it_at_a_time),
		CASE(test_a_free_lock_is_not_waited_for),
		CASE(test_waiting_ends_at_the_deadline),
		CASE(test_waiting_ends_when_the_holder_lets_go),
		CASE(test_it_is_found_by_the_folder_of_its_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
