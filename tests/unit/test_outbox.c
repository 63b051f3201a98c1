/* SPDX-License-Identifier: MIT */
#include "acp/outbox.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { LARGE = 300 * 1000, TEXT_MAX = 2 * 1024 * 1024, MANY_EDITS = 500 };

struct fixture {
	struct outbox outbox;
	int read;
	int write;
	struct buf text; // what was read
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	struct error err;
	int fds[2];
	outbox_init(&fixture->outbox);
	buf_init(&fixture->text, TEXT_MAX);
	assert_true(fd_pipe(fds, &err));
	assert_true(fd_set_nonblock(fds[0], true, &err));
	assert_true(fd_set_nonblock(fds[1], true, &err));
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 4096) >= 4096);
	fixture->read = fds[0];
	fixture->write = fds[1];
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	outbox_finish(&fixture->outbox);
	buf_finish(&fixture->text);
	fd_close(&fixture->read);
	fd_close(&fixture->write);
	free(fixture);
	return 0;
}

static void copy(struct fixture *fixture, const char *text)
{
	outbox_copy(&fixture->outbox, span_of(text), NULL);
}

/* A message of `len` bytes, with letters in order. */
static struct buf letters(size_t len)
{
	struct buf body;
	buf_init(&body, SIZE_MAX / 2);
	char *to = buf_reserve(&body, len, NULL);
	for (size_t i = 0; i < len; i++) {
		to[i] = (char)('a' + i % 26);
	}
	buf_commit(&body, len);
	return body;
}

static void edit(struct splice *splice, size_t start, size_t end, const char *with)
{
	struct error err;
	assert_true(splice_add(splice, start, end, span_of(with), &err));
}

static void seal(struct splice *splice, size_t len)
{
	struct error err;
	assert_true(splice_seal(splice, len, &err));
}

static void read_some(struct fixture *fixture)
{
	char bytes[3000];
	ssize_t got = read(fixture->read, bytes, sizeof(bytes));
	assert_true(got > 0);
	assert_true(buf_append(&fixture->text, (struct span){bytes, (size_t)got}, NULL));
}

/* Writes and reads in turns until everything has passed; checks the count meanwhile. */
static void drain(struct fixture *fixture)
{
	struct error err;
	size_t total = fixture->text.len + fixture->outbox.queued;
	for (int i = 0; i < 10000; i++) {
		enum outbox_state state = outbox_write(&fixture->outbox, fixture->write, &err);
		assert_int_not_equal(state, OUTBOX_BROKEN);
		assert_int_equal(state == OUTBOX_EMPTY, fixture->outbox.queued == 0);
		while (fixture->text.len + fixture->outbox.queued < total) {
			read_some(fixture);
		}
		if (state == OUTBOX_EMPTY) {
			return;
		}
	}
	fail_msg("it never became empty");
}

static void assert_text(const struct fixture *fixture, struct span expected)
{
	struct span text = buf_span(&fixture->text);
	assert_int_equal(text.len, expected.len);
	assert_memory_equal(text.data, expected.data, expected.len);
}

/* ---- tests ---- */

static void test_each_message_gets_a_newline_in_order(void **state)
{
	struct fixture *fixture = *state;
	copy(fixture, "one");
	copy(fixture, "");
	copy(fixture, "three");
	assert_int_equal(fixture->outbox.queued, 11);
	drain(fixture);
	assert_text(fixture, SPAN_LITERAL("one\n\nthree\n"));
}

static void test_small_messages_share_a_write(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int fds[2];
	char packet[1024];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 100; i++) {
		copy(fixture, "{}");
	}
	assert_int_equal(outbox_write(&fixture->outbox, fds[1], &err), OUTBOX_EMPTY);
	assert_int_equal(recv(fds[0], packet, sizeof(packet), MSG_DONTWAIT), 300);
	close(fds[0]);
	close(fds[1]);
}

static void test_a_moved_message_is_not_copied(void **state)
{
	struct fixture *fixture = *state;
	struct buf body = letters(LARGE);
	struct buf expected = letters(LARGE);
	char *memory = body.data;
	outbox_move(&fixture->outbox, &body, NULL);
	assert_null(body.data);
	assert_int_equal(body.len, 0);
	memory[LARGE / 2] = '!'; // shows whether the reader sees the same memory
	expected.data[LARGE / 2] = '!';
	assert_true(buf_append(&expected, SPAN_LITERAL("\n"), NULL));
	drain(fixture);
	assert_text(fixture, buf_span(&expected));
	buf_finish(&expected);
}

static void test_edits_are_spliced_into_a_copied_message(void **state)
{
	struct fixture *fixture = *state;
	struct splice splice;
	splice_init(&splice);
	edit(&splice, 6, 7, "two");
	edit(&splice, 0, 0, "> ");
	seal(&splice, 8);
	outbox_copy(&fixture->outbox, SPAN_LITERAL("{\"id\":1}"), &splice);
	copy(fixture, "next");
	assert_int_equal(fixture->outbox.queued, 18);
	drain(fixture);
	assert_text(fixture, SPAN_LITERAL("> {\"id\":two}\nnext\n"));
	splice_finish(&splice);
}

/* More pieces than one writev takes, through a pipe that takes a page at a time. */
static void test_edits_are_spliced_into_a_moved_message(void **state)
{
	struct fixture *fixture = *state;
	struct buf body = letters(LARGE);
	struct buf expected;
	struct splice splice;
	splice_init(&splice);
	for (size_t i = 0; i < MANY_EDITS; i++) {
		edit(&splice, i * 600, i * 600 + i % 3, i % 2 ? "<edit>" : "");
	}
	seal(&splice, body.len);
	buf_init(&expected, SIZE_MAX / 2);
	assert_true(splice_append(&splice, buf_span(&body), &expected, NULL));
	assert_true(buf_append(&expected, SPAN_LITERAL("\nafter\n"), NULL));

	outbox_move(&fixture->outbox, &body, &splice);
	assert_int_equal(splice.count, 0); // as new
	edit(&splice, 1, 2, "other");
	copy(fixture, "after");
	assert_int_equal(fixture->outbox.queued, expected.len);
	drain(fixture);
	assert_text(fixture, buf_span(&expected));
	splice_finish(&splice);
	buf_finish(&expected);
}

static void test_copied_and_moved_messages_keep_their_order(void **state)
{
	struct fixture *fixture = *state;
	struct buf expected;
	buf_init(&expected, SIZE_MAX / 2);
	for (int i = 0; i < 40; i++) {
		struct buf body = letters(1000 + (size_t)i);
		assert_true(buf_append(&expected, buf_span(&body), NULL));
		assert_true(buf_append(&expected, SPAN_LITERAL("\n"), NULL));
		if (i % 3 == 0) {
			outbox_move(&fixture->outbox, &body, NULL);
		} else {
			outbox_copy(&fixture->outbox, buf_span(&body), NULL);
		}
		buf_finish(&body);
	}
	drain(fixture);
	assert_text(fixture, buf_span(&expected));
	buf_finish(&expected);
}

static void test_what_is_sent_while_a_write_is_half_done_comes_behind_it(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	struct buf body = letters(20000);
	struct buf expected = letters(20000);
	outbox_copy(&fixture->outbox, buf_span(&body), NULL);
	assert_int_equal(outbox_write(&fixture->outbox, fixture->write, &err), OUTBOX_BLOCKED);
	assert_in_range(fixture->outbox.queued, 1, 20000);
	copy(fixture, "late");
	assert_true(buf_append(&expected, SPAN_LITERAL("\nlate\n"), NULL));
	while (fixture->text.len + fixture->outbox.queued < expected.len) {
		read_some(fixture);
	}
	drain(fixture);
	assert_text(fixture, buf_span(&expected));
	buf_finish(&body);
	buf_finish(&expected);
}

static void test_a_reader_that_is_gone_breaks_it(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	fd_close(&fixture->read);
	copy(fixture, "nobody reads this");
	assert_int_equal(outbox_write(&fixture->outbox, fixture->write, &err), OUTBOX_BROKEN);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_string_equal(err.text, "writing: Broken pipe");
	assert_int_equal(fixture->outbox.queued, 18);
}

static void test_a_full_disk_breaks_it_otherwise(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	copy(fixture, "nowhere to put this");
	assert_int_equal(outbox_write(&fixture->outbox, fd, &err), OUTBOX_BROKEN);
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(err.text, "writing: No space left on device");
	fd_close(&fd);
}

static void test_finish_forgets_what_was_not_written(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	struct buf body = letters(LARGE);
	copy(fixture, "one");
	outbox_move(&fixture->outbox, &body, NULL);
	outbox_finish(&fixture->outbox);
	assert_int_equal(fixture->outbox.queued, 0);
	assert_int_equal(outbox_write(&fixture->outbox, fixture->write, &err), OUTBOX_EMPTY);
	copy(fixture, "usable again");
	drain(fixture);
	assert_text(fixture, SPAN_LITERAL("usable again\n"));
}

#define OUTBOX_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTBOX_TEST(test_each_message_gets_a_newline_in_order),
		OUTBOX_TEST(test_small_messages_share_a_write),
		OUTBOX_TEST(test_a_moved_message_is_not_copied),
		OUTBOX_TEST(test_edits_are_spliced_into_a_copied_message),
		OUTBOX_TEST(test_edits_are_spliced_into_a_moved_message),
		OUTBOX_TEST(test_copied_and_moved_messages_keep_their_order),
		OUTBOX_TEST(test_what_is_sent_while_a_write_is_half_done_comes_behind_it),
		OUTBOX_TEST(test_a_reader_that_is_gone_breaks_it),
		OUTBOX_TEST(test_a_full_disk_breaks_it_otherwise),
		OUTBOX_TEST(test_finish_forgets_what_was_not_written),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
