/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"

static bool is_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	assert_true(flags >= 0);
	return flags & O_NONBLOCK;
}

static bool is_cloexec(int fd)
{
	int flags = fcntl(fd, F_GETFD);
	assert_true(flags >= 0);
	return flags & FD_CLOEXEC;
}

static bool is_dev_null(int fd)
{
	struct stat status;
	struct stat null;
	assert_int_equal(stat("/dev/null", &null), 0);
	return fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == null.st_rdev;
}

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

static void test_close_forgets_the_number_and_keeps_errno(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int number = fd;
	assert_true(fd >= 0);
	errno = ENOTDIR;
	fd_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, ENOTDIR);
	assert_true(is_closed(number));
	fd_close(&fd);
	fd_cleanup(&fd);
	assert_int_equal(fd, -1);
}

static void test_cleanup_closes_at_the_end_of_a_scope(void **state)
{
	int number;
	{
		ATTR_CLEANUP(fd_cleanup) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		number = fd;
		assert_false(is_closed(number));
	}
	assert_true(is_closed(number));
}

static void test_pipe_is_cloexec_and_blocking(void **state)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	for (int i = 0; i < 2; i++) {
		assert_true(is_cloexec(fds[i]));
		assert_false(is_nonblock(fds[i]));
	}
	char byte = 'x';
	assert_int_equal(write(fds[1], &byte, 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

static void test_nonblock_goes_on_and_off(void **state)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	assert_true(fd_set_nonblock(fds[0], true, &err));
	assert_true(is_nonblock(fds[0]));
	assert_false(is_nonblock(fds[1]));
	assert_true(fd_set_nonblock(fds[0], true, &err));
	assert_true(fd_set_nonblock(fds[0], false, &err));
	assert_false(is_nonblock(fds[0]));
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	assert_false(fd_set_nonblock(-1, true, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_non_null(strstr(err.text, "descriptor -1: Bad file descriptor"));
}

/* The exit status of a function that runs in a child. */
static int status_of(int (*function)(void))
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		_exit(function());
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static int fill_standard(void)
{
	struct stat before;
	struct stat after;
	close(STDIN_FILENO);
	close(STDERR_FILENO);
	if (fstat(STDOUT_FILENO, &before) != 0 || !fd_fill_standard(NULL)) {
		return 1;
	}
	if (!is_dev_null(STDIN_FILENO) || !is_dev_null(STDERR_FILENO)) {
		return 2;
	}
	fstat(STDOUT_FILENO, &after);
	return before.st_ino == after.st_ino && before.st_dev == after.st_dev ? 0 : 3;
}

static void test_closed_standard_descriptors_are_filled(void **state)
{
	assert_int_equal(status_of(fill_standard), 0);
}

static int pipe_and_fail(void)
{
	struct error err;
	int fds[2] = {-7, -7};
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &limit);
	bool ok = fd_pipe(fds, &err);
	return !ok && err.code == ERROR_SYSTEM && fds[0] == -7 && fds[1] == -7 &&
	                       strcmp(err.text, "making a pipe: Too many open files") == 0
	               ? 0
	               : 1;
}

static void test_pipe_without_a_free_descriptor_is_an_error(void **state)
{
	assert_int_equal(status_of(pipe_and_fail), 0);
}

struct drain {
	int fd;
	size_t count; // bytes read, all of the expected value
	bool is_right;
};

/* Reads to the end, checking the bytes 0, 1, … 250, 0, … */
static void *drain(void *data)
{
	struct drain *drain = data;
	static unsigned char bytes[4096];
	ssize_t count;
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL); // all signals are for the writer
	drain->is_right = true;
	while ((count = read(drain->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < count; i++) {
			drain->is_right &= bytes[i] == drain->count++ % 251;
		}
		usleep(20); // lets the writer meet a full pipe
	}
	return NULL;
}

/* Writes a megabyte into the pipe, which a thread reads; returns what the thread saw. */
static struct drain write_much(int fds[2])
{
	enum { MUCH = 1 << 20 };
	char *bytes = mem_alloc(MUCH);
	for (size_t i = 0; i < MUCH; i++) {
		bytes[i] = (char)(i % 251);
	}
	struct drain seen = {.fd = fds[0]};
	struct error err = {0};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, drain, &seen), 0);
	bool ok = fd_write_all(fds[1], (struct span){bytes, MUCH}, &err);
	fd_close(&fds[1]);
	pthread_join(thread, NULL);
	fd_close(&fds[0]);
	free(bytes);
	assert_true(ok);
	assert_int_equal(seen.count, MUCH);
	return seen;
}

static void test_write_all_writes_more_than_the_pipe_holds(void **state)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	assert_true(write_much(fds).is_right);
}

static void test_write_all_waits_where_another_made_it_nonblocking(void **state)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	assert_true(fd_set_nonblock(fds[1], true, &err));
	assert_true(write_much(fds).is_right);
}

static volatile sig_atomic_t ticks;

static void on_tick(int signal)
{
	ticks++;
}

static void test_write_all_goes_on_after_signals(void **state)
{
	struct sigaction tick = {.sa_handler = on_tick}; // without SA_RESTART
	struct itimerspec often = {{.tv_nsec = 2000000}, {.tv_nsec = 2000000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	assert_int_equal(sigaction(SIGUSR1, &tick, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	struct drain seen = write_much(fds);
	timer_delete(timer);
	assert_true(seen.is_right);
	assert_true(ticks > 0);
}

static void test_write_all_says_why_it_failed(void **state)
{
	int fds[2];
	struct error err = {0};
	signal(SIGPIPE, SIG_IGN);
	assert_true(fd_pipe(fds, &err));
	fd_close(&fds[0]);
	assert_true(fd_write_all(fds[1], (struct span){NULL, 0}, &err));
	assert_false(fd_write_all(fds[1], SPAN_LITERAL("abc"), &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(err.text, "writing 3 bytes: Broken pipe");
	fd_close(&fds[1]);
}

static void test_clock_only_goes_forward(void **state)
{
	long long before = clock_now_ms();
	assert_true(before > 0);
	usleep(3000);
	long long after = clock_now_ms();
	assert_true(after >= before + 3);
}

int main(void)
{
	alarm(100); // what blocks ends here
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_close_forgets_the_number_and_keeps_errno),
		cmocka_unit_test(test_cleanup_closes_at_the_end_of_a_scope),
		cmocka_unit_test(test_pipe_is_cloexec_and_blocking),
		cmocka_unit_test(test_nonblock_goes_on_and_off),
		cmocka_unit_test(test_closed_standard_descriptors_are_filled),
		cmocka_unit_test(test_pipe_without_a_free_descriptor_is_an_error),
		cmocka_unit_test(test_write_all_writes_more_than_the_pipe_holds),
		cmocka_unit_test(test_write_all_waits_where_another_made_it_nonblocking),
		cmocka_unit_test(test_write_all_goes_on_after_signals),
		cmocka_unit_test(test_write_all_says_why_it_failed),
		cmocka_unit_test(test_clock_only_goes_forward),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
