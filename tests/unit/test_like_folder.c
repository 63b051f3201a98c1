/* SPDX-License-Identifier: MIT */
#include "base/like_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { SOMEBODY = 12345 };

static char path[64] = "/tmp/test-like-folder-XXXXXX";
static int folder = -1;

static int set_up(void **state)
{
	umask(022);
	folder = mkdtemp(path) ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	return folder >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	unlinkat(folder, "file", 0);
	unlinkat(folder, "folder", AT_REMOVEDIR);
	fd_close(&folder);
	return rmdir(path);
}

static void assert_made(uid_t user, gid_t group)
{
	struct stat status;
	int fd = like_folder_open(folder, "file", O_WRONLY | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_uid, user);
	assert_int_equal(status.st_gid, group);
	assert_int_equal(status.st_mode & 07777, 0644);
	fd_close(&fd);
	assert_int_equal(like_folder_mkdir(folder, "folder", 0777), 0);
	assert_int_equal(fstatat(folder, "folder", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_uid, user);
	assert_int_equal(status.st_gid, group);
	assert_int_equal(setfsuid((uid_t)-1), geteuid());
	assert_int_equal(setfsgid((gid_t)-1), getegid());
	assert_int_equal(like_folder_open(folder, "file", O_WRONLY | O_CLOEXEC, 0666), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(unlinkat(folder, "file", 0), 0);
	assert_int_equal(unlinkat(folder, "folder", AT_REMOVEDIR), 0);
}

static void test_what_is_made_in_our_own_folder_is_ours(void **state)
{
	assert_made(geteuid(), getegid());
}

static void test_what_root_makes_in_a_users_folder_is_the_users(void **state)
{
	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(chown(path, SOMEBODY, SOMEBODY + 1), 0);
	assert_made(SOMEBODY, SOMEBODY + 1);
}

static void test_root_makes_what_the_user_may_not(void **state)
{
	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(chmod(path, 0555), 0);
	assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
	assert_made(0, getegid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_made_in_our_own_folder_is_ours),
		cmocka_unit_test(test_what_root_makes_in_a_users_folder_is_the_users),
		cmocka_unit_test(test_root_makes_what_the_user_may_not),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
