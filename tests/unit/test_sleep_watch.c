/* SPDX-License-Identifier: MIT */
#include <endian.h>
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

#include "base/attr.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/sleep_watch.h"

/*
 * The bus is a socket of this test, which at most says what is needed here.
 * tests/integration/test_ssh_sleep.py has a real bus.
 */
enum { TURNS_MAX = 10000, DEADLINE_MS = 60000, MESSAGE_MAX = 4096 };

static struct {
	char folder[64];
	char address[128];
	struct ev_loop *loop;
	struct sleep_watch watch;
	int listener, bus;
	struct buf input; // from the watch
	uint32_t serial;
	int begins, ends; // how often the handler was told so
	bool stops;       // the handler stops the watch at the end
} scene;

static void on_sleep(struct sleep_watch *watch, bool begins)
{
	fail_msg("nobody has said anything of a suspend");
}

static void start(void)
{
	sleep_watch_start(&scene.watch, scene.loop, scene.address, on_sleep);
	assert_non_null(scene.watch.bus);
	scene.bus = accept4(scene.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(scene.bus >= 0);
}

static void on_told(struct sleep_watch *watch, bool begins)
{
	*(begins ? &scene.begins : &scene.ends) += 1;
	if (!begins && scene.stops) {
		sleep_watch_stop(watch);
	}
}

static void expect_over(void)
{
	for (int i = 0; i < TURNS_MAX && scene.watch.bus; i++) {
		ev_run(scene.loop, EVRUN_ONCE);
	}
	assert_null(scene.watch.bus);
	assert_false(ev_is_active(&scene.watch.io));
	assert_false(ev_is_active(&scene.watch.timer));
	assert_false(ev_is_active(&scene.watch.delay));
}

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
	buf_init(&scene.input, 16 * MESSAGE_MAX);
	scene.bus = -1;
	return 0;
}

static int tear_down(void **state)
{
	char line[128];
	sleep_watch_stop(&scene.watch);
	fd_close(&scene.bus);
	fd_close(&scene.listener);
	buf_finish(&scene.input);
	ev_loop_destroy(scene.loop);
	snprintf(line, sizeof(line), "rm -r %s", scene.folder);
	return system(line); // NOLINT(cert-env33-c)
}

/* The address may come from anybody who starts the broker; no program of it is run. */
static void test_without_a_bus_nothing_happens(void **state)
{
	char runs[128];
	snprintf(runs, sizeof(runs), "unixexec:path=/usr/bin/touch,argv1=%s/made", scene.folder);
	const char *const addresses[] = {
		"unix:path=/nonexistent/bus", "tcp:host=localhost", "unix:", "unix:path=", runs};
	for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++) {
		sleep_watch_start(&scene.watch, scene.loop, addresses[i], on_sleep);
		expect_over();
		sleep_watch_stop(&scene.watch);
	}
	snprintf(runs, sizeof(runs), "%s/made", scene.folder);
	assert_int_equal(access(runs, F_OK), -1);
}

static void test_a_second_address_is_not_tried(void **state)
{
	char both[256];
	snprintf(both, sizeof(both), "unix:path=/nonexistent/bus;%s", scene.address);
	sleep_watch_start(&scene.watch, scene.loop, both, on_sleep);
	expect_over();
}

static void test_a_bus_that_closes_the_connection_is_left(void **state)
{
	start();
	fd_close(&scene.bus);
	expect_over();
}

static void test_a_bus_that_says_something_else_is_left(void **state)
{
	static const char *const answers[] = {
		"REJECTED EXTERNAL\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
		size_t len = strlen(answers[i]);
		start();
		assert_int_equal(send(scene.bus, answers[i], len, MSG_NOSIGNAL), len);
		shutdown(scene.bus, SHUT_WR);
		expect_over();
		sleep_watch_stop(&scene.watch);
		fd_close(&scene.bus);
	}
}

static void test_a_watch_can_be_stopped_before_the_bus_has_answered(void **state)
{
	char byte;
	start();
	sleep_watch_stop(&scene.watch);
	assert_null(scene.watch.bus);
	while (recv(scene.bus, &byte, 1, 0) > 0) {
	}
}

/* ---- a bus that answers (D-Bus Specification, "Message Protocol") ---- */

static void put(struct buf *buf, const void *bytes, size_t len)
{
	struct error err;
	assert_true(buf_append(buf, (struct span){bytes, len}, &err));
}

static void put_number(struct buf *buf, uint32_t number)
{
	uint32_t bytes = htole32(number);
	put(buf, &bytes, sizeof(bytes));
}

static void put_padding(struct buf *buf)
{
	while (buf->len % 8 != 0) {
		put(buf, "", 1);
	}
}

/* A text of type "g" has a shorter length. */
static void put_field(struct buf *buf, char number, char type, const char *text)
{
	const char head[] = {number, 1, type, 0};
	char len = (char)strlen(text);
	put_padding(buf);
	put(buf, head, sizeof(head));
	if (type == 'g') {
		put(buf, &len, 1);
	} else {
		put_number(buf, (uint32_t)strlen(text));
	}
	put(buf, text, strlen(text) + 1);
}

/* Sends a message with one value, whose type is `signature`, or with none. */
static void say(char kind, struct buf *fields, const char *signature, const struct buf *body)
{
	struct buf message;
	const char head[] = {'l', kind, 0, 1};
	buf_init(&message, MESSAGE_MAX);
	if (*signature) {
		put_field(fields, 8, 'g', signature);
	}
	put(&message, head, sizeof(head));
	put_number(&message, (uint32_t)body->len);
	put_number(&message, ++scene.serial);
	put_number(&message, (uint32_t)fields->len);
	put(&message, fields->data, fields->len);
	put_padding(&message);
	if (body->len > 0) {
		put(&message, body->data, body->len);
	}
	assert_int_equal(send(scene.bus, message.data, message.len, MSG_NOSIGNAL), message.len);
	buf_finish(&message);
}

/* The answer to a call; NULL: an empty one. */
static void answer(uint32_t call, const char *text)
{
	static const char head[] = {5, 1, 'u', 0};
	struct buf fields, body;
	buf_init(&fields, MESSAGE_MAX);
	buf_init(&body, MESSAGE_MAX);
	put(&fields, head, sizeof(head));
	put_number(&fields, call);
	put_field(&fields, 7, 's', "org.freedesktop.DBus");
	if (text) {
		put_number(&body, (uint32_t)strlen(text));
		put(&body, text, strlen(text) + 1);
	}
	say(2, &fields, text ? "s" : "", &body);
	buf_finish(&fields);
	buf_finish(&body);
}

static void announce_suspend(void)
{
	struct buf fields, body;
	buf_init(&fields, MESSAGE_MAX);
	buf_init(&body, MESSAGE_MAX);
	put_field(&fields, 1, 'o', "/org/freedesktop/login1");
	put_field(&fields, 2, 's', "org.freedesktop.login1.Manager");
	put_field(&fields, 3, 's', "PrepareForSleep");
	put_field(&fields, 7, 's', "org.freedesktop.login1");
	put_number(&body, 1);
	say(4, &fields, "b", &body);
	buf_finish(&fields);
	buf_finish(&body);
}

static uint32_t number_at(size_t offset)
{
	uint32_t number;
	memcpy(&number, buf_span(&scene.input).data + offset, sizeof(number));
	return le32toh(number);
}

/* How many bytes the login in the input has, with what ends it; 0: it is not whole. */
static size_t login_size(void)
{
	static const char end[] = "BEGIN\r\n";
	struct span input = buf_span(&scene.input);
	const char *found = input.len > 0 ? memmem(input.data, input.len, end, strlen(end)) : NULL;
	return found ? (size_t)(found - input.data) + strlen(end) : 0;
}

static size_t message_size(void)
{
	size_t size = 0;
	if (scene.input.len >= 16) {
		size = 16 + (number_at(12) + 7) / 8 * 8 + number_at(4);
	}
	return size <= scene.input.len ? size : 0;
}

/* Takes the login, or the next message; returns the number of the latter. */
static uint32_t hear(bool is_login)
{
	long long until_ms = clock_now_ms() + DEADLINE_MS;
	size_t size;
	while ((size = is_login ? login_size() : message_size()) == 0 &&
		clock_now_ms() < until_ms) {
		char bytes[MESSAGE_MAX];
		ev_run(scene.loop, EVRUN_NOWAIT);
		ssize_t len = recv(scene.bus, bytes, sizeof(bytes), MSG_DONTWAIT);
		put(&scene.input, bytes, len > 0 ? (size_t)len : 0);
	}
	assert_true(size > 0);
	uint32_t number = is_login ? 0 : number_at(8);
	buf_consume(&scene.input, size);
	return number;
}

/* The watch knows that a suspend begins. */
static void start_asleep(void)
{
	static const char login[] =
		"DATA\r\nOK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n";
	sleep_watch_start(&scene.watch, scene.loop, scene.address, on_told);
	scene.bus = accept4(scene.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(scene.bus >= 0);
	assert_int_equal(send(scene.bus, login, strlen(login), MSG_NOSIGNAL), strlen(login));
	(void)hear(true);
	answer(hear(false), ":1.1"); // Hello
	answer(hear(false), NULL);   // AddMatch
	announce_suspend();
	for (int i = 0; i < TURNS_MAX && scene.begins == 0; i++) {
		ev_run(scene.loop, EVRUN_ONCE);
	}
	assert_int_equal(scene.begins, 1);
	assert_int_equal(scene.ends, 0);
}

/* Otherwise nobody would hear that this machine runs again. */
static void test_a_suspend_is_over_when_the_bus_is_lost(void **state)
{
	start_asleep();
	fd_close(&scene.bus);
	expect_over();
	assert_int_equal(scene.ends, 1);
	sleep_watch_stop(&scene.watch);
	assert_int_equal(scene.begins, 1);
	assert_int_equal(scene.ends, 1);
}

static void test_the_handler_may_stop_the_watch_when_the_bus_is_lost(void **state)
{
	scene.stops = true;
	start_asleep();
	fd_close(&scene.bus);
	expect_over();
	assert_int_equal(scene.ends, 1);
}

static void test_stopping_during_a_suspend_says_nothing(void **state)
{
	start_asleep();
	sleep_watch_stop(&scene.watch);
	assert_int_equal(scene.ends, 0);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		SCENE(test_without_a_bus_nothing_happens),
		SCENE(test_a_second_address_is_not_tried),
		SCENE(test_a_bus_that_closes_the_connection_is_left),
		SCENE(test_a_bus_that_says_something_else_is_left),
		SCENE(test_a_watch_can_be_stopped_before_the_bus_has_answered),
		SCENE(test_a_suspend_is_over_when_the_bus_is_lost),
		SCENE(test_the_handler_may_stop_the_watch_when_the_bus_is_lost),
		SCENE(test_stopping_during_a_suspend_says_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
