/* SPDX-License-Identifier: MIT */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* test_local_confine.c tests the refusals of openat2, and walks without openat2. */
static char folder[] = "/tmp/test-beneath-XXXXXX";
static int root = -1;

static int set_up(void **state)
{
	if (!mkdtemp(folder)) {
		return -1;
	}
	root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int failed = symlinkat("/tmp", root, "link");
	failed |= mkdirat(root, "d", 0755);
	int fd = openat(root, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	close(fd);
	return failed || fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	static const char *const folders[] = {"d/e/f", "d/e", "d", "."};
	unlinkat(root, "link", 0);
	unlinkat(root, "file", 0);
	for (size_t i = 0; i + 1 < sizeof(folders) / sizeof(*folders); i++) {
		unlinkat(root, folders[i], AT_REMOVEDIR);
	}
	close(root);
	return rmdir(folder);
}

static void expect_folder(const char *path, bool make)
{
	struct stat status;
	int fd = beneath_open_folder(root, path, make);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static void expect_errno(const char *path, bool make, int errnum)
{
	errno = 0;
	assert_int_equal(beneath_open_folder(root, path, make), -1);
	assert_int_equal(errno, errnum);
}

static void test_a_folder_is_opened_and_the_root_itself(void **state)
{
	expect_folder("", false);
	expect_folder("d", false);
}

static void test_what_is_missing_is_made_only_when_asked(void **state)
{
	unlinkat(root, "d/e/f", AT_REMOVEDIR);
	expect_errno("d/e/f", false, ENOENT);
	expect_folder("d/e/f", true);
	expect_folder("d/e/f", false);
}

static void test_a_link_or_a_file_in_the_way_is_an_error(void **state)
{
	expect_errno("link", false, ELOOP);
	expect_errno("link/x", true, ELOOP);
	expect_errno("file", true, ENOTDIR);
	expect_errno("file/x", true, ENOTDIR);
}

/* A file that was just opened is in the kernel's memory; tmpfs keeps all files there. */
static void test_what_is_in_memory_is_opened_without_waiting(void **state)
{
	static const char *const refused[] = {"link/x", "../x", "d/../..", "file/x"};
	int fd = beneath_open(root, "file", O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	fd = beneath_open_cached(root, "file", O_RDONLY);
	if (fd < 0 && (errno == EINVAL || errno == ENOSYS || errno == EPERM)) {
		skip(); // a kernel before 5.12, or a filter
	}
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		assert_int_equal(beneath_open_cached(root, refused[i], O_PATH | O_NOFOLLOW), -1);
	}
	assert_int_equal(beneath_open_cached(root, "file", O_RDONLY | O_CREAT), -1);
}

static void test_the_way_up_is_refused(void **state)
{
	expect_errno("..", false, EXDEV);
	expect_errno("d/../..", false, EXDEV);
}

/*
 * Kernels before 5.6, and sandboxes that do not know openat2, refuse it. From here on it is
 * refused.
 */
static void test_the_errors_are_the_same_without_openat2(void **state)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		skip();
	}
	test_a_folder_is_opened_and_the_root_itself(state);
	test_what_is_missing_is_made_only_when_asked(state);
	test_a_link_or_a_file_in_the_way_is_an_error(state);
	test_the_way_up_is_refused(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_folder_is_opened_and_the_root_itself),
		cmocka_unit_test(test_what_is_missing_is_made_only_when_asked),
		cmocka_unit_test(test_a_link_or_a_file_in_the_way_is_an_error),
		cmocka_unit_test(test_what_is_in_memory_is_opened_without_waiting),
		cmocka_unit_test(test_the_way_up_is_refused),
		cmocka_unit_test(test_the_errors_are_the_same_without_openat2),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
