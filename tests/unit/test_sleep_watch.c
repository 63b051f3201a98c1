/* SPDX-License-Identifier: MIT */
#include <ev.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/sleep_watch.h"

/*
 * The bus is a socket of this test. tests/integration/test_ssh_sleep.py has a real one.
 */
enum { TURNS = 20, BYTES_MAX = 4096 };

static struct {
	char folder[64];
	char address[128];
	struct ev_loop *loop;
	struct sleep_watch watch;
	int listener, bus;
	int begun, ended;
} scene;

static void on_sleep(struct sleep_watch *watch, bool begins)
{
	scene.begun += begins;
	scene.ended += !begins;
}

static void turn(void)
{
	for (int i = 0; i < TURNS; i++) {
		ev_run(scene.loop, EVRUN_NOWAIT);
	}
}

static void start(void)
{
	sleep_watch_start(&scene.watch, scene.loop, scene.address, on_sleep);
	scene.bus = accept4(scene.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(scene.bus >= 0);
}

static void say(const void *bytes, size_t size)
{
	assert_int_equal(send(scene.bus, bytes, size, MSG_NOSIGNAL), size);
	turn();
}

static void greet(void)
{
	static const char accepts[] = "OK 0123456789abcdef\r\nAGREE_UNIX_FD\r\n";
	say(accepts, sizeof(accepts) - 1);
}

static void expect_over(void)
{
	char bytes[BYTES_MAX];
	while (recv(scene.bus, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
	}
	assert_int_equal(scene.watch.io.fd, -1);
	assert_int_equal(recv(scene.bus, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
}

/* ---- messages ---- */

struct message {
	char bytes[BYTES_MAX];
	size_t len;
};

static void put(struct message *message, const void *bytes, size_t size)
{
	memcpy(message->bytes + message->len, bytes, size);
	message->len += size;
}

static void align(struct message *message, size_t size)
{
	while (message->len % size != 0) {
		put(message, "", 1);
	}
}

static void put_u32(struct message *message, uint32_t number)
{
	align(message, 4);
	put(message, &number, 4);
}

static void put_field(struct message *message, char field, char type, const char *text)
{
	const char begin[] = {field, 1, type, '\0'};
	align(message, 8);
	put(message, begin, sizeof(begin));
	if (type == 'g') {
		const char len = (char)strlen(text);
		put(message, &len, 1);
	} else {
		put_u32(message, (uint32_t)strlen(text));
	}
	put(message, text, strlen(text) + 1);
}

static char order(void)
{
	const uint16_t one = 1;
	char first;
	memcpy(&first, &one, 1);
	return first ? 'l' : 'B';
}

static struct message signal_of(
	char type, const char *interface, const char *member, const char *signature, uint32_t value)
{
	struct message message = {.len = 0};
	const char begin[] = {order(), type, 0, 1};
	put(&message, begin, sizeof(begin));
	put_u32(&message, 4); // the body
	put_u32(&message, 77);
	put_u32(&message, 0);
	put_field(&message, 1, 'o', "/org/freedesktop/login1");
	put_field(&message, 7, 's', ":1.3");
	put_field(&message, 2, 's', interface);
	put_field(&message, 3, 's', member);
	put_field(&message, 8, 'g', signature);
	uint32_t size = (uint32_t)message.len - 16;
	memcpy(message.bytes + 12, &size, 4);
	align(&message, 8);
	put_u32(&message, value);
	return message;
}

static struct message sleep_of(uint32_t value)
{
	return signal_of(4, "org.freedesktop.login1.Manager", "PrepareForSleep", "b", value);
}

static void say_message(const struct message *message)
{
	say(message->bytes, message->len);
}

/* ---- scenes ---- */

static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memset(&scene, 0, sizeof(scene));
	snprintf(scene.folder, sizeof(scene.folder), "/tmp/sleep-watch-XXXXXX");
	assert_non_null(mkdtemp(scene.folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/bus", scene.folder);
	snprintf(scene.address, sizeof(scene.address), "unix:path=%s/bus", scene.folder);
	scene.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(scene.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(scene.listener, 1), 0);
	scene.loop = ev_loop_new(EVFLAG_AUTO);
	scene.bus = -1;
	return 0;
}

static int tear_down(void **state)
{
	char line[128];
	sleep_watch_stop(&scene.watch);
	fd_close(&scene.bus);
	fd_close(&scene.listener);
	ev_loop_destroy(scene.loop);
	snprintf(line, sizeof(line), "rm -r %s", scene.folder);
	return system(line); // NOLINT(cert-env33-c)
}

static void test_without_a_bus_nothing_happens(void **state)
{
	static const char *const buses[] = {"unix:path=/nonexistent/bus", "unix:abstract=bus",
		"unix:path=/a;unix:path=/b", "tcp:host=localhost", "unix:path="};
	for (size_t i = 0; i < sizeof(buses) / sizeof(buses[0]); i++) {
		sleep_watch_start(&scene.watch, scene.loop, buses[i], on_sleep);
		assert_int_equal(scene.watch.io.fd, -1);
		turn();
		sleep_watch_stop(&scene.watch);
	}
}

static void test_a_suspend_and_its_end_are_told_once(void **state)
{
	struct message begins = sleep_of(1);
	struct message ends = sleep_of(0);
	start();
	greet();
	say_message(&ends);
	assert_int_equal(scene.ended, 0);
	say_message(&begins);
	say_message(&begins);
	assert_int_equal(scene.begun, 1);
	say_message(&ends);
	say_message(&begins);
	assert_int_equal(scene.begun, 2);
	assert_int_equal(scene.ended, 1);
}

static void test_messages_come_in_any_pieces(void **state)
{
	struct message begins = sleep_of(1);
	struct message ends = sleep_of(0);
	struct message both = begins;
	align(&both, 1);
	put(&both, ends.bytes, ends.len);
	start();
	greet();
	for (size_t i = 0; i < begins.len; i++) {
		assert_int_equal(scene.begun, 0);
		say(begins.bytes + i, 1);
	}
	assert_int_equal(scene.begun, 1);
	say_message(&ends);
	say_message(&both);
	assert_int_equal(scene.begun, 2);
	assert_int_equal(scene.ended, 2);
}

static void test_other_messages_mean_nothing(void **state)
{
	static const char manager[] = "org.freedesktop.login1.Manager";
	const struct message others[] = {
		signal_of(4, "org.freedesktop.login1.Other", "PrepareForSleep", "b", 1),
		signal_of(4, manager, "PrepareForShutdown", "b", 1),
		signal_of(4, manager, "PrepareForSleep", "s", 1),
		signal_of(2, manager, "PrepareForSleep", "b", 1),
		signal_of(3, manager, "PrepareForSleep", "b", 1),
	};
	start();
	greet();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		say_message(&others[i]);
	}
	assert_int_equal(scene.begun, 0);
	struct message begins = sleep_of(1);
	say_message(&begins);
	assert_int_equal(scene.begun, 1);
}

static void test_a_bus_that_refuses_us_is_left(void **state)
{
	start();
	say("REJECTED EXTERNAL\r\n", 19);
	expect_over();
}

static void test_damaged_messages_do_no_harm(void **state)
{
	const struct message good = sleep_of(1);
	for (size_t at = 0; at < good.len; at++) {
		struct message bad = good;
		bad.bytes[at] = (char)0xff;
		start();
		greet();
		say_message(&bad);
		sleep_watch_stop(&scene.watch);
		fd_close(&scene.bus);
	}
}

static void test_a_message_that_is_too_long_ends_the_watch(void **state)
{
	struct message begins = sleep_of(1);
	const uint32_t size = SLEEP_MESSAGE_MAX + 1;
	memcpy(begins.bytes + 4, &size, sizeof(size));
	start();
	greet();
	say_message(&begins);
	expect_over();
}

static void stop(struct sleep_watch *watch, bool begins)
{
	scene.begun++;
	sleep_watch_stop(watch);
}

static void test_the_handler_may_stop_the_watch(void **state)
{
	struct message begins = sleep_of(1);
	start();
	scene.watch.on_sleep = stop;
	greet();
	say_message(&begins);
	assert_int_equal(scene.begun, 1);
	expect_over();
}

/* It comes with the answer to Inhibit. */
static void test_the_lock_is_released_after_a_moment(void **state)
{
	int ends[2];
	char byte = 0;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control = {.bytes = {0}};
	struct message answer = signal_of(2, "a.b", "c", "h", 0);
	struct message begins = sleep_of(1);
	struct iovec piece = {.iov_base = answer.bytes, .iov_len = answer.len};
	struct msghdr message = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	start();
	greet();
	assert_int_equal(pipe(ends), 0);
	*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(header), &ends[1], sizeof(int));
	assert_int_equal(sendmsg(scene.bus, &message, MSG_NOSIGNAL), answer.len);
	turn();
	fd_close(&ends[1]);
	assert_true(scene.watch.lock >= 0);
	say_message(&begins);
	assert_true(scene.watch.lock >= 0);
	while (scene.watch.lock >= 0) {
		ev_run(scene.loop, EVRUN_ONCE);
	}
	assert_int_equal(read(ends[0], &byte, 1), 0);
	fd_close(&ends[0]);
}

#define SLEEP_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLEEP_TEST(test_without_a_bus_nothing_happens),
		SLEEP_TEST(test_a_suspend_and_its_end_are_told_once),
		SLEEP_TEST(test_messages_come_in_any_pieces),
		SLEEP_TEST(test_other_messages_mean_nothing),
		SLEEP_TEST(test_a_bus_that_refuses_us_is_left),
		SLEEP_TEST(test_damaged_messages_do_no_harm),
		SLEEP_TEST(test_a_message_that_is_too_long_ends_the_watch),
		SLEEP_TEST(test_the_handler_may_stop_the_watch),
		SLEEP_TEST(test_the_lock_is_released_after_a_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
