/* SPDX-License-Identifier: MIT */
#include "tests/unit/link_fixture.h"

static void test_what_a_turn_sends_leaves_in_one_write_at_its_end(void **state)
{
	struct fixture *fixture = *state;
	char packet[64];
	connect_packets(fixture);
	turn(fixture);
	send_text(fixture, "one");
	send_text(fixture, "two");
	assert_int_equal(recv(fixture->from, packet, sizeof(packet), 0), -1);
	send_text(fixture, "three");
	turn(fixture);
	assert_int_equal(recv(fixture->from, packet, sizeof(packet), 0), 14);
	assert_memory_equal(packet, "one\ntwo\nthree\n", 14);
}

/* A message of this many bytes, in a buffer of its own. */
static struct buf make_message(size_t len)
{
	struct buf message;
	buf_init(&message, len);
	memset(buf_reserve(&message, len, NULL), 'y', len);
	buf_commit(&message, len);
	return message;
}

static void test_the_memory_of_a_large_message_is_taken(void **state)
{
	struct fixture *fixture = *state;
	struct buf small = make_message(3);
	struct buf large = make_message(LINK_MOVE_MIN);
	connect_pipes(fixture);
	send_text(fixture, "before");
	link_send_taken(&fixture->link, &small);
	link_send_taken(&fixture->link, &large);
	send_text(fixture, "after");
	assert_null(small.data);
	assert_null(large.data);
	assert_int_equal(link_queued(&fixture->link), LINK_MOVE_MIN + 18);
	turn(fixture);
	const char *text = peer_reads(fixture);
	assert_memory_equal(text, "before\nyyy\ny", 12);
	assert_string_equal(text + LINK_MOVE_MIN + 10, "y\nafter\n");
}

static void test_the_memory_of_a_message_is_taken_where_nobody_gets_it(void **state)
{
	struct fixture *fixture = *state;
	struct buf large = make_message(LINK_MOVE_MIN);
	connect_pipes(fixture);
	link_close(&fixture->link);
	link_send_taken(&fixture->link, &large);
	assert_null(large.data);
	assert_int_equal(link_queued(&fixture->link), 0);
}

static void test_what_is_sent_before_it_is_connected_waits(void **state)
{
	struct fixture *fixture = *state;
	send_text(fixture, "early");
	turn(fixture);
	assert_int_equal(link_queued(&fixture->link), 6);
	connect_pipes(fixture);
	turn(fixture);
	assert_string_equal(peer_reads(fixture), "early\n");
	assert_int_equal(link_queued(&fixture->link), 0);
}

static void test_a_held_queue_lets_pass_what_is_sent_ahead(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	link_hold(&fixture->link);
	send_text(fixture, "1");
	link_send_ahead(&fixture->link, SPAN_LITERAL("a"));
	send_text(fixture, "2");
	link_send_ahead(&fixture->link, SPAN_LITERAL("b"));
	turn(fixture);
	assert_string_equal(peer_reads(fixture), "a\nb\n");
	assert_int_equal(link_queued(&fixture->link), 4);
	link_release(&fixture->link);
	turn(fixture);
	assert_string_equal(peer_reads(fixture), "1\n2\n");
}

static void test_a_slow_reader_gets_everything_and_drained_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	send_bytes(fixture, MAX_QUEUE - 1);
	assert_false(link_is_over(&fixture->link)); // full, not over
	send_text(fixture, "");
	assert_true(link_is_over(&fixture->link));
	send_bytes(fixture, (size_t)3 * MAX_QUEUE); // taken all the same
	turn(fixture);
	assert_told(fixture, "");
	assert_int_equal(strlen(peer_reads(fixture)), 4 * MAX_QUEUE + 2);
	assert_told(fixture, "drained ");
	send_bytes(fixture, MAX_QUEUE / 2);
	turn(fixture);
	peer_reads(fixture);
	assert_told(fixture, ""); // it was not over again
}

static void test_drained_is_told_below_half_of_the_queue(void **state)
{
	struct fixture *fixture = *state;
	char bytes[1000];
	connect_pipes(fixture);
	send_bytes(fixture, (size_t)2 * MAX_QUEUE);
	turn(fixture);
	for (int i = 0; i < 1000 && fixture->told[0] == '\0'; i++) {
		assert_true(link_queued(&fixture->link) > MAX_QUEUE / 2);
		assert_true(read(fixture->from, bytes, sizeof(bytes)) > 0);
		turn(fixture);
	}
	assert_told(fixture, "drained ");
	assert_in_range(link_queued(&fixture->link), 1, MAX_QUEUE / 2);
}

static void send_when_drained(struct fixture *fixture)
{
	send_text(fixture, "sent when drained");
}

static void test_what_is_sent_when_drained_leaves_too(void **state)
{
	struct fixture *fixture = *state;
	fixture->on_drained = send_when_drained;
	send_bytes(fixture, MAX_QUEUE + 1);
	connect_packets(fixture);
	turn(fixture);
	assert_told(fixture, "drained ");
	const char *text = peer_reads(fixture);
	assert_string_equal(text + MAX_QUEUE + 2, "sent when drained\n");
}

static void close_when_drained(struct fixture *fixture)
{
	link_close(&fixture->link);
}

static void test_a_link_may_be_closed_when_drained(void **state)
{
	struct fixture *fixture = *state;
	fixture->on_drained = close_when_drained;
	send_bytes(fixture, MAX_QUEUE + 1);
	connect_packets(fixture);
	link_finish_output(&fixture->link);
	turn(fixture);
	assert_true(fixture->link.is_closed);
	assert_null(strstr(fixture->told, "broken"));
}

static void test_a_reader_that_is_gone_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	fd_close(&fixture->from);
	send_bytes(fixture, (size_t)2 * MAX_QUEUE);
	turn(fixture);
	assert_told(fixture, "broken(writing: Broken pipe) ");
	assert_false(link_is_over(&fixture->link));
	send_text(fixture, "into the void");
	link_send_ahead(&fixture->link, SPAN_LITERAL("as well"));
	assert_int_equal(link_queued(&fixture->link), 0);
	peer_writes(fixture, "1\n");
	turn(fixture);
	assert_told(fixture, "frame:1 "); // the other direction goes on
}

/* ---- the end of the output ---- */

static void test_finish_output_writes_all_before_it_closes(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	send_bytes(fixture, MAX_QUEUE - 1);
	link_finish_output(&fixture->link);
	send_text(fixture, "too late");
	turn(fixture);
	assert_told(fixture, "");
	assert_int_equal(strlen(peer_reads(fixture)), MAX_QUEUE);
	assert_told(fixture, "flushed ");
	assert_int_equal(read(fixture->from, (char[1]){0}, 1), 0); // end of file
	link_finish_output(&fixture->link);
	peer_writes(fixture, "1\n");
	turn(fixture);
	assert_told(fixture, "frame:1 ");
}

static void test_finish_output_of_an_empty_queue_closes_at_once(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	turn(fixture);
	link_finish_output(&fixture->link);
	assert_told(fixture, ""); // not from inside
	turn(fixture);
	assert_told(fixture, "flushed ");
	assert_int_equal(read(fixture->from, (char[1]){0}, 1), 0);
}

static void test_finish_output_waits_for_a_held_queue(void **state)
{
	struct fixture *fixture = *state;
	connect_pipes(fixture);
	link_hold(&fixture->link);
	send_text(fixture, "held");
	link_finish_output(&fixture->link);
	turn(fixture);
	assert_told(fixture, "");
	link_release(&fixture->link);
	turn(fixture);
	assert_told(fixture, "flushed ");
	assert_string_equal(peer_reads(fixture), "held\n");
}

/* ---- forwarding ---- */

/* Takes a number of `len` digits as the frame in hand of a separate reader. */
static void take_frame(
	struct fixture *fixture, size_t len, struct frame_reader **out_reader, struct frame *frame)
{
	struct frame_reader *reader = frame_reader_create(fixture->places, MAX_MESSAGE);
	bool is_whole = false;
	for (size_t at = 0; at <= len;) {
		size_t room;
		char *space = frame_reader_space(reader, &room);
		size_t more = room < len + 1 - at ? room : len + 1 - at;
		memset(space, '7', more);
		if (at + more == len + 1) {
			space[more - 1] = '\n';
		}
		frame_reader_fed(reader, more);
		at += more;
		is_whole = frame_reader_next(reader, frame);
	}
	assert_true(is_whole);
	assert_int_equal(frame->bytes.len, len);
	*out_reader = reader;
}

static void add_edit(struct splice *splice, size_t start, size_t end, const char *with)
{
	struct error err;
	assert_true(splice_add(splice, start, end, span_of(with), &err));
}

static void test_a_small_message_is_forwarded_with_its_edits(void **state)
{
	struct fixture *fixture = *state;
	struct frame_reader *reader;
	struct frame frame;
	struct splice splice;
	struct error err;
	splice_init(&splice);
	take_frame(fixture, 5, &reader, &frame);
	connect_pipes(fixture);
	add_edit(&splice, 4, 5, "end"); // in any order: it is sealed there
	add_edit(&splice, 0, 1, "begin");
	assert_true(link_forward(&fixture->link, reader, &frame, &splice, &err));
	assert_true(link_forward(&fixture->link, reader, &frame, NULL, &err));
	turn(fixture);
	assert_string_equal(peer_reads(fixture), "begin777end\n77777\n");
	splice_finish(&splice);
	frame_reader_destroy(reader);
}

static void test_a_large_message_is_forwarded_without_a_copy(void **state)
{
	struct fixture *fixture = *state;
	struct frame_reader *reader;
	struct frame frame;
	struct splice splice;
	struct error err;
	splice_init(&splice);
	take_frame(fixture, LINK_MOVE_MIN, &reader, &frame);
	char *bytes = (char *)frame.bytes.data;
	add_edit(&splice, 0, 1, "begin");
	assert_true(link_forward(&fixture->link, reader, &frame, &splice, &err));
	assert_int_equal(splice.count, 0); // the edits were taken, too
	bytes[3] = '3';                    // shows whether it is the same memory
	connect_pipes(fixture);
	turn(fixture);
	const char *text = peer_reads(fixture);
	assert_int_equal(strlen(text), LINK_MOVE_MIN + 5);
	assert_memory_equal(text, "begin77377", 10);
	splice_finish(&splice);
	frame_reader_destroy(reader);
}

static void test_edits_that_do_not_fit_are_refused_and_nothing_is_sent(void **state)
{
	struct fixture *fixture = *state;
	struct frame_reader *reader;
	struct frame frame;
	struct splice splice;
	struct error err;
	splice_init(&splice);
	take_frame(fixture, 5, &reader, &frame);
	add_edit(&splice, 0, 6, "");
	assert_false(link_forward(&fixture->link, reader, &frame, &splice, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
	splice_clear(&splice);
	add_edit(&splice, 1, 3, "");
	add_edit(&splice, 2, 4, "");
	assert_false(link_forward(&fixture->link, reader, &frame, &splice, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
	assert_int_equal(link_queued(&fixture->link), 0);
	splice_finish(&splice);
	frame_reader_destroy(reader);
}

static void test_nothing_is_forwarded_to_a_link_that_has_closed(void **state)
{
	struct fixture *fixture = *state;
	struct frame_reader *reader;
	struct frame frame;
	struct error err;
	take_frame(fixture, LINK_MOVE_MIN, &reader, &frame);
	link_close(&fixture->link);
	assert_true(link_forward(&fixture->link, reader, &frame, NULL, &err));
	assert_int_equal(link_queued(&fixture->link), 0);
	assert_int_equal(frame.bytes.data[0], '7'); // it still belongs to the reader
	frame_reader_destroy(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LINK_TEST(test_what_a_turn_sends_leaves_in_one_write_at_its_end),
		LINK_TEST(test_the_memory_of_a_large_message_is_taken),
		LINK_TEST(test_the_memory_of_a_message_is_taken_where_nobody_gets_it),
		LINK_TEST(test_what_is_sent_before_it_is_connected_waits),
		LINK_TEST(test_a_held_queue_lets_pass_what_is_sent_ahead),
		LINK_TEST(test_a_slow_reader_gets_everything_and_drained_is_told_once),
		LINK_TEST(test_drained_is_told_below_half_of_the_queue),
		LINK_TEST(test_what_is_sent_when_drained_leaves_too),
		LINK_TEST(test_a_link_may_be_closed_when_drained),
		LINK_TEST(test_a_reader_that_is_gone_is_told_once),
		LINK_TEST(test_finish_output_writes_all_before_it_closes),
		LINK_TEST(test_finish_output_of_an_empty_queue_closes_at_once),
		LINK_TEST(test_finish_output_waits_for_a_held_queue),
		LINK_TEST(test_a_small_message_is_forwarded_with_its_edits),
		LINK_TEST(test_a_large_message_is_forwarded_without_a_copy),
		LINK_TEST(test_edits_that_do_not_fit_are_refused_and_nothing_is_sent),
		LINK_TEST(test_nothing_is_forwarded_to_a_link_that_has_closed),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
