/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void add(struct reply *reply, const char *line)
{
	struct error err;
	assert_true(reply_add_line(reply, span_of(line), &err));
}

static void expect_head(const struct reply *reply, bool is_head, const char *wanted)
{
	struct buf out;
	buf_init(&out, REPLY_HEAD_MAX + 256);
	reply_write_head(reply, is_head, &out);
	assert_true(span_is(buf_span(&out), wanted));
	buf_finish(&out);
}

static void test_what_is_for_our_connection_is_left_out(void **state)
{
	struct reply reply;
	reply_init(&reply);
	add(&reply, "HTTP/1.1 100 Continue\r\n");
	add(&reply, "X-Early: 1\r\n");
	add(&reply, "\r\n");
	assert_false(reply.is_whole);
	add(&reply, "HTTP/1.1 200 OK\r\n");
	add(&reply, "Content-Type: text/event-stream\r\n");
	add(&reply, "Transfer-Encoding: chunked\r\n");
	add(&reply, "Connection: keep-alive\r\n");
	add(&reply, "alt-svc: h3\r\n");
	add(&reply, "\r\n");
	assert_true(reply.is_whole);
	expect_head(&reply, false,
		"HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
		"Connection: close\r\n\r\n");
	expect_head(&reply, true,
		"HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
	reply_finish(&reply);
}

static void test_a_length_stays(void **state)
{
	struct reply reply;
	reply_init(&reply);
	add(&reply, "HTTP/1.1 404 No\r\n");
	add(&reply, "Content-Length: 3\r\n");
	add(&reply, "\r\n");
	assert_true(reply_has_body(&reply, false));
	assert_false(reply_has_body(&reply, true));
	expect_head(
		&reply, false, "HTTP/1.1 404 \r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
	reply_finish(&reply);
}

static void test_answers_without_a_body_get_none(void **state)
{
	struct reply reply;
	reply_init(&reply);
	add(&reply, "HTTP/1.1 204 None\r\n");
	add(&reply, "\r\n");
	expect_head(&reply, false, "HTTP/1.1 204 \r\nConnection: close\r\n\r\n");
	reply_finish(&reply);
}

static void test_wrong_and_long_heads_are_refused(void **state)
{
	static const char *const wrong[] = {"HTTP/1.1 x\r\n", "HTTP/1.1\r\n", "HTTP/1.1 099 a\r\n",
		"no colon\r\n", ": b\r\n", "A: b\rC: d\r\n"};
	struct reply reply;
	struct error err;
	reply_init(&reply);
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		assert_false(reply_add_line(&reply, span_of(wrong[i]), &err));
	}
	add(&reply, "HTTP/1.1 200 OK\r\n");
	size_t count = 0;
	while (reply_add_line(&reply, SPAN_LITERAL("A: 0123456789\r\n"), &err)) {
		count++;
	}
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_true(count * 15 <= REPLY_HEAD_MAX);
	reply_finish(&reply);
}

static void test_chunks_and_errors_are_whole(void **state)
{
	struct buf out;
	buf_init(&out, 1024);
	reply_write_chunk(SPAN_LITERAL("0123456789abcdef!"), &out);
	reply_write_chunk(SPAN_LITERAL(""), &out);
	assert_true(span_is(buf_span(&out), "11\r\n0123456789abcdef!\r\n0\r\n\r\n"));
	buf_clear(&out);
	reply_write_error(403, "no", &out);
	assert_true(span_is(buf_span(&out),
		"HTTP/1.1 403 \r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: "
		"close\r\n\r\nno\n"));
	buf_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_for_our_connection_is_left_out),
		cmocka_unit_test(test_a_length_stays),
		cmocka_unit_test(test_answers_without_a_body_get_none),
		cmocka_unit_test(test_wrong_and_long_heads_are_refused),
		cmocka_unit_test(test_chunks_and_errors_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
