/* SPDX-License-Identifier: MIT */
#include "base/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/launch.h"
#include "base/libc.h"

/*
 * A guard in a cell, whose process waits for its limits. The test is the broker, and answers as it
 * wants: no cgroup is needed.
 */
enum { DEADLINE_MS = 60000 };

struct fixture {
	pid_t guard;
	int control;
	pid_t child; // known once it has asked
};

/* In the clock's place: in a hurry, it goes on by an hour each time that somebody looks. */
static bool is_in_a_hurry;
long long __real_clock_now_ms(void);
long long __wrap_clock_now_ms(void);

long long __wrap_clock_now_ms(void)
{
	static long long added_ms;
	added_ms += is_in_a_hurry ? 3600000 : 0;
	return __real_clock_now_ms() + added_ms;
}

static int start_guard(void **state)
{
	static struct fixture fixture;
	static const char *const argv[] = {"sleep", "600", NULL};
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	const struct process_spec spec = {
		.argv = argv, .env = env, .cwd = "/", .in = -1, .out = -1, .err = -1};
	struct guard_request request;
	struct error err;
	int sockets[2];
	const int on = 1;
	sigset_t all;
	memset(&request, 0, sizeof(request));
	request.joins = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 ||
		setsockopt(sockets[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
		return -1;
	}
	int launch = launch_pack(&spec, &err);
	pid_t own = getpid();
	fixture = (struct fixture){.control = sockets[0], .guard = fork()};
	if (fixture.guard == 0) {
		const int fds[GUARD_FDS_MAX] = {sockets[1], launch, -1, -1, -1, -1, -1};
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		fd_close(&sockets[0]);
		guard_run(&request, fds, own);
	}
	fd_close(&sockets[1]);
	fd_close(&launch);
	*state = &fixture;
	return fixture.guard > 0 && launch == -1 ? 0 : -1;
}

static int start_guard_in_a_hurry(void **state)
{
	is_in_a_hurry = true;
	int result = start_guard(state);
	is_in_a_hurry = false;
	return result;
}

static int end_guard(void **state)
{
	struct fixture *fixture = *state;
	fd_close(&fixture->control);
	if (fixture->child > 0) {
		kill(fixture->child, SIGCONT);
	}
	return waitpid(fixture->guard, NULL, 0) == fixture->guard ? 0 : -1;
}

static struct guard_report receive(struct fixture *fixture)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct guard_report report = {.event = GUARD_FROZEN};
	struct iovec part = {.iov_base = &report, .iov_len = sizeof(report)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct pollfd told = {.fd = fixture->control, .events = POLLIN};
	assert_int_equal(poll(&told, 1, DEADLINE_MS), 1);
	assert_true(recvmsg(fixture->control, &message, MSG_CMSG_CLOEXEC) > 0);
	const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	if (report.event == GUARD_JOIN) {
		struct ucred sender;
		assert_non_null(head);
		memcpy(&sender, CMSG_DATA(head), sizeof(sender));
		fixture->child = sender.pid;
	}
	return report;
}

static void order(const struct fixture *fixture, enum guard_command command, int signal)
{
	struct guard_order sent;
	memset(&sent, 0, sizeof(sent));
	sent.command = command;
	sent.signal = signal;
	assert_int_equal(send(fixture->control, &sent, sizeof(sent), MSG_NOSIGNAL), sizeof(sent));
}

/* Anybody in the cell can do that, also before the process asks. */
static void stop_process(struct fixture *fixture)
{
	assert_int_equal(receive(fixture).event, GUARD_JOIN);
	assert_int_equal(kill(fixture->child, SIGSTOP), 0);
}

static void assert_was_killed(struct fixture *fixture)
{
	assert_int_equal(receive(fixture).event, GUARD_STARTED);
	struct guard_report exited = receive(fixture);
	assert_int_equal(exited.event, GUARD_EXITED);
	assert_int_equal(exited.signal, SIGKILL);
	assert_int_equal(receive(fixture).event, GUARD_EMPTIED);
}

static void test_a_stopped_process_that_never_joins_is_killed_as_a_tree(void **state)
{
	struct fixture *fixture = *state;
	stop_process(fixture);
	order(fixture, GUARD_KILL_TREE, 0);
	assert_was_killed(fixture);
}

static void test_a_stopped_process_that_never_joins_is_killed_by_a_signal(void **state)
{
	struct fixture *fixture = *state;
	stop_process(fixture);
	order(fixture, GUARD_SIGNAL, SIGTERM); // kept
	order(fixture, GUARD_SIGNAL, SIGKILL);
	assert_was_killed(fixture);
}

/* They are kept until it is started, and no more than fit. */
static void test_a_start_with_too_many_orders_fails(void **state)
{
	struct fixture *fixture = *state;
	stop_process(fixture);
	for (int i = 0; i < 17; i++) {
		order(fixture, GUARD_SIGNAL, SIGUSR1);
	}
	struct guard_report failed = receive(fixture);
	assert_int_equal(failed.event, GUARD_FAILED);
	assert_non_null(strstr(failed.text, "starting \"sleep\": joining its limits"));
}

static void test_a_process_that_does_not_join_in_time_is_killed(void **state)
{
	struct fixture *fixture = *state;
	struct guard_report report = receive(fixture);
	while (report.event == GUARD_JOIN) { // it may have asked before
		report = receive(fixture);
	}
	assert_int_equal(report.event, GUARD_FAILED);
	assert_non_null(strstr(report.text, libc_error_text(ETIMEDOUT)));
}

static void test_orders_from_before_the_join_are_obeyed_after_it(void **state)
{
	struct fixture *fixture = *state;
	const char *preload = getenv("LD_PRELOAD");
	if (preload && strstr(preload, "vgpreload")) {
		skip(); // valgrind drops the signals that are pending when a program is executed
	}
	assert_int_equal(receive(fixture).event, GUARD_JOIN);
	order(fixture, GUARD_SIGNAL, SIGTERM);
	order(fixture, GUARD_JOINED, 0);
	assert_int_equal(receive(fixture).event, GUARD_STARTED);
	struct guard_report exited = receive(fixture);
	assert_int_equal(exited.event, GUARD_EXITED);
	assert_int_equal(exited.signal, SIGTERM);
	assert_int_equal(receive(fixture).event, GUARD_EMPTIED);
}

#define WITH_GUARD(test) cmocka_unit_test_setup_teardown(test, start_guard, end_guard)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUARD(test_a_stopped_process_that_never_joins_is_killed_as_a_tree),
		WITH_GUARD(test_a_stopped_process_that_never_joins_is_killed_by_a_signal),
		WITH_GUARD(test_a_start_with_too_many_orders_fails),
		cmocka_unit_test_setup_teardown(test_a_process_that_does_not_join_in_time_is_killed,
			start_guard_in_a_hurry, end_guard),
		WITH_GUARD(test_orders_from_before_the_join_are_obeyed_after_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
