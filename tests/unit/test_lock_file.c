/* SPDX-License-Identifier: MIT */
#include "base/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { LOOK_MS = 1, LONG_MS = 60 * 1000 };

static char folder[] = "/tmp/lock-file-XXXXXX";
static int folder_fd;
static int one, other; // two openings of the same file
static int waits;
static atomic_bool is_cancelled;

static int make_folder(void **state)
{
	if (!mkdtemp(folder)) {
		return -1;
	}
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	close(folder_fd);
	return rmdir(folder);
}

static int open_both(void **state)
{
	waits = 0;
	atomic_store(&is_cancelled, false);
	one = lock_file_open(folder_fd, "it");
	other = lock_file_open(folder_fd, "it");
	return one < 0 || other < 0 ? -1 : 0;
}

static int close_both(void **state)
{
	fd_close(&one);
	fd_close(&other);
	return unlinkat(folder_fd, "it", 0);
}

static void test_the_file_is_the_users_alone_and_no_link_is_followed(void **state)
{
	struct stat status;
	assert_int_equal(fstat(one, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(symlinkat("it", folder_fd, "link"), 0);
	assert_int_equal(lock_file_open(folder_fd, "link"), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(unlinkat(folder_fd, "link", 0), 0);
	assert_true(fcntl(one, F_GETFD) & FD_CLOEXEC);
}

static void test_one_has_it_alone_until_it_is_released_or_closed(void **state)
{
	assert_int_equal(lock_file_try(one, LOCK_ALONE), LOCK_TAKEN);
	assert_int_equal(lock_file_try(other, LOCK_ALONE), LOCK_ELSEWHERE);
	assert_int_equal(lock_file_try(other, LOCK_SHARED), LOCK_ELSEWHERE);
	lock_file_release(one);
	assert_int_equal(lock_file_try(other, LOCK_ALONE), LOCK_TAKEN);
	fd_close(&other);
	assert_int_equal(lock_file_try(one, LOCK_ALONE), LOCK_TAKEN);
}

static void test_several_share_it_and_the_last_may_have_it_alone(void **state)
{
	assert_int_equal(lock_file_try(one, LOCK_SHARED), LOCK_TAKEN);
	assert_int_equal(lock_file_try(other, LOCK_SHARED), LOCK_TAKEN);
	assert_int_equal(lock_file_try(one, LOCK_ALONE), LOCK_ELSEWHERE);
	lock_file_release(other);
	assert_int_equal(lock_file_try(one, LOCK_ALONE), LOCK_TAKEN);
}

static void test_what_cannot_be_locked_has_an_errno(void **state)
{
	assert_int_equal(lock_file_try(-1, LOCK_ALONE), LOCK_FAILED);
	assert_int_equal(errno, EBADF);
	struct lock_wait wait = {.look_ms = LOOK_MS};
	assert_int_equal(lock_file_wait(-1, &wait), LOCK_FAILED);
	assert_int_equal(errno, EBADF);
}

static void test_a_removed_or_replaced_file_is_not_current(void **state)
{
	assert_true(lock_file_is_current(one, folder_fd, "it"));
	assert_int_equal(unlinkat(folder_fd, "it", 0), 0);
	assert_false(lock_file_is_current(one, folder_fd, "it"));
	int third = lock_file_open(folder_fd, "it");
	assert_true(third >= 0);
	assert_false(lock_file_is_current(one, folder_fd, "it"));
	assert_true(lock_file_is_current(third, folder_fd, "it"));
	fd_close(&third);
}

/* ---- waiting ---- */

static void release_other(void)
{
	waits++;
	lock_file_release(other);
}

static void count(void)
{
	waits++;
	atomic_store(&is_cancelled, true);
}

static void test_a_wait_ends_with_the_lock(void **state)
{
	assert_int_equal(lock_file_try(other, LOCK_ALONE), LOCK_TAKEN);
	struct lock_wait wait = {.look_ms = LOOK_MS,
		.deadline_ms = clock_now_ms() + LONG_MS,
		.on_wait = release_other};
	assert_int_equal(lock_file_wait(one, &wait), LOCK_TAKEN);
	assert_int_equal(waits, 1);
	assert_int_equal(lock_file_wait(one, &wait), LOCK_TAKEN);
	assert_int_equal(waits, 1);
}

static void test_a_wait_ends_at_its_deadline_and_when_it_is_cancelled(void **state)
{
	assert_int_equal(lock_file_try(other, LOCK_ALONE), LOCK_TAKEN);
	struct lock_wait late = {.look_ms = LOOK_MS, .deadline_ms = 0, .on_wait = count};
	assert_int_equal(lock_file_wait(one, &late), LOCK_ELSEWHERE);
	assert_int_equal(waits, 0);
	struct lock_wait cancelled = {.look_ms = LOOK_MS,
		.deadline_ms = LOCK_NO_DEADLINE,
		.is_cancelled = &is_cancelled,
		.on_wait = count};
	assert_int_equal(lock_file_wait(one, &cancelled), LOCK_ELSEWHERE);
	assert_int_equal(waits, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_file_is_the_users_alone_and_no_link_is_followed),
		TEST(test_one_has_it_alone_until_it_is_released_or_closed),
		TEST(test_several_share_it_and_the_last_may_have_it_alone),
		TEST(test_what_cannot_be_locked_has_an_errno),
		TEST(test_a_removed_or_replaced_file_is_not_current),
		TEST(test_a_wait_ends_with_the_lock),
		TEST(test_a_wait_ends_at_its_deadline_and_when_it_is_cancelled),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
