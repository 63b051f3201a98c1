/* SPDX-License-Identifier: MIT */
#include "base/file_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/file_io.h"

static char folder[64];
static struct confine *confine;
static int folder_syncs;
static int sync_errno; // of a folder

/* Replaces the library's fsync: counts calls, and fails on a folder if the test wants that. */
int fsync(int fd)
{
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	if (S_ISDIR(status.st_mode)) {
		folder_syncs++;
		if (sync_errno != 0) {
			errno = sync_errno;
			return -1;
		}
	}
	return (int)syscall(SYS_fsync, fd);
}

static const char *below(const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int set_up(void **state)
{
	struct confine *empty = confine_create();
	snprintf(folder, sizeof(folder), "/tmp/test-local-keep-XXXXXX");
	assert_non_null(mkdtemp(folder));
	confine = confine_extend(empty, folder, folder);
	confine_release(empty);
	folder_syncs = 0;
	sync_errno = 0;
	return 0;
}

static int tear_down(void **state)
{
	confine_release(confine);
	return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *name, const char *content)
{
	struct error err;
	if (!file_write(confine, below(name), FILE_LINKS_FOLLOWED, span_of(content), &err)) {
		fail_msg("%s", err.text);
	}
}

static void assert_content(const char *name, const char *content)
{
	struct buf read;
	struct error err;
	assert_true(file_read(confine, below(name), FILE_LINKS_FOLLOWED, 1000, &read, &err));
	assert_true(span_is(buf_span(&read), content));
	buf_finish(&read);
}

static mode_t mode_of(const char *name)
{
	struct stat status;
	assert_int_equal(stat(below(name), &status), 0);
	return status.st_mode & 07777;
}

/* ---- access lists: acl(5), as the kernel stores them ---- */

struct access_entry {
	uint16_t tag;
	uint16_t bits;
	uint32_t id;
};

struct access_list {
	uint32_t version;
	struct access_entry entries[5];
};

/* u::rw-, u:1234:r--, g::---, mask::r--, o::---: the mask shows as the group's bits. */
static const struct access_list list = {
	2, {{0x01, 6, UINT32_MAX}, {0x02, 4, 1234}, {0x04, 0, UINT32_MAX}, {0x10, 4, UINT32_MAX},
		   {0x20, 0, UINT32_MAX}}};

static void test_the_access_list_of_a_file_stays(void **state)
{
	struct access_list kept;
	write_file("file", "old");
	if (setxattr(below("file"), "system.posix_acl_access", &list, sizeof(list), 0) != 0) {
		assert_int_equal(errno, ENOTSUP); // then there is none to be kept
		return;
	}
	assert_int_equal(mode_of("file"), 0640);
	write_file("file", "new");
	assert_content("file", "new");
	assert_int_equal(getxattr(below("file"), "system.posix_acl_access", &kept, sizeof(kept)),
		sizeof(kept));
	assert_memory_equal(&kept, &list, sizeof(kept));
	assert_int_equal(mode_of("file"), 0640);
}

/* A folder's list for new files does not apply to a file that existed without one. */
static void test_a_file_without_an_access_list_gets_none(void **state)
{
	struct access_list kept;
	write_file("file", "old");
	assert_int_equal(chmod(below("file"), 0600), 0);
	if (setxattr(folder, "system.posix_acl_default", &list, sizeof(list), 0) != 0) {
		assert_int_equal(errno, ENOTSUP);
	}
	write_file("file", "new");
	assert_content("file", "new");
	assert_int_equal(
		getxattr(below("file"), "system.posix_acl_access", &kept, sizeof(kept)), -1);
	assert_int_equal(mode_of("file"), 0600);
}

/* ---- attributes ---- */

static void test_attributes_stay(void **state)
{
	static const char name[] = "user.acp_broker.test";
	char value[16];
	write_file("file", "old");
	if (setxattr(below("file"), name, "kept", 4, 0) != 0) {
		assert_int_equal(errno, ENOTSUP);
		return;
	}
	assert_int_equal(setxattr(below("file"), "user.empty", "", 0, 0), 0);
	write_file("file", "new");
	assert_content("file", "new");
	assert_int_equal(getxattr(below("file"), name, value, sizeof(value)), 4);
	assert_memory_equal(value, "kept", 4);
	assert_int_equal(getxattr(below("file"), "user.empty", value, sizeof(value)), 0);
}

static void test_bits_that_a_write_takes_away_do_not_stay(void **state)
{
	char path[PATH_MAX];
	struct stat status;
	struct error err;
	write_file("old", "old");
	assert_int_equal(chmod(below("old"), 06751), 0);
	snprintf(path, sizeof(path), "%s", below("old"));
	int old = open(path, O_PATH);
	int draft = open(folder, O_TMPFILE | O_WRONLY, 0666);
	assert_true(old >= 0 && draft >= 0 && stat(path, &status) == 0);
	assert_true(file_keep(old, &status, draft, &err));
	assert_int_equal(fstat(draft, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0751);
	assert_int_equal(fchmod(draft, 0600), 0);
	assert_true(file_keep(-1, &status, draft, &err)); // it has just been removed
	assert_int_equal(fstat(draft, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0751);
	close(old);
	close(draft);
}

static void test_permissions_that_cannot_be_kept_are_a_failure(void **state)
{
	struct stat status;
	struct error err;
	int old = open(folder, O_PATH);
	int draft = open("/proc/self/status", O_RDONLY); // a file that nobody may change like this
	assert_true(old >= 0 && draft >= 0 && fstat(old, &status) == 0);
	assert_false(file_keep(old, &status, draft, &err));
	assert_non_null(strstr(err.text, "keeping its permissions"));
	close(old);
	close(draft);
}

/* ---- the folder ---- */

static void test_the_folder_is_saved_with_the_file(void **state)
{
	write_file("file", "new"); // makes a name
	assert_int_equal(folder_syncs, 1);
	write_file("file", "newer"); // replaces one
	assert_int_equal(folder_syncs, 2);
}

static void test_a_folder_that_cannot_be_saved_is_told(void **state)
{
	struct error err;
	sync_errno = EIO;
	assert_false(
		file_write(confine, below("file"), FILE_LINKS_FOLLOWED, SPAN_LITERAL("new"), &err));
	assert_non_null(strstr(err.text, "/file was written, but"));
	assert_non_null(strstr(err.text, "Input/output error"));
	assert_content("file", "new");
}

static void test_a_file_system_without_that_is_no_failure(void **state)
{
	sync_errno = EINVAL;
	write_file("file", "new");
	assert_int_equal(folder_syncs, 1);
}

#define KEEP_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEEP_TEST(test_the_access_list_of_a_file_stays),
		KEEP_TEST(test_a_file_without_an_access_list_gets_none),
		KEEP_TEST(test_attributes_stay),
		KEEP_TEST(test_bits_that_a_write_takes_away_do_not_stay),
		KEEP_TEST(test_permissions_that_cannot_be_kept_are_a_failure),
		KEEP_TEST(test_the_folder_is_saved_with_the_file),
		KEEP_TEST(test_a_folder_that_cannot_be_saved_is_told),
		KEEP_TEST(test_a_file_system_without_that_is_no_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
