/* SPDX-License-Identifier: MIT */
#include "providers/local/net/pipe.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

/*
 * One end writes to from[0], the pipe moves the bytes from from[1] to to[0], and the other end
 * reads at to[1].
 */
static int from[2];
static int to[2];
static struct pipe moved;

static int set_up(void **state)
{
	moved = (struct pipe){.data = NULL};
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, from) == 0 &&
	                       socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
				       to) == 0
	               ? 0
	               : -1;
}

static int tear_down(void **state)
{
	pipe_finish(&moved);
	for (int i = 0; i < 2; i++) {
		fd_close(&from[i]);
		fd_close(&to[i]);
	}
	return 0;
}

static bool move(void)
{
	return pipe_move(&moved, from[1], to[0]);
}

static void test_what_is_said_arrives_and_nothing_is_not_the_end(void **state)
{
	char bytes[16];
	assert_true(move());
	assert_false(moved.has_ended);
	assert_int_equal(send(from[0], "hello", 5, 0), 5);
	assert_true(move());
	assert_int_equal(recv(to[1], bytes, sizeof(bytes), 0), 5);
	assert_memory_equal(bytes, "hello", 5);
	assert_true(pipe_wants_read(&moved));
	assert_false(pipe_wants_write(&moved));
}

static void test_the_end_arrives_once_all_before_it_has(void **state)
{
	char bytes[16];
	assert_int_equal(send(from[0], "last", 4, 0), 4);
	assert_int_equal(shutdown(from[0], SHUT_WR), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(move());
	}
	assert_true(moved.is_closed);
	assert_false(pipe_wants_read(&moved));
	assert_int_equal(recv(to[1], bytes, sizeof(bytes), 0), 4);
	assert_int_equal(recv(to[1], bytes, sizeof(bytes), 0), 0);
	assert_int_equal(send(to[1], "x", 1, MSG_NOSIGNAL), 1); // the other direction is open
}

/* A reader that takes nothing makes the writer wait, and costs PIPE_SIZE of memory. */
static void test_a_slow_reader_slows_down_the_writer(void **state)
{
	static char bytes[PIPE_SIZE];
	size_t said = 0, got = 0;
	ssize_t count;
	memset(bytes, 'x', sizeof(bytes));
	for (bool goes_on = true; goes_on;) {
		count = send(from[0], bytes, sizeof(bytes), MSG_NOSIGNAL);
		goes_on = count > 0;
		said += count > 0 ? (size_t)count : 0;
		assert_true(move());
		assert_true(moved.len <= PIPE_SIZE);
	}
	while (pipe_wants_read(&moved)) {
		assert_true(move());
	}
	assert_true(pipe_wants_write(&moved));
	while (got < said) {
		count = recv(to[1], bytes, sizeof(bytes), 0);
		assert_true(count > 0 || errno == EAGAIN);
		got += count > 0 ? (size_t)count : 0;
		assert_true(move());
	}
	assert_int_equal(got, said);
	assert_int_equal(recv(to[1], bytes, sizeof(bytes), 0), -1);
}

static void test_a_reader_who_is_gone_breaks_it(void **state)
{
	fd_close(&to[1]);
	assert_int_equal(send(from[0], "x", 1, 0), 1);
	assert_false(move());
}

static void test_the_first_bytes_stay_as_long_as_they_are_kept(void **state)
{
	moved.keeps = true;
	assert_int_equal(send(from[0], "one", 3, 0), 3);
	assert_true(move());
	assert_int_equal(send(from[0], "two", 3, 0), 3);
	assert_true(move());
	assert_int_equal(moved.len, 6);
	assert_memory_equal(moved.data, "onetwo", 6);
	moved.keeps = false;
	assert_int_equal(send(from[0], "three", 5, 0), 5);
	assert_true(move());
	assert_memory_equal(moved.data, "three", 5);
}

static void test_what_is_filled_can_be_skipped(void **state)
{
	char bytes[16];
	assert_int_equal(send(from[0], "headbody", 8, 0), 8);
	assert_true(pipe_fill(&moved, from[1], PIPE_SIZE));
	assert_true(span_is(pipe_span(&moved), "headbody"));
	pipe_skip(&moved, 4);
	assert_true(move());
	assert_int_equal(recv(to[1], bytes, sizeof(bytes), 0), 4);
	assert_memory_equal(bytes, "body", 4);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_what_is_said_arrives_and_nothing_is_not_the_end),
		CASE(test_the_end_arrives_once_all_before_it_has),
		CASE(test_a_slow_reader_slows_down_the_writer),
		CASE(test_a_reader_who_is_gone_breaks_it),
		CASE(test_the_first_bytes_stay_as_long_as_they_are_kept),
		CASE(test_what_is_filled_can_be_skipped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
