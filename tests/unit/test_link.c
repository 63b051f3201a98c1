/* SPDX-License-Identifier: MIT */
#include "tests/unit/link_fixture.h"

enum { FLOOD = 2 * LINK_READS_A_TURN * FRAME_READ_SIZE };

static void test_each_line_is_raised_in_order(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	peer_writes(fixture, "{\"id\":1}\n\n[2]\r\n{\"id\":");
	turn(fixture);
	assert_told(fixture, "frame:{\"id\":1} frame:[2] ");
	peer_writes(fixture, "3}\nbad\n");
	turn(fixture);
	assert_told(fixture, "frame:{\"id\":3} frame:bad ");
}

static void test_a_refused_frame_comes_again_after_resume(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	fixture->refuse = 1;
	peer_writes(fixture, "1\n2\n");
	turn(fixture);
	assert_told(fixture, "refused:1 ");
	assert_true(link_is_paused(&fixture->link));
	link_resume(&fixture->link);
	assert_told(fixture, ""); // never from inside link_resume
	turn(fixture);
	assert_told(fixture, "frame:1 frame:2 ");
	assert_false(link_is_paused(&fixture->link));
}

static void test_a_frame_may_be_refused_again_and_again(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	fixture->refuse = 3;
	peer_writes(fixture, "1\n");
	turn(fixture);
	for (int i = 0; i < 3; i++) {
		assert_told(fixture, "refused:1 ");
		link_resume(&fixture->link);
		link_resume(&fixture->link); // harmless
		turn(fixture);
	}
	assert_told(fixture, "frame:1 ");
}

static void test_a_paused_link_leaves_the_rest_to_the_kernel(void **state)
{
	struct fixture *fixture = *state;
	int waiting = 0;
	connect_pipes(fixture);
	fixture->refuse = 1;
	peer_writes(fixture, "1\n");
	turn(fixture);
	peer_writes(fixture, "2\n3\n");
	turn(fixture);
	assert_int_equal(ioctl(fixture->link.in, FIONREAD, &waiting), 0);
	assert_int_equal(waiting, 4);
	link_resume(&fixture->link);
	turn(fixture);
	assert_told(fixture, "refused:1 frame:1 frame:2 frame:3 ");
}

static void test_the_end_comes_after_the_last_line(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	peer_writes(fixture, "1\n{\"no\":\"newline\"}");
	fd_close(&fixture->to);
	turn(fixture);
	assert_told(fixture, "frame:1 frame:{\"no\":\"newline\"} end() ");
	turn(fixture);
	assert_told(fixture, "");
}

static void test_the_end_waits_for_a_refused_frame(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	fixture->refuse = 2;
	peer_writes(fixture, "1\n2");
	fd_close(&fixture->to);
	turn(fixture);
	assert_told(fixture, "refused:1 ");
	link_resume(&fixture->link);
	turn(fixture);
	assert_told(fixture, "refused:1 ");
	link_resume(&fixture->link);
	turn(fixture);
	assert_told(fixture, "frame:1 frame:2 end() ");
}

static void test_a_read_that_fails_says_why(void **state)
{
	struct fixture *fixture = *state;
	link_connect(&fixture->link, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1);
	turn(fixture);
	assert_told(fixture, "end(reading: Is a directory) ");
	assert_string_equal(link_failure(&fixture->link)->text, "reading: Is a directory");
}

static void test_a_peer_that_left_without_reading_has_ended(void **state)
{
	struct fixture *fixture = *state;
	int fds[2];
	int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	assert_int_equal(socketpair(AF_UNIX, type, 0, fds), 0);
	assert_int_equal(write(fds[0], "unread", 6), 6); // makes the close a reset
	link_connect(&fixture->link, fds[0], -1);
	close(fds[1]);
	turn(fixture);
	assert_told(fixture, "end() ");
	assert_null(link_failure(&fixture->link));
}

static void test_a_flood_leaves_others_their_turn(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	int size = fcntl(fixture->to, F_SETPIPE_SZ, FLOOD);
	assert_true(size >= FLOOD);
	char *lines = mem_alloc((size_t)size);
	memset(lines, '\n', (size_t)size);
	assert_int_equal(write(fixture->to, lines, (size_t)size), size);
	free(lines);
	ev_run(fixture->loop, EVRUN_NOWAIT);
	int waiting = 0;
	assert_int_equal(ioctl(fixture->link.in, FIONREAD, &waiting), 0);
	assert_true(waiting >= size - LINK_READS_A_TURN * FRAME_READ_SIZE);
	assert_true(waiting < size);
}

static void close_link(struct fixture *fixture, const struct frame *frame)
{
	tell(fixture, "closing ");
	send_text(fixture, "lost");
	link_close(&fixture->link);
	link_close(&fixture->link);
}

static void test_a_link_may_be_closed_by_its_own_frame(void **state)
{
	struct fixture *fixture = *state;
	fixture->on_frame = close_link;
	connect_pipes(fixture);
	peer_writes(fixture, "1\n2\n");
	fd_close(&fixture->to);
	turn(fixture);
	assert_told(fixture, "closing ");
	assert_int_equal(link_queued(&fixture->link), 0);
	link_resume(&fixture->link);
	send_text(fixture, "nowhere");
	link_finish_output(&fixture->link);
	turn(fixture);
	assert_told(fixture, "");
	assert_string_equal(peer_reads(fixture), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LINK_TEST(test_each_line_is_raised_in_order),
		LINK_TEST(test_a_refused_frame_comes_again_after_resume),
		LINK_TEST(test_a_frame_may_be_refused_again_and_again),
		LINK_TEST(test_a_paused_link_leaves_the_rest_to_the_kernel),
		LINK_TEST(test_the_end_comes_after_the_last_line),
		LINK_TEST(test_the_end_waits_for_a_refused_frame),
		LINK_TEST(test_a_read_that_fails_says_why),
		LINK_TEST(test_a_peer_that_left_without_reading_has_ended),
		LINK_TEST(test_a_flood_leaves_others_their_turn),
		LINK_TEST(test_a_link_may_be_closed_by_its_own_frame),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
