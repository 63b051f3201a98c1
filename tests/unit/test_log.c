/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json_doc.h"
#include "tests/unit/stderr_capture.h"
#include "tests/support/facts.h"

static void test_each_level_has_its_prefix(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("session %s: failed", "3f2a");
	log_warning("w");
	log_info("i");
	log_debug("d");
	assert_string_equal(logged(&capture), "<3>session 3f2a: failed\n<4>w\n<6>i\n<7>d\n");
	capture_stop(&capture);
}

static void test_lines_below_the_level_are_left_out(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	assert_true(log_is_on(LOG_LEVEL_INFO));
	assert_false(log_is_on(LOG_LEVEL_DEBUG));
	log_debug("hidden");
	log_line(LOG_LEVEL_DEBUG, "agent", SPAN_LITERAL("hidden"));
	log_set_level(LOG_LEVEL_ERROR);
	assert_false(log_is_on(LOG_LEVEL_WARNING));
	log_warning("hidden");
	log_error("shown");
	assert_string_equal(logged(&capture), "<3>shown\n");
	capture_stop(&capture);
}

static void test_levels_are_known_by_their_words(void **state)
{
	static const char *const words[] = {"error", "warning", "info", "debug"};
	enum log_level level = LOG_LEVEL_ERROR;
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		assert_true(log_level_parse(words[i], &level));
		assert_int_equal(level, i);
	}
	assert_false(log_level_parse("Error", &level));
	assert_false(log_level_parse("", &level));
	assert_false(log_level_parse("info ", &level));
	assert_int_equal(level, LOG_LEVEL_DEBUG);
}

static void test_terminal_gets_no_prefix(void **state)
{
	struct capture capture;
	capture_terminal(&capture);
	log_warning("to a person");
	assert_string_equal(logged(&capture), "to a person\n");
	capture_stop(&capture);
}

static void test_control_bytes_are_escaped_but_the_tab(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	log_info("a\tb\nc\r\x1b[31m\x7f\x01.");
	log_info("c1 \xc2\x80\xc2\x9b\xc2\x9f nbsp \xc2\xa0.");
	log_info("order \xe2\x80\xae mark \xe2\x80\x8f.");
	assert_string_equal(logged(&capture),
		"<6>a\tb\\x0Ac\\x0D\\x1B[31m\\x7F\\x01.\n"
		"<6>c1 \\xC2\\x80\\xC2\\x9B\\xC2\\x9F nbsp \xc2\xa0.\n"
		"<6>order \\xE2\\x80\\xAE mark \xe2\x80\x8f.\n");
	capture_stop(&capture);
}

static void test_bytes_that_are_no_utf8_are_escaped(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	log_info(
		"good \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 bad \xff\xc3(\xe2\x82 \xed\xa0\x80\xc3");
	assert_string_equal(logged(&capture), "<6>good \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 "
					      "bad \\xFF\\xC3(\\xE2\\x82 \\xED\\xA0\\x80\\xC3\n");
	capture_stop(&capture);
}

static void test_relayed_line_follows_its_subject_without_its_ending(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	log_line(LOG_LEVEL_INFO, "agent", SPAN_LITERAL("plain"));
	log_line(LOG_LEVEL_ERROR, "agent", SPAN_LITERAL("newline\n"));
	log_line(LOG_LEVEL_INFO, "agent", SPAN_LITERAL("both\r\n"));
	log_line(LOG_LEVEL_INFO, "agent", SPAN_LITERAL("a\0b\n\n"));
	log_line(LOG_LEVEL_INFO, "agent", (struct span){NULL, 0});
	assert_string_equal(logged(&capture), "<6>agent: plain\n<3>agent: newline\n<6>agent: both\n"
					      "<6>agent: a\\x00b\\x0A\n<6>agent: \n");
	capture_stop(&capture);
}

/* Logs "<6>", `count` times x, and the tail; returns the line that was logged. */
static const char *log_long(struct capture *capture, size_t count, const char *tail)
{
	static char text[2 * LOG_LINE_MAX];
	memset(text, 'x', count);
	memcpy(text + count, tail, strlen(tail) + 1);
	log_info("%s", text);
	return logged(capture);
}

static void test_longest_line_is_whole(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	const char *line = log_long(&capture, LOG_LINE_MAX - 4 - 2, "\xc3\xa4");
	assert_int_equal(strlen(line), LOG_LINE_MAX);
	assert_string_equal(line + LOG_LINE_MAX - 4, "x\xc3\xa4\n");
	capture_stop(&capture);
}

static void test_longer_line_ends_with_an_ellipsis_after_a_whole_character(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	const char *line = log_long(&capture, LOG_LINE_MAX - 4, "y");
	assert_int_equal(strlen(line), LOG_LINE_MAX);
	assert_string_equal(line + LOG_LINE_MAX - 5, "x\xe2\x80\xa6\n");

	/*
	 * The two bytes would lie across the place of the ellipsis; then there is a third byte too
	 * many.
	 */
	line = log_long(&capture, LOG_LINE_MAX - 4 - 4, "\xc3\xa4zzz");
	assert_int_equal(strlen(line), LOG_LINE_MAX - 1);
	assert_string_equal(line + LOG_LINE_MAX - 6, "x\xe2\x80\xa6\n");

	/* The log does not cut in the middle of an escape, either. */
	line = log_long(&capture, LOG_LINE_MAX - 4 - 5, "\x01zzz");
	assert_int_equal(strlen(line), LOG_LINE_MAX - 2);
	assert_string_equal(line + LOG_LINE_MAX - 7, "x\xe2\x80\xa6\n");

	line = log_long(&capture, LOG_LINE_MAX + 1000, "");
	assert_int_equal(strlen(line), LOG_LINE_MAX);
	capture_stop(&capture);
}

/* The line without its time, the only thing in it that a test cannot know. */
static const char *without_time(const char *line)
{
	static const char start[] = "{\"time\":\"";
	assert_int_equal(strncmp(line, start, strlen(start)), 0);
	const char *rest = strchr(line + strlen(start), ',');
	assert_non_null(rest);
	return rest + 1;
}

static void test_a_line_of_json_has_the_text_of_the_other_format(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	log_set_format(LOG_FORMAT_JSON);
	log_warning("a \"quoted\" \\ path\tand\x01");
	assert_string_equal(without_time(logged(&capture)),
		"\"level\":\"warning\",\"session\":null,\"code\":null,"
		"\"text\":\"a \\\"quoted\\\" \\\\ path\\tand\\\\x01\"}\n");
	log_line(LOG_LEVEL_INFO, "agent", SPAN_LITERAL("line\n"));
	assert_string_equal(without_time(logged(&capture)),
		"\"level\":\"info\",\"session\":null,\"code\":null,\"text\":\"agent: line\"}\n");
	log_set_format(LOG_FORMAT_TEXT);
	capture_stop(&capture);
}

static void test_a_line_of_json_names_the_session_and_the_code(void **state)
{
	struct capture capture;
	struct error err;
	capture_pipe(&capture);
	log_set_format(LOG_FORMAT_JSON);
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST", "gone");
	log_failure(LOG_LEVEL_ERROR, &err, "session %s: %s", "s: \"1\"", err.text);
	assert_string_equal(without_time(logged(&capture)),
		"\"level\":\"error\",\"session\":\"s: \\\"1\\\"\",\"code\":\"LINK_LOST\","
		"\"text\":\"session s: \\\"1\\\": gone\"}\n");
	/*
	 * An error without a reason has the code of its kind. The text is not taken for a subject.
	 */
	error_set(&err, ERROR_TIMEOUT, "session x: late");
	log_failure(LOG_LEVEL_INFO, &err, "%s", err.text);
	assert_string_equal(without_time(logged(&capture)),
		"\"level\":\"info\",\"session\":null,\"code\":\"TIMEOUT_EXCEEDED\","
		"\"text\":\"session x: late\"}\n");
	log_set_format(LOG_FORMAT_TEXT);
	log_failure(LOG_LEVEL_INFO, &err, "%s", err.text);
	assert_string_equal(logged(&capture), "<6>session x: late\n");
	capture_stop(&capture);
}

static bool is_json(const char *line)
{
	struct error err;
	struct json_doc *doc = json_doc_parse(span_of(line), &err);
	json_doc_destroy(doc);
	return doc != NULL;
}

static void test_a_cut_line_of_json_is_whole_json(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	log_set_format(LOG_FORMAT_JSON);
	for (size_t count = LOG_LINE_MAX - 120; count < LOG_LINE_MAX + 4; count++) {
		const char *line = log_long(&capture, count, "\"\"\x01\"");
		assert_in_range(strlen(line), LOG_LINE_MAX - 60, LOG_LINE_MAX);
		assert_true(is_json(line));
	}
	/* Half of a session's name would name another session. */
	char name[LOG_LINE_MAX] = {0};
	memset(name, 's', sizeof(name) - 1);
	log_info("session %s: x", name);
	assert_names(without_time(logged(&capture)), "\"session\":null");
	log_set_format(LOG_FORMAT_TEXT);
	capture_stop(&capture);
}

static void test_formats_are_known_by_their_words(void **state)
{
	enum log_format format = LOG_FORMAT_TEXT;
	assert_true(log_format_parse("json", &format));
	assert_int_equal(format, LOG_FORMAT_JSON);
	assert_false(log_format_parse("JSON", &format));
	assert_false(log_format_parse("", &format));
	assert_int_equal(format, LOG_FORMAT_JSON);
	assert_true(log_format_parse("text", &format));
	assert_int_equal(format, LOG_FORMAT_TEXT);
}

static void test_gone_reader_or_descriptor_is_survived(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	close(capture.read);
	log_info("no reader");
	close(STDERR_FILENO);
	log_init(LOG_LEVEL_INFO);
	log_info("no descriptor");
	capture.read = -1;
	capture_stop(&capture);
	capture_pipe(&capture);
	log_info("back");
	const char *lines = logged(&capture);
	assert_int_equal(strncmp(lines, "<4>log: ", 8), 0);
	assert_names(lines, "dropped");
	assert_string_equal(strchr(lines, '\n') - 3, ": 2\n<6>back\n");
	capture_stop(&capture);
}

static void test_errno_is_kept(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	errno = ENOTDIR;
	log_info("%m");
	log_line(LOG_LEVEL_INFO, "x", SPAN_LITERAL("y"));
	assert_int_equal(errno, ENOTDIR);
	close(capture.read);
	capture.read = -1;
	log_info("dropped");
	assert_int_equal(errno, ENOTDIR);
	capture_stop(&capture);
	capture_pipe(&capture);
	log_info("told");
	assert_non_null(strstr(logged(&capture), ": 1\n<6>told\n"));
	capture_stop(&capture);
}

enum { THREADS = 4, THREAD_LINES = 200 };

static void *log_from_thread(void *data)
{
	for (int i = 0; i < THREAD_LINES; i++) {
		log_info("%c %0100d", *(const char *)data, i);
	}
	return NULL;
}

static void test_threads_do_not_mix_their_lines(void **state)
{
	static const char thread_names[THREADS] = "abcd";
	struct capture capture;
	capture_pipe(&capture);
	/* Room for all of them. */
	assert_true(fcntl(capture.read, F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, log_from_thread,
					 (void *)&thread_names[i]),
			0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	const char *text = logged(&capture);
	int next[THREADS] = {0};
	enum { LINE_LENGTH = 3 + 2 + 100 + 1 };
	assert_int_equal(strlen(text), THREADS * THREAD_LINES * LINE_LENGTH);
	for (int i = 0; i < THREADS * THREAD_LINES; i++) {
		char want[LINE_LENGTH + 1];
		int thread = text[i * LINE_LENGTH + 3] - 'a';
		assert_in_range(thread, 0, THREADS - 1);
		snprintf(want, sizeof(want), "<6>%c %0100d\n", 'a' + thread, next[thread]++);
		assert_memory_equal(text + (size_t)i * LINE_LENGTH, want, LINE_LENGTH);
	}
	capture_stop(&capture);
}

int main(void)
{
	alarm(100); // a log that blocks ends here
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_level_has_its_prefix),
		cmocka_unit_test(test_lines_below_the_level_are_left_out),
		cmocka_unit_test(test_levels_are_known_by_their_words),
		cmocka_unit_test(test_terminal_gets_no_prefix),
		cmocka_unit_test(test_control_bytes_are_escaped_but_the_tab),
		cmocka_unit_test(test_bytes_that_are_no_utf8_are_escaped),
		cmocka_unit_test(test_relayed_line_follows_its_subject_without_its_ending),
		cmocka_unit_test(test_longest_line_is_whole),
		cmocka_unit_test(test_longer_line_ends_with_an_ellipsis_after_a_whole_character),
		cmocka_unit_test(test_a_line_of_json_has_the_text_of_the_other_format),
		cmocka_unit_test(test_a_line_of_json_names_the_session_and_the_code),
		cmocka_unit_test(test_a_cut_line_of_json_is_whole_json),
		cmocka_unit_test(test_formats_are_known_by_their_words),
		cmocka_unit_test(test_gone_reader_or_descriptor_is_survived),
		cmocka_unit_test(test_errno_is_kept),
		cmocka_unit_test(test_threads_do_not_mix_their_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
