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

#include "base/attr.h"
#include "base/fd.h"
#include "base/sleep_watch.h"

/*
 * The bus is a socket of this test that is no bus. tests/integration/test_ssh_sleep.py has a real
 * one.
 */
enum { TURNS_MAX = 10000 };

static struct {
	char folder[64];
	char address[128];
	struct ev_loop *loop;
	struct sleep_watch watch;
	int listener, bus;
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

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		SCENE(test_without_a_bus_nothing_happens),
		SCENE(test_a_second_address_is_not_tried),
		SCENE(test_a_bus_that_closes_the_connection_is_left),
		SCENE(test_a_bus_that_says_something_else_is_left),
		SCENE(test_a_watch_can_be_stopped_before_the_bus_has_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
