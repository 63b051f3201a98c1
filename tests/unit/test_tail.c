/* SPDX-License-Identifier: MIT */
#include "broker/agent/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/stderr_capture.h"

enum { KEEP = 100, TURNS = 50 };

/* A tail, the end to which its process writes, and the lines that are logged. */
struct fixture {
	struct ev_loop *loop;
	struct tail tail;
	struct secrets *secrets;
	int to;
	struct capture capture;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	struct error err;
	int fds[2];
	static const char *const environment[] = {"API_KEY=tell-nobody",
		"PEM_KEY=-----BEGIN PRIVATE KEY-----\nAAAABBBBCCCCDDDD\n", NULL};
	fixture->loop = ev_loop_new(EVFLAG_AUTO);
	fixture->secrets = secrets_create(environment, NULL);
	tail_init(&fixture->tail, fixture->loop, "agent", KEEP, fixture->secrets);
	assert_true(fd_pipe(fds, &err));
	assert_true(fd_set_nonblock(fds[0], true, &err));
	fixture->to = fds[1];
	capture_pipe(&fixture->capture);
	tail_start(&fixture->tail, fds[0]);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	tail_finish(&fixture->tail);
	capture_stop(&fixture->capture);
	fd_close(&fixture->to);
	ev_loop_destroy(fixture->loop);
	secrets_destroy(fixture->secrets);
	free(fixture);
	return 0;
}

static void process_writes(struct fixture *fixture, const char *text)
{
	assert_int_equal(write(fixture->to, text, strlen(text)), strlen(text));
	for (int i = 0; i < TURNS; i++) {
		ev_run(fixture->loop, EVRUN_NOWAIT);
	}
}

static void process_closes(struct fixture *fixture)
{
	fd_close(&fixture->to);
	for (int i = 0; i < TURNS; i++) {
		ev_run(fixture->loop, EVRUN_NOWAIT);
	}
}

static void assert_kept(struct fixture *fixture, const char *expected)
{
	char text[2 * KEEP + 1];
	struct span kept = tail_span(&fixture->tail);
	assert_in_range(kept.len, 0, KEEP);
	snprintf(text, sizeof(text), "%.*s", (int)kept.len, kept.data ? kept.data : "");
	assert_string_equal(text, expected);
}

/* ---- the log ---- */

static void test_each_line_goes_to_the_log(void **state)
{
	struct fixture *fixture = *state;
	process_writes(fixture, "one\n\ntw");
	assert_string_equal(logged(&fixture->capture), "<6>agent: one\n");
	process_writes(fixture, "o\nthree");
	assert_string_equal(logged(&fixture->capture), "<6>agent: two\n");
	process_closes(fixture);
	assert_string_equal(logged(&fixture->capture), "<6>agent: three\n");
}

static void test_a_long_line_goes_to_the_log_in_parts(void **state)
{
	struct fixture *fixture = *state;
	char line[5001];
	memset(line, 'x', 5000);
	line[5000] = '\0';
	process_writes(fixture, line);
	process_writes(fixture, "\nnext\n");
	const char *text = logged(&fixture->capture);
	int lines = 0;
	int count = 0;
	for (const char *at = text; *at; at++) {
		lines += *at == '\n';
		count += *at == 'x';
	}
	assert_int_equal(lines, 4);
	assert_int_equal(count, 5001); // this one, and the one of "next"
	assert_non_null(strstr(text, "<6>agent: next\n"));
}

static void test_a_line_as_long_as_a_part_is_one_line(void **state)
{
	struct fixture *fixture = *state;
	char line[2048 + 1];
	memset(line, 'x', 2048);
	line[2048] = '\0';
	process_writes(fixture, line);
	process_writes(fixture, "\nnext\n");
	const char *text = logged(&fixture->capture);
	assert_int_equal(strlen(text), strlen("<6>agent: \n") + 2048 + strlen("<6>agent: next\n"));
}

static void test_secrets_are_not_logged(void **state)
{
	struct fixture *fixture = *state;
	process_writes(fixture, "the key is tell-nobody, it is\ntell-no\nAAAABBBBCCCCDDDD\n");
	assert_string_equal(logged(&fixture->capture),
		"<6>agent: the key is ***, it is\n<6>agent: tell-no\n<6>agent: ***\n");
}

static void test_nor_is_one_that_two_parts_of_a_line_share(void **state)
{
	struct fixture *fixture = *state;
	for (size_t before = 2048 - 11; before <= 2048; before++) {
		char line[2048 + 1];
		memset(line, 'x', before);
		line[before] = '\0';
		process_writes(fixture, line);
		process_writes(fixture, "tell-nobody\n");
		const char *text = logged(&fixture->capture);
		assert_non_null(strstr(text, "***\n"));
		assert_null(strstr(text, "tell"));
		assert_null(strstr(text, "nobody"));
	}
}

/* ---- the last words ---- */

static void test_a_few_words_are_kept_whole(void **state)
{
	struct fixture *fixture = *state;
	assert_kept(fixture, "");
	process_writes(fixture, "first line\nsecond");
	assert_kept(fixture, "first line\nsecond");
}

static void test_secrets_are_not_kept(void **state)
{
	struct fixture *fixture = *state;
	process_writes(fixture, "bad key tell-nobody\nAAAABBBBCCCCDDDD\ntell");
	process_writes(fixture, "-nobody.");
	assert_kept(fixture, "bad key ***\n***\n***.");
	/* Also if the line would be cut in the middle. */
	char line[KEEP + 1];
	memset(line, 'x', KEEP);
	for (size_t after = KEEP - 12; after < KEEP; after++) {
		line[after] = '\0';
		process_writes(fixture, "\n\ntell-nobody");
		process_writes(fixture, line);
		struct span kept = tail_span(&fixture->tail);
		assert_null(memmem(kept.data, kept.len, "nobody", 6));
		line[after] = 'x';
	}
}

static void test_exactly_as_much_as_is_kept_is_kept_whole(void **state)
{
	struct fixture *fixture = *state;
	char text[KEEP + 1];
	memset(text, 'x', KEEP);
	text[5] = '\n';
	text[KEEP] = '\0';
	process_writes(fixture, text);
	assert_kept(fixture, text);
}

/* Written in pieces of every size, so that the tail is cut at every place of its buffer. */
static void test_of_many_lines_the_last_are_kept_from_a_line_start_on(void **state)
{
	struct fixture *fixture = *state;
	struct buf all;
	buf_init(&all, 1 << 20);
	for (int i = 0; i < 300; i++) {
		char lines[400];
		size_t len = 0;
		for (int j = 0; j <= i % 30; j++) {
			len += (size_t)snprintf(
				lines + len, sizeof(lines) - len, "line %d\n", i * 100 + j);
		}
		assert_true(buf_append(&all, (struct span){lines, len}, NULL));
		process_writes(fixture, lines);
		logged(&fixture->capture);
		struct span kept = tail_span(&fixture->tail);
		assert_in_range(kept.len, 1, KEEP);
		assert_memory_equal(kept.data, buf_span(&all).data + all.len - kept.len, kept.len);
		assert_int_equal(strncmp(kept.data, "line ", 5), 0);
		if (all.len > KEEP) {
			assert_true(kept.len > KEEP - strlen("line 29929\n"));
		}
	}
	buf_finish(&all);
}

static void test_of_one_long_line_the_end_is_kept(void **state)
{
	struct fixture *fixture = *state;
	char text[KEEP + 1];
	for (int i = 0; i < 100; i++) {
		process_writes(fixture, "0123456789abc");
	}
	for (int i = 0; i < KEEP; i++) {
		text[i] = "0123456789abc"[(1300 - KEEP + i) % 13];
	}
	text[KEEP] = '\0';
	assert_kept(fixture, text);
}

static void test_it_begins_with_a_whole_character(void **state)
{
	struct fixture *fixture = *state;
	for (int shift = 0; shift < 3; shift++) {
		process_writes(fixture, "x");
		for (int i = 0; i < 60; i++) {
			process_writes(fixture, "\xe2\x82\xac"); // the euro sign, three bytes
			struct span kept = tail_span(&fixture->tail);
			assert_int_not_equal(kept.data[0] & 0xc0, 0x80);
			assert_in_range(kept.len, i == 0 && shift == 0 ? 4 : 1, KEEP);
			assert_true(i < 40 || kept.len > KEEP - 3);
		}
	}
}

static void test_more_than_is_kept_in_one_write_is_cut_too(void **state)
{
	struct fixture *fixture = *state;
	char text[3 * KEEP + 1];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	text[2 * KEEP + 30] = '\n';
	process_writes(fixture, text);
	assert_kept(fixture, strchr(text, '\n') + 1);
}

/* ---- reading ---- */

static void test_catch_up_reads_what_the_loop_has_not(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(write(fixture->to, "dying words", 11), 11);
	assert_kept(fixture, "");
	tail_catch_up(&fixture->tail);
	assert_kept(fixture, "dying words");
	fd_close(&fixture->to);
	tail_catch_up(&fixture->tail);
	assert_int_equal(fixture->tail.fd, -1);
	tail_catch_up(&fixture->tail);
	assert_kept(fixture, "dying words");
	assert_string_equal(logged(&fixture->capture), "<6>agent: dying words\n");
}

static void test_the_last_words_outlive_the_end_of_file(void **state)
{
	struct fixture *fixture = *state;
	process_writes(fixture, "panic: no memory\n");
	process_closes(fixture);
	assert_kept(fixture, "panic: no memory\n");
}

static void test_finish_logs_the_line_that_has_not_ended(void **state)
{
	struct fixture *fixture = *state;
	process_writes(fixture, "no newline");
	assert_string_equal(logged(&fixture->capture), "");
	tail_finish(&fixture->tail);
	assert_string_equal(logged(&fixture->capture), "<6>agent: no newline\n");
}

#define TAIL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAIL_TEST(test_each_line_goes_to_the_log),
		TAIL_TEST(test_a_long_line_goes_to_the_log_in_parts),
		TAIL_TEST(test_a_line_as_long_as_a_part_is_one_line),
		TAIL_TEST(test_secrets_are_not_logged),
		TAIL_TEST(test_nor_is_one_that_two_parts_of_a_line_share),
		TAIL_TEST(test_a_few_words_are_kept_whole),
		TAIL_TEST(test_secrets_are_not_kept),
		TAIL_TEST(test_exactly_as_much_as_is_kept_is_kept_whole),
		TAIL_TEST(test_of_many_lines_the_last_are_kept_from_a_line_start_on),
		TAIL_TEST(test_of_one_long_line_the_end_is_kept),
		TAIL_TEST(test_it_begins_with_a_whole_character),
		TAIL_TEST(test_more_than_is_kept_in_one_write_is_cut_too),
		TAIL_TEST(test_catch_up_reads_what_the_loop_has_not),
		TAIL_TEST(test_the_last_words_outlive_the_end_of_file),
		TAIL_TEST(test_finish_logs_the_line_that_has_not_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
