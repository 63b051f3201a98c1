/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"

static void on_event(struct ev_loop *loop, ev_io *io, int events)
{
}

static void test_closing_stops_the_watcher_and_closes_its_descriptor(void **state)
{
	int fds[2];
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_io io;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	ev_io_init(&io, on_event, fds[0], EV_READ);
	ev_io_start(loop, &io);
	io_close(loop, &io);
	assert_false(ev_is_active(&io));
	assert_int_equal(io.fd, -1);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	io_close(loop, &io);
	close(fds[1]);
	ev_loop_destroy(loop);
}

static void test_only_what_has_to_be_made_again_is_transient(void **state)
{
	assert_true(io_is_transient(EAGAIN));
	assert_true(io_is_transient(EINTR));
	assert_false(io_is_transient(EPIPE));
	assert_false(io_is_transient(0));
}

static void test_the_newest_words_are_kept_in_printable_characters(void **state)
{
	char tail[9] = "";
	io_keep_words(tail, 8, SPAN_LITERAL("ab\n"));
	assert_string_equal(tail, "ab ");
	io_keep_words(tail, 8, SPAN_LITERAL("cdefg"));
	assert_string_equal(tail, "ab cdefg");
	io_keep_words(tail, 8, SPAN_LITERAL("\033[x"));
	assert_string_equal(tail, "cdefg [x");
	io_keep_words(tail, 8, SPAN_LITERAL("0123456789"));
	assert_string_equal(tail, "23456789");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closing_stops_the_watcher_and_closes_its_descriptor),
		cmocka_unit_test(test_only_what_has_to_be_made_again_is_transient),
		cmocka_unit_test(test_the_newest_words_are_kept_in_printable_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
