/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/libc.h"

static bool is_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	assert_true(flags >= 0);
	return flags & O_NONBLOCK;
}

/*
 * Two descriptors of one open file; the broker inherits one, and others have the other; and
 * the peer's end.
 */
struct shared {
	int fd;    // taken over by the broker
	int other; // another process's copy
	int peer;  // the other end; -1 where there is none
	struct fd_inherited inherited;
};

static void take_over(struct shared *shared, int flags)
{
	struct error err;
	shared->other = fcntl(shared->fd, F_DUPFD_CLOEXEC, 0);
	assert_true(shared->other >= 0);
	assert_true(fd_inherited_init(&shared->inherited, shared->fd, flags, &err));
	int used = shared->inherited.fd;
	assert_true(used != shared->fd);
	assert_true(fcntl(used, F_GETFD) & FD_CLOEXEC);

	/* The number stays taken, by a descriptor that neither gives nor takes anything. */
	struct stat status;
	struct stat null;
	assert_int_equal(stat("/dev/null", &null) | fstat(shared->fd, &status), 0);
	assert_int_equal(status.st_rdev, null.st_rdev);
}

static void give_up(struct shared *shared)
{
	fd_inherited_finish(&shared->inherited);
	assert_int_equal(shared->inherited.fd, -1);
	fd_inherited_finish(&shared->inherited);
	assert_false(is_nonblock(shared->other));
	fd_close(&shared->fd);
	fd_close(&shared->other);
	fd_close(&shared->peer);
}

/* Whether poll reports bytes or the end within ten seconds. */
static bool becomes_readable(int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	return poll(&readable, 1, 10000) == 1;
}

static void assert_reads(int fd, const char *text)
{
	char bytes[64];
	assert_true(becomes_readable(fd));
	ssize_t count = read(fd, bytes, sizeof(bytes));
	assert_true(count >= 0);
	assert_true(span_is((struct span){bytes, (size_t)count}, text));
}

static void assert_has_nothing_to_read(int fd)
{
	char byte;
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

static void send_text(int fd, const char *text)
{
	struct error err;
	assert_true(fd_write_all(fd, span_of(text), &err));
}

/* Writes until the next write would have to wait for the reader. */
static void assert_fills_up(int fd)
{
	static const char block[4096];
	for (int i = 0; i < 10000; i++) {
		if (write(fd, block, sizeof(block)) < 0) {
			assert_int_equal(errno, EAGAIN);
			return;
		}
	}
	fail_msg("never full");
}

static struct shared pipe_to_read(void)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	return (struct shared){.fd = fds[0], .peer = fds[1]};
}

static struct shared pipe_to_write(void)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	return (struct shared){.fd = fds[1], .peer = fds[0]};
}

static struct shared socket_pair(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	return (struct shared){.fd = fds[0], .peer = fds[1]};
}

/* A raw terminal; the peer is the side of the terminal's window. */
static struct shared terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(master >= 0);
	assert_int_equal(grantpt(master) | unlockpt(master), 0);
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	struct termios settings;
	assert_int_equal(tcgetattr(slave, &settings), 0);
	cfmakeraw(&settings);
	assert_int_equal(tcsetattr(slave, TCSANOW, &settings), 0);
	return (struct shared){.fd = slave, .peer = master};
}

/*
 * The same for everything that can be read: bytes, nothing, more bytes; the other descriptors still
 * block.
 */
static void check_reading(struct shared *shared, bool is_shared)
{
	take_over(shared, O_RDONLY);
	assert_int_equal(shared->inherited.must_clear, is_shared);
	assert_true(is_nonblock(shared->inherited.fd));
	assert_int_equal(is_nonblock(shared->other), is_shared);
	assert_has_nothing_to_read(shared->inherited.fd);
	send_text(shared->peer, "one");
	assert_reads(shared->inherited.fd, "one");
	assert_has_nothing_to_read(shared->inherited.fd);
	send_text(shared->peer, "two");
	assert_reads(shared->inherited.fd, "two");
}

static void check_writing(struct shared *shared, bool is_shared)
{
	take_over(shared, O_WRONLY);
	assert_int_equal(shared->inherited.must_clear, is_shared);
	assert_true(is_nonblock(shared->inherited.fd));
	assert_int_equal(is_nonblock(shared->other), is_shared);
	send_text(shared->inherited.fd, "out");
	assert_reads(shared->peer, "out");
	assert_fills_up(shared->inherited.fd);
}

static void test_pipe_is_read_without_changing_what_others_share(void **state)
{
	struct shared shared = pipe_to_read();
	check_reading(&shared, false);
	give_up(&shared);
}

static void test_pipe_is_written_without_changing_what_others_share(void **state)
{
	struct shared shared = pipe_to_write();
	check_writing(&shared, false);
	give_up(&shared);
}

static void test_end_of_a_pipe_is_seen(void **state)
{
	struct shared shared = pipe_to_read();
	take_over(&shared, O_RDONLY);
	send_text(shared.peer, "last");
	fd_close(&shared.peer);
	assert_reads(shared.inherited.fd, "last");
	assert_reads(shared.inherited.fd, "");
	give_up(&shared);
}

static void test_end_of_a_pipe_is_seen_where_the_writer_had_gone_before(void **state)
{
	struct shared shared = pipe_to_read();
	send_text(shared.peer, "all");
	fd_close(&shared.peer);
	take_over(&shared, O_RDONLY);
	assert_reads(shared.inherited.fd, "all");
	assert_reads(shared.inherited.fd, "");
	give_up(&shared);

	shared = pipe_to_read();
	fd_close(&shared.peer);
	take_over(&shared, O_RDONLY);
	assert_reads(shared.inherited.fd, "");
	give_up(&shared);
}

static void test_pipe_whose_reader_has_gone_is_broken(void **state)
{
	struct shared shared = pipe_to_write();
	fd_close(&shared.peer);
	take_over(&shared, O_WRONLY);
	assert_int_equal(write(shared.inherited.fd, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	give_up(&shared);
}

/* If somebody opens the pipe too late, the kernel's poll does not report this end. */
static void test_end_of_a_named_pipe_is_seen_where_the_writer_had_gone_before(void **state)
{
	char folder[] = "/tmp/test-fd-XXXXXX";
	assert_non_null(mkdtemp(folder));
	char path[64];
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	struct error err;
	struct shared shared = {.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
	assert_true(shared.fd >= 0);
	assert_true(fd_set_nonblock(shared.fd, false, &err));
	shared.peer = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(shared.peer >= 0);
	unlink(path);
	rmdir(folder);
	send_text(shared.peer, "all");
	fd_close(&shared.peer);
	take_over(&shared, O_RDONLY);
	assert_true(shared.inherited.must_clear);
	assert_reads(shared.inherited.fd, "all");
	assert_reads(shared.inherited.fd, "");
	give_up(&shared);
}

static void test_socket_is_nonblocking_until_it_is_given_up(void **state)
{
	struct shared shared = socket_pair();
	check_reading(&shared, true);
	assert_false(is_nonblock(shared.peer));
	fd_close(&shared.peer);
	assert_reads(shared.inherited.fd, "");
	give_up(&shared);

	shared = socket_pair();
	check_writing(&shared, true);
	give_up(&shared);
}

static void test_socket_that_was_nonblocking_before_stays_so(void **state)
{
	struct error err;
	struct shared shared = socket_pair();
	assert_true(fd_set_nonblock(shared.fd, true, &err));
	take_over(&shared, O_RDONLY);
	assert_false(shared.inherited.must_clear);
	fd_inherited_finish(&shared.inherited);
	assert_true(is_nonblock(shared.other));
	assert_true(fd_set_nonblock(shared.other, false, &err));
	give_up(&shared);
}

static void test_terminal_is_used_without_changing_what_others_share(void **state)
{
	struct shared shared = terminal();
	check_reading(&shared, false);
	assert_true(isatty(shared.inherited.fd));
	give_up(&shared);

	shared = terminal();
	check_writing(&shared, false);
	give_up(&shared);
}

static void test_controlling_side_of_a_terminal_is_not_opened_anew(void **state)
{
	struct shared shared = terminal();
	int slave = shared.fd;
	shared.fd = shared.peer;
	shared.peer = slave;
	check_reading(&shared, true);
	give_up(&shared);
}

static void test_regular_file_goes_on_at_its_offset(void **state)
{
	char path[] = "/tmp/test-fd-XXXXXX";
	struct shared shared = {.fd = mkostemp(path, O_CLOEXEC), .peer = -1};
	assert_true(shared.fd >= 0);
	unlink(path);
	send_text(shared.fd, "abcdef");
	assert_int_equal(lseek(shared.fd, 2, SEEK_SET), 2);
	take_over(&shared, O_RDONLY);
	assert_false(is_nonblock(shared.other));
	assert_reads(shared.inherited.fd, "cdef");
	assert_reads(shared.inherited.fd, "");
	assert_int_equal(lseek(shared.other, 0, SEEK_CUR), 6);
	give_up(&shared);
}

static void test_dev_null_is_at_its_end(void **state)
{
	struct shared shared = {.fd = open("/dev/null", O_RDWR | O_CLOEXEC), .peer = -1};
	assert_true(shared.fd >= 0);
	take_over(&shared, O_RDONLY);
	assert_reads(shared.inherited.fd, "");
	give_up(&shared);
}

static void test_closed_or_wrong_descriptor_is_an_error(void **state)
{
	struct error err = {0};
	struct fd_inherited inherited = {.fd = -7};
	assert_false(fd_inherited_init(&inherited, 999, O_RDONLY, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(err.text, "taking over descriptor 999: Bad file descriptor");

	struct shared shared = pipe_to_write();
	assert_false(fd_inherited_init(&inherited, shared.fd, O_RDONLY, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_non_null(strstr(err.text, "cannot be read"));
	assert_false(fd_inherited_init(&inherited, shared.peer, O_WRONLY, &err));
	assert_non_null(strstr(err.text, "cannot be written"));
	assert_int_equal(inherited.fd, -7);
	fd_close(&shared.fd);
	fd_close(&shared.peer);
}

/* In a child with `room` free descriptors: either nothing changes, or everything works. */
static int take_over_with_room(unsigned int room)
{
	int fds[2];
	struct fd_inherited inherited = {.fd = -7};
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
		return 1;
	}
	libc_close_range((unsigned int)fds[1] + 1, ~0U, 0);
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)fds[1] + 1 + room;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (fd_inherited_init(&inherited, fds[0], O_RDONLY, NULL)) {
		return room == 2 && inherited.fd >= 0 ? 0 : 2;
	}
	bool is_same = write(fds[1], "x", 1) == 1 && read(fds[0], &(char){0}, 1) == 1;
	return room < 2 && is_same && inherited.fd == -7 && !is_nonblock(fds[0]) ? 0 : 3;
}

static void test_nothing_has_changed_without_free_descriptors(void **state)
{
	for (unsigned int room = 0; room <= 2; room++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			_exit(take_over_with_room(room));
		}
		int status = -1;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	alarm(100); // what blocks ends here
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipe_is_read_without_changing_what_others_share),
		cmocka_unit_test(test_pipe_is_written_without_changing_what_others_share),
		cmocka_unit_test(test_end_of_a_pipe_is_seen),
		cmocka_unit_test(test_end_of_a_pipe_is_seen_where_the_writer_had_gone_before),
		cmocka_unit_test(test_pipe_whose_reader_has_gone_is_broken),
		cmocka_unit_test(test_end_of_a_named_pipe_is_seen_where_the_writer_had_gone_before),
		cmocka_unit_test(test_socket_is_nonblocking_until_it_is_given_up),
		cmocka_unit_test(test_socket_that_was_nonblocking_before_stays_so),
		cmocka_unit_test(test_terminal_is_used_without_changing_what_others_share),
		cmocka_unit_test(test_controlling_side_of_a_terminal_is_not_opened_anew),
		cmocka_unit_test(test_regular_file_goes_on_at_its_offset),
		cmocka_unit_test(test_dev_null_is_at_its_end),
		cmocka_unit_test(test_closed_or_wrong_descriptor_is_an_error),
		cmocka_unit_test(test_nothing_has_changed_without_free_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
