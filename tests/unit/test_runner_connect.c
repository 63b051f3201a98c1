/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/tcp.h"
#include "providers/forward_ports.h"
#include "tests/unit/runner_fixture.h"

/* A program that listens on this machine, and a connection to it by a real runner. */

enum { WAIT_MS = 60000, WINDOW = 64 * 1024, SMALL = 64, LIMIT = 256, CONNECTIONS = LIMIT + 1 };

struct scene {
	struct test_runner runner;
	uint16_t port;
	int listeners[FORWARD_ADDRESSES];
	struct test_stream in, out; // as the runner's messages call them: to and from the program
	int program;                // its end of the connection; -1: none
};

static int set_up(void **state)
{
	struct error err;
	struct scene *scene = calloc(1, sizeof(*scene));
	scene->program = -1;
	assert_true(forward_port_listen(&scene->port, scene->listeners, &err));
	test_runner_start(&scene->runner, "");
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	if (scene->runner.mux) {
		test_stream_finish(&scene->in);
		test_stream_finish(&scene->out);
		test_runner_stop(&scene->runner);
	}
	fd_close(&scene->listeners[0]);
	fd_close(&scene->listeners[1]);
	fd_close(&scene->program);
	free(scene);
	return 0;
}

static void ask_for(struct scene *scene, uint64_t port, struct test_stream *in,
	struct test_stream *out, uint64_t window)
{
	struct runner_message message = {
		.kind = RUNNER_CONNECT, .id = ++scene->runner.last_id, .connect = {.port = port}};
	message.connect.in = test_stream_open(&scene->runner, in, MUX_OUT, MUX_BULK, window);
	message.connect.out = test_stream_open(&scene->runner, out, MUX_IN, MUX_BULK, window);
	test_runner_send(&scene->runner, &message);
}

/* Runs the link until the descriptor is readable, or at its end. */
static void await_readable(struct scene *scene, int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	for (int i = 0; poll(&polled, 1, 0) == 0; i++) {
		struct pollfd both[] = {polled, {.fd = scene->runner.in, .events = POLLIN}};
		test_runner_pump(&scene->runner);
		assert_true(poll(both, 2, WAIT_MS) > 0);
	}
}

static int accept_one(struct scene *scene, int listener)
{
	await_readable(scene, listener);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void connect_scene(struct scene *scene, uint64_t window)
{
	ask_for(scene, scene->port, &scene->in, &scene->out, window);
	scene->program = accept_one(scene, scene->listeners[0]);
}

static void read_program(struct scene *scene, const char *expected)
{
	char bytes[WINDOW];
	size_t len = 0;
	while (len < strlen(expected)) {
		await_readable(scene, scene->program);
		ssize_t count = read(scene->program, bytes + len, sizeof(bytes) - len);
		assert_true(count > 0);
		len += (size_t)count;
	}
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(bytes, expected, len);
}

static void test_bytes_and_each_end_alone_are_passed_on(void **state)
{
	struct scene *scene = *state;
	char byte;
	connect_scene(scene, WINDOW);
	test_stream_put(&scene->in, SPAN_LITERAL("question"), true);
	read_program(scene, "question");
	await_readable(scene, scene->program);
	assert_int_equal(read(scene->program, &byte, 1), 0); // the half-close
	assert_true(fd_write_all(scene->program, SPAN_LITERAL("answer"), NULL));
	assert_int_equal(shutdown(scene->program, SHUT_WR), 0);
	test_stream_await_end(&scene->runner, &scene->out);
	assert_true(scene->out.is_over);
	assert_int_equal(scene->out.bytes.len, strlen("answer"));
}

static void test_the_program_may_end_first(void **state)
{
	struct scene *scene = *state;
	connect_scene(scene, WINDOW);
	assert_int_equal(shutdown(scene->program, SHUT_WR), 0);
	test_stream_await_end(&scene->runner, &scene->out);
	assert_true(scene->out.is_over);
	test_stream_put(&scene->in, SPAN_LITERAL("more"), true);
	read_program(scene, "more");
}

static void test_many_bytes_wait_for_a_slow_reader(void **state)
{
	struct scene *scene = *state;
	static char bytes[WINDOW];
	size_t len = 0;
	memset(bytes, 'x', sizeof(bytes));
	connect_scene(scene, SMALL); // so that a window is full again and again
	test_stream_put(&scene->in, (struct span){bytes, sizeof(bytes)}, true);
	while (len < sizeof(bytes)) {
		await_readable(scene, scene->program);
		ssize_t count = read(scene->program, bytes, sizeof(bytes));
		assert_true(count > 0);
		assert_true(
			fd_write_all(scene->program, (struct span){bytes, (size_t)count}, NULL));
		len += (size_t)count;
	}
	assert_int_equal(shutdown(scene->program, SHUT_WR), 0);
	test_stream_await_end(&scene->runner, &scene->out);
	assert_int_equal(scene->out.bytes.len, sizeof(bytes));
}

static void test_a_program_on_ip6_alone_is_reached(void **state)
{
	struct scene *scene = *state;
	if (scene->listeners[1] < 0) {
		skip(); // a machine without IPv6
	}
	fd_close(&scene->listeners[0]);
	ask_for(scene, scene->port, &scene->in, &scene->out, WINDOW);
	scene->program = accept_one(scene, scene->listeners[1]);
	test_stream_put(&scene->in, SPAN_LITERAL("six"), false);
	read_program(scene, "six");
}

static void test_a_port_on_which_nobody_listens_resets_both_streams(void **state)
{
	struct scene *scene = *state;
	fd_close(&scene->listeners[0]);
	fd_close(&scene->listeners[1]);
	ask_for(scene, scene->port, &scene->in, &scene->out, WINDOW);
	test_stream_await_end(&scene->runner, &scene->out);
	test_stream_await_end(&scene->runner, &scene->in);
	assert_true(scene->in.is_reset && scene->out.is_reset);
}

static void test_a_reset_of_the_program_resets_both_streams(void **state)
{
	struct scene *scene = *state;
	connect_scene(scene, WINDOW);
	tcp_make_abrupt(scene->program);
	fd_close(&scene->program);
	test_stream_await_end(&scene->runner, &scene->out);
	test_stream_await_end(&scene->runner, &scene->in);
	assert_true(scene->in.is_reset && scene->out.is_reset);
}

static void test_a_stream_that_is_given_up_resets_the_program(void **state)
{
	struct scene *scene = *state;
	char byte;
	connect_scene(scene, WINDOW);
	test_stream_finish(&scene->out);
	await_readable(scene, scene->program);
	assert_int_equal(read(scene->program, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	test_stream_await_end(&scene->runner, &scene->in);
	assert_true(scene->in.is_reset);
}

static void test_there_is_a_limit(void **state)
{
	struct scene *scene = *state;
	struct test_stream *streams = calloc(2 * (size_t)CONNECTIONS, sizeof(*streams));
	int programs[LIMIT];
	for (int i = 0; i < LIMIT; i++) {
		ask_for(scene, scene->port, &streams[2 * i], &streams[2 * i + 1], SMALL);
		programs[i] = accept_one(scene, scene->listeners[0]);
	}
	ask_for(scene, scene->port, &streams[2 * LIMIT], &streams[2 * LIMIT + 1], SMALL);
	test_stream_await_end(&scene->runner, &streams[2 * LIMIT]);
	assert_true(streams[2 * LIMIT].is_reset);
	fd_close(&programs[0]);
	test_stream_await_end(&scene->runner, &streams[1]);
	assert_true(streams[1].is_over);
	test_stream_finish(&streams[0]);
	/* There is room again. */
	ask_for(scene, scene->port, &scene->in, &scene->out, SMALL);
	scene->program = accept_one(scene, scene->listeners[0]);
	for (int i = 1; i < LIMIT; i++) {
		fd_close(&programs[i]);
	}
	for (int i = 0; i < 2 * CONNECTIONS; i++) {
		test_stream_finish(&streams[i]);
	}
	free(streams);
}

static void test_the_end_of_the_runner_resets_the_program(void **state)
{
	struct scene *scene = *state;
	char byte;
	connect_scene(scene, WINDOW);
	test_stream_finish(&scene->in);
	test_stream_finish(&scene->out);
	test_runner_stop(&scene->runner);
	assert_int_equal(read(scene->program, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bytes_and_each_end_alone_are_passed_on),
		TEST(test_the_program_may_end_first),
		TEST(test_many_bytes_wait_for_a_slow_reader),
		TEST(test_a_program_on_ip6_alone_is_reached),
		TEST(test_a_port_on_which_nobody_listens_resets_both_streams),
		TEST(test_a_reset_of_the_program_resets_both_streams),
		TEST(test_a_stream_that_is_given_up_resets_the_program),
		TEST(test_there_is_a_limit),
		TEST(test_the_end_of_the_runner_resets_the_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
