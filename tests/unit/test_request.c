/* SPDX-License-Identifier: MIT */
#include "providers/local/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/text.h"

/* Each is between "GET" and the end of a head with Host; "|" stands for CR LF. */
static int read_text(struct request *request, const char *text)
{
	static char head[4096];
	size_t len = 0;
	for (; *text; text++) {
		assert_true(len + 2 < sizeof(head));
		head[len++] = *text == '|' ? '\r' : *text;
		if (*text == '|') {
			head[len++] = '\n';
		}
	}
	return request_read(request, (struct span){head, len});
}

static void test_a_plain_request_is_read(void **state)
{
	struct request request;
	assert_int_equal(read_text(&request,
				 "POST /v1/a?b=%20 HTTP/1.1|Host: x|A:  b c\t|Content-Length: 5||"),
		0);
	assert_true(span_is(request.method, "POST"));
	assert_true(span_is(request.target, "/v1/a?b=%20"));
	assert_int_equal(request.field_count, 3);
	assert_true(span_is(request_find(&request, "a"), "b c"));
	assert_null(request_find(&request, "b").data);
	assert_true(request.has_body);
	assert_int_equal(request.length, 5);
	assert_false(request.awaits_a_go_ahead);
}

static int read_url(struct request *request, const char *target)
{
	static char head[256];
	text_whole(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
	return request_read_url(request, span_of(head));
}

static void test_a_url_has_an_authority_and_a_path(void **state)
{
	static const char *const wrong[] = {"/", "*", "http:/a/", "https://a/", "http://",
		"http:///a", "http://a/%2", "http://a/#", "http://a/ b", "http://a b/",
		"http://a\tb/", "http://a\x7f/", "http://\xc3\xa4/"};
	struct request request;
	assert_int_equal(read_url(&request, "hTTp://a:80/b?c=http://d/"), 0);
	assert_true(span_is(request.authority, "a:80"));
	assert_true(span_is(request.target, "/b?c=http://d/"));
	assert_int_equal(read_url(&request, "http://a"), 0);
	assert_true(span_is(request.authority, "a"));
	assert_true(span_is(request.target, "/"));
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		if (read_url(&request, wrong[i]) != 400) {
			fail_msg("%s", wrong[i]);
		}
	}
}

static void test_what_has_two_readings_is_refused(void **state)
{
	static const struct {
		int status;
		const char *text;
	} wrong[] = {
		{400, "GET / HTTP/1.1||"},
		{400, "GET / HTTP/1.1|Host: x|Host: x||"},
		{400, "GET  / HTTP/1.1|Host: x||"},
		{400, "GET http://x/ HTTP/1.1|Host: x||"},
		{400, "GET /a#b HTTP/1.1|Host: x||"},
		{400, "GET /%2 HTTP/1.1|Host: x||"},
		{400, "GET /%zz HTTP/1.1|Host: x||"},
		{400, "GET /\x80 HTTP/1.1|Host: x||"},
		{400, "GET / HTTP/1.1|Host: x\n||"},
		{400, "GET / HTTP/1.1|Host: x|A : b||"},
		{400, "GET / HTTP/1.1|Host: x|A: b| c||"},
		{400, "GET / HTTP/1.1|Host: x|: b||"},
		{400, "GET / HTTP/1.1|Host: x|A||"},
		{400, "GET / HTTP/1.1|Host: x|Content-Length: 1||"},
		{400, "POST / HTTP/1.1|Host: x|Content-Length: -1||"},
		{400, "POST / HTTP/1.1|Host: x|Content-Length: 1, 1||"},
		{400, "POST / HTTP/1.1|Host: x|Content-Length: 0x1||"},
		{400, "POST / HTTP/1.1|Host: x|Content-Length:||"},
		{400, "POST / HTTP/1.1|Host: x|Content-Length: 1234567890123456789||"},
		{400, "POST / HTTP/1.1|Host: x|Content-Length: 1|Transfer-Encoding: chunked||"},
		{501, "POST / HTTP/1.1|Host: x|Transfer-Encoding: chunked|Transfer-Encoding: "
		      "chunked||"},
		{501, "POST / HTTP/1.1|Host: x|Transfer-Encoding: identity||"},
		{417, "POST / HTTP/1.1|Host: x|Expect: more||"},
		{405, "TRACE / HTTP/1.1|Host: x||"},
		{405, "CONNECT /:1 HTTP/1.1|Host: x||"},
		{505, "GET / HTTP/1.0|Host: x||"},
		{505, "GET / HTTP/2|Host: x||"},
		{400, "GET / FTP/1.1|Host: x||"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		struct request request;
		int status = read_text(&request, wrong[i].text);
		if (status != wrong[i].status) {
			fail_msg("%d: %s", status, wrong[i].text);
		}
	}
}

static void test_a_path_is_below_another_one_for_every_reader(void **state)
{
	static const char *const below[] = {"/v1", "/v1/", "/v1?a=/../", "/v1/a", "/v1/a..b/...",
		"/v1/%2e%2e%2e", "/v1//a", "/v1/a;b=..", "/v1/%252e%252e/"};
	static const char *const other[] = {"/", "/v2", "/v1a", "/v1/..", "/v1/../v1", "/v1/.",
		"/v1/%2E%2e/x", "/v1/%2e", "/v1/a%2f..%2Fb", "/v1/..%5cx", "/v1/..;a/x", "/v1%2f..",
		"/v1/%00/..", "/./v1"};
	for (size_t i = 0; i < ARRAY_LENGTH(below); i++) {
		assert_true(request_is_below(span_of(below[i]), "/v1"));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(other); i++) {
		if (request_is_below(span_of(other[i]), "/v1")) {
			fail_msg("%s", other[i]);
		}
	}
	assert_true(request_is_below(span_of("/a"), ""));
	assert_false(request_is_below(span_of("/a/../b"), ""));
}

static void test_fields_of_the_hop_and_of_the_key_are_ours(void **state)
{
	static const char *const ours[] = {"host", "HOST", "Authorization", "x-api-key",
		"Proxy-Anything", "Transfer-Encoding", "X-Hop", "x-other-hop"};
	static const char *const others[] = {
		"Accept", "Content-Type", "anthropic-version", "x-ho", "proxy"};
	struct request request;
	assert_int_equal(read_text(&request, "GET / HTTP/1.1|Host: x|Connection: close,x-hop|"
					     "Connection: X-Other-Hop||"),
		0);
	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++) {
		assert_true(request_field_is_ours(&request, span_of(ours[i])));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_false(request_field_is_ours(&request, span_of(others[i])));
	}
}

static void test_a_head_ends_with_its_empty_line(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nmore";
	size_t end = sizeof("GET / HTTP/1.1\r\nHost: x\r\n\r\n") - 1;
	for (size_t seen = 0; seen < end; seen++) {
		assert_int_equal(request_head_size(span_of(text), seen), end);
		assert_int_equal(request_head_size((struct span){text, seen}, 0), 0);
	}
}

static enum request_step read_body(const char *text, bool is_chunked, uint64_t length, char *out,
	size_t size, size_t *out_used)
{
	const struct request request = {.is_chunked = is_chunked, .length = length};
	struct request_body body;
	size_t len;
	request_body_begin(&body, &request);
	enum request_step step =
		request_body_read(&body, span_of(text), out_used, out, size - 1, &len);
	out[step == REQUEST_WRONG ? 0 : len] = '\0';
	return step;
}

static void test_a_body_ends_where_it_says(void **state)
{
	char out[64];
	size_t used;
	assert_int_equal(read_body("helloGET", false, 5, out, sizeof(out), &used), REQUEST_END);
	assert_string_equal(out, "hello");
	assert_int_equal(used, 5);
	assert_int_equal(read_body("GET", false, 0, out, sizeof(out), &used), REQUEST_END);
	assert_int_equal(used, 0);
	assert_int_equal(read_body("5\r\nhello\r\n00\r\n\r\nGET", true, 0, out, sizeof(out), &used),
		REQUEST_END);
	assert_string_equal(out, "hello");
	assert_int_equal(used, 16);
	assert_int_equal(read_body("5\r\nhello\r\n", true, 0, out, 4, &used), REQUEST_MORE);
	assert_string_equal(out, "hel");
	assert_int_equal(used, 6);
}

static void test_wrong_chunks_are_refused(void **state)
{
	static const char *const wrong[] = {"x", "\r\n", " 5\r\nhello", "5 \r\nhello",
		"5;a\r\nhello", "5\nhello", "5\r\rhello", "5\r\nhello5", "5\r\nhello\n",
		"0\r\nA: b\r\n\r\n", "0\r\n\n", "-1\r\n", "0x1\r\n", "1234567890123\r\n"};
	char out[64];
	size_t used;
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		if (read_body(wrong[i], true, 0, out, sizeof(out), &used) != REQUEST_WRONG) {
			fail_msg("%s", wrong[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plain_request_is_read),
		cmocka_unit_test(test_a_url_has_an_authority_and_a_path),
		cmocka_unit_test(test_what_has_two_readings_is_refused),
		cmocka_unit_test(test_a_path_is_below_another_one_for_every_reader),
		cmocka_unit_test(test_fields_of_the_hop_and_of_the_key_are_ours),
		cmocka_unit_test(test_a_head_ends_with_its_empty_line),
		cmocka_unit_test(test_a_body_ends_where_it_says),
		cmocka_unit_test(test_wrong_chunks_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
