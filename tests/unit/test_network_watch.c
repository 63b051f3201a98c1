/* SPDX-License-Identifier: MIT */
#include "base/network_watch.h"

#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

/* Each test is a child in a network namespace of its own, where nobody else changes anything. */

enum { NO_NAMESPACE = 77, DEADLINE_MS = 60000, FLAPS = 400 };

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static struct ev_loop *loop;
static struct network_watch watch;
static int changes, sleeps;

static void on_change(struct network_watch *of, bool has_slept)
{
	changes++;
	sleeps += has_slept;
}

static void run(void (*test)(void))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
			_exit(NO_NAMESPACE);
		}
		loop = ev_loop_new(EVFLAG_AUTO);
		network_watch_start(&watch, loop, on_change);
		test();
		network_watch_stop(&watch);
		network_watch_stop(&watch);
		ev_loop_destroy(loop);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE) {
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void set_loopback(bool is_up)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = is_up ? IFF_UP : 0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0);
	fd_close(&fd);
}

static void wait_changes(int count)
{
	long long until_ms = clock_now_ms() + DEADLINE_MS;
	while (changes < count && clock_now_ms() < until_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	CHECK(changes == count);
}

static void change_an_address(void)
{
	set_loopback(true);
	wait_changes(1);
	CHECK(sleeps == 0);
	set_loopback(false);
	wait_changes(2);
}

static void test_a_change_of_the_network_is_told(void **state)
{
	run(change_an_address);
}

/* More than the socket's buffer takes. */
static void change_much(void)
{
	for (int i = 0; i < FLAPS; i++) {
		set_loopback(i % 2 == 0);
	}
	long long begin_ms = clock_now_ms();
	wait_changes(1);
	set_loopback(true);
	wait_changes(2);
	CHECK(clock_now_ms() - begin_ms >= NETWORK_PAUSE_MS);
}

static void test_many_changes_are_few_events(void **state)
{
	run(change_much);
}

static void say_nothing(void)
{
	ev_run(loop, EVRUN_NOWAIT);
	CHECK(changes == 0 && !ev_is_active(&watch.settle));
	ev_feed_event(loop, &watch.clock, EV_READ); // somebody has set the clock
	ev_run(loop, EVRUN_NOWAIT);
	CHECK(changes == 0 && !ev_is_active(&watch.settle));
}

static void test_without_a_change_nothing_is_told(void **state)
{
	run(say_nothing);
}

/* As if the suspend that the kernel counts had happened after the start. */
static void wake_up(void)
{
	CHECK(watch.clock.fd >= 0);
	watch.suspended_ms -= NETWORK_SLEPT_MS;
	ev_feed_event(loop, &watch.clock, EV_READ);
	wait_changes(1);
	CHECK(sleeps == 1);
}

static void test_waking_up_is_told(void **state)
{
	run(wake_up);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_change_of_the_network_is_told),
		cmocka_unit_test(test_many_changes_are_few_events),
		cmocka_unit_test(test_without_a_change_nothing_is_told),
		cmocka_unit_test(test_waking_up_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
