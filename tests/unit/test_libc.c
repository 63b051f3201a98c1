/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/libc.h"

static void test_signals_have_the_names_that_the_system_gives_them(void **state)
{
	(void)state;
	assert_string_equal(libc_signal_name(SIGTERM), "TERM");
	assert_null(libc_signal_name(0));
	assert_null(libc_signal_name(-1));
	assert_null(libc_signal_name(INT32_MAX));
#ifdef __GLIBC__
	for (int number = 1; number <= SIGRTMAX + 1; number++) {
		const char *name = sigabbrev_np(number);
		if (name) {
			assert_string_equal(libc_signal_name(number), name);
		} else {
			assert_null(libc_signal_name(number));
		}
	}
#endif
}

static void test_an_error_has_a_text(void **state)
{
	(void)state;
	assert_string_equal(libc_error_text(ENOENT), "No such file or directory");
}

/* Makes a folder with the files "one" and "two", which have these bytes. */
static int make_folder(char *path)
{
	assert_non_null(mkdtemp(path));
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(folder >= 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i == 0 ? "one" : "two";
		int fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(write(fd, name, (size_t)3), 3);
		close(fd);
	}
	return folder;
}

static void assert_content(int folder, const char *name, const char *expected)
{
	char text[4] = "";
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, (size_t)3), 3);
	assert_string_equal(text, expected);
	close(fd);
}

static void test_a_file_is_born_once(void **state)
{
	(void)state;
	char path[] = "/tmp/acp-broker-test-libc-XXXXXX", name[sizeof(path) + 4];
	int folder = make_folder(path);
	(void)!snprintf(name, sizeof(name), "%s/one", path);
	struct stat status;
	assert_int_equal(stat(name, &status), 0);
	struct timespec born = libc_birth(name);
	assert_true(born.tv_sec > 0 && born.tv_sec <= status.st_mtim.tv_sec);
	assert_true(born.tv_nsec >= 0 && born.tv_nsec < 1000000000L);
	static const struct timespec earlier[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
	assert_int_equal(utimensat(folder, "one", earlier, 0), 0);
	struct timespec again = libc_birth(name);
	assert_int_equal(again.tv_sec, born.tv_sec);
	assert_int_equal(again.tv_nsec, born.tv_nsec);
	unlinkat(folder, "one", 0);
	assert_int_equal(libc_birth(name).tv_sec, 0);
	unlinkat(folder, "two", 0);
	close(folder);
	rmdir(path);
}

static void test_a_rename_has_flags(void **state)
{
	(void)state;
	char path[] = "/tmp/acp-broker-test-libc-XXXXXX";
	int folder = make_folder(path);
	assert_int_equal(libc_rename(folder, "one", folder, "two", RENAME_NOREPLACE), -1);
	assert_int_equal(errno, EEXIST);
	assert_content(folder, "two", "two");
	assert_int_equal(libc_rename(folder, "one", folder, "two", RENAME_EXCHANGE), 0);
	assert_content(folder, "one", "two");
	assert_content(folder, "two", "one");
	assert_int_equal(libc_rename(folder, "one", folder, "three", RENAME_NOREPLACE), 0);
	assert_content(folder, "three", "two");
	unlinkat(folder, "two", 0);
	unlinkat(folder, "three", 0);
	close(folder);
	rmdir(path);
}

static void test_a_range_of_descriptors_is_closed(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		int low = fcntl(0, F_DUPFD_CLOEXEC, 50);
		int high = fcntl(0, F_DUPFD_CLOEXEC, 60);
		bool is_right = low >= 50 && high > low &&
		                libc_close_range((unsigned)high, ~0U, 0) == 0 &&
		                fcntl(low, F_GETFD) >= 0 && fcntl(high, F_GETFD) < 0;
		_exit(is_right ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_a_signal_reaches_the_process_of_a_descriptor(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // if an assertion ends the test
		pause();
		_exit(0);
	}
	int pid_fd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_true(pid_fd >= 0);
	assert_int_equal(libc_pidfd_signal(pid_fd, SIGKILL), 0);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(libc_pidfd_signal(pid_fd, SIGKILL), -1);
	assert_int_equal(errno, ESRCH);
	close(pid_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_have_the_names_that_the_system_gives_them),
		cmocka_unit_test(test_an_error_has_a_text),
		cmocka_unit_test(test_a_file_is_born_once),
		cmocka_unit_test(test_a_rename_has_flags),
		cmocka_unit_test(test_a_range_of_descriptors_is_closed),
		cmocka_unit_test(test_a_signal_reaches_the_process_of_a_descriptor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
