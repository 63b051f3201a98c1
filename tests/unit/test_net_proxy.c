/* SPDX-License-Identifier: MIT */
#include "providers/local/net/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

static enum proxy_step read_once(struct span input, size_t *out_used, struct proxy_target *target)
{
	struct proxy proxy = {.kind = PROXY_UNKNOWN};
	struct span answer;
	enum proxy_step step = proxy_read(&proxy, input, out_used, target, &answer);
	proxy_finish(&proxy);
	return step;
}

static void assert_goes_to(const char *head, const char *name, unsigned port)
{
	char text[ADDRESS_TEXT_SIZE];
	struct proxy_target target;
	size_t used;
	assert_int_equal(read_once(span_of(head), &used, &target), PROXY_TARGET);
	assert_int_equal(target.port, port);
	if (target.is_address) {
		address_print(&target.address, text);
	}
	assert_string_equal(target.is_address ? text : target.name, name);
	assert_string_equal(strstr(head, "\r\n\r\n") + 4, head + used);
}

static void test_connect_names_a_host_and_a_port(void **state)
{
	assert_goes_to(
		"CONNECT Example.com:443 HTTP/1.1\r\nHost: x:1\r\n\r\nHELLO", "example.com", 443);
	assert_goes_to("CONNECT a.b:1 HTTP/1.0\r\n\r\n", "a.b", 1);
	assert_goes_to("CONNECT 192.0.2.7:65535 HTTP/1.1\r\n\r\n", "192.0.2.7", 65535);
	assert_goes_to("CONNECT [2001:db8::7]:22 HTTP/1.1\r\n\r\n", "2001:db8::7", 22);
}

static void test_other_heads_are_wrong(void **state)
{
	static const char *const heads[] = {"GET http://a/ HTTP/1.1\r\n\r\n", "connect a:1",
		"CONNECT a HTTP/1.1\r\n\r\n", "CONNECT a: HTTP/1.1\r\n\r\n",
		"CONNECT a:0 HTTP/1.1\r\n\r\n", "CONNECT a:65536 HTTP/1.1\r\n\r\n",
		"CONNECT a:123456 HTTP/1.1\r\n\r\n", "CONNECT a:+1 HTTP/1.1\r\n\r\n",
		"CONNECT :1 HTTP/1.1\r\n\r\n", "CONNECT 127.1:1 HTTP/1.1\r\n\r\n",
		"CONNECT ::1:80 HTTP/1.1\r\n\r\n", "CONNECT a/b:1 HTTP/1.1\r\n\r\n",
		"CONNECT a@b:1 HTTP/1.1\r\n\r\n", "CONNECT a\r\nX:1 HTTP/1.1\r\n\r\n",
		"CONNECT a:1\r\n\r\n", "CONNECT  HTTP/1.1\r\n\r\n", "CONNECT \r\n\r\n", "\4\1",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/1.0\r\nHost: a\r\n\r\n",
		"GET http://a:/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a:0/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://b@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://127.1/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a\\b/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"TRACE http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET http://a/ HTTP/1.1\nHost: a\n\r\n\r\n",
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		 "Content-Length: 1\r\n\r\n"),
		("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
		 "Content-Length: 2\r\n\r\n")};
	for (size_t i = 0; i < ARRAY_LENGTH(heads); i++) {
		struct proxy proxy = {.kind = PROXY_UNKNOWN};
		struct proxy_target target;
		struct span answer;
		size_t used;
		if (proxy_read(&proxy, span_of(heads[i]), &used, &target, &answer) != PROXY_WRONG) {
			fail_msg("%s", heads[i]);
		}
		assert_true(span_starts_with(answer, SPAN_LITERAL("HTTP/1.1 ")));
	}
}

static void test_a_head_may_come_byte_by_byte(void **state)
{
	static const char head[] = "CONNECT a.b:80 HTTP/1.1\r\n\r\n";
	for (size_t len = 0; len < sizeof(head) - 1; len++) {
		struct proxy_target target;
		size_t used;
		assert_int_equal(read_once((struct span){head, len}, &used, &target), PROXY_MORE);
		assert_int_equal(used, 0);
	}
}

static void test_a_head_has_an_end(void **state)
{
	static char head[PROXY_HEAD_MAX];
	const struct span method = SPAN_LITERAL("CONNECT ");
	struct proxy_target target;
	size_t used;
	memset(head, 'a', sizeof(head));
	memcpy(head, method.data, method.len);
	assert_int_equal(
		read_once((struct span){head, sizeof(head) - 1}, &used, &target), PROXY_MORE);
	assert_int_equal(read_once((struct span){head, sizeof(head)}, &used, &target), PROXY_WRONG);
}

static void assert_request(const char *head, const char *name, unsigned port, const char *onward)
{
	char text[ADDRESS_TEXT_SIZE];
	struct proxy proxy = {.kind = PROXY_UNKNOWN};
	struct proxy_target target;
	struct span answer;
	size_t used = 0;
	for (size_t len = 0; used == 0; len++) {
		enum proxy_step step =
			proxy_read(&proxy, (struct span){head, len}, &used, &target, &answer);
		assert_int_equal(step, used > 0 ? PROXY_TARGET : PROXY_MORE);
	}
	assert_string_equal(head + used, "hello");
	assert_int_equal(proxy.kind, PROXY_REQUEST);
	assert_int_equal(target.port, port);
	if (target.is_address) {
		address_print(&target.address, text);
	}
	assert_string_equal(target.is_address ? text : target.name, name);
	assert_int_equal(proxy.head_len, strlen(onward));
	assert_memory_equal(proxy.head, onward, proxy.head_len);
	assert_int_equal(proxy.body.left, proxy.body.is_chunked ? 0 : 5);
	assert_int_equal(proxy_answer(&proxy, PROXY_CONNECTED).len, 0);
	assert_true(span_starts_with(
		proxy_answer(&proxy, PROXY_REFUSED), SPAN_LITERAL("HTTP/1.1 403 ")));
	proxy_finish(&proxy);
}

static void test_a_request_is_written_anew_without_the_fields_of_the_hop(void **state)
{
	assert_request("POST http://Example.com/a?b=http://c/ HTTP/1.1\r\nhost: other.example\r\n"
		       "Proxy-Connection: keep-alive\r\nProxy-Authorization: x\r\nTE: trailers\r\n"
		       "Connection: keep-alive, A, content-length\r\nA: b\r\nKeep-Alive: 5\r\n"
		       "Upgrade: h2c\r\nCookie:c\r\ncontent-length: 05\r\nAuthorization: d\r\n"
		       "\r\nhello",
		"example.com", 80,
		"POST /a?b=http://c/ HTTP/1.1\r\nHost: Example.com\r\nConnection: close\r\n"
		"Content-Length: 5\r\nCookie: c\r\nAuthorization: d\r\n\r\n");
	assert_request("PUT HTTP://[2001:db8::7]:8080 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
		       "\r\nhello",
		"2001:db8::7", 8080,
		"PUT / HTTP/1.1\r\nHost: [2001:db8::7]:8080\r\nConnection: close\r\n"
		"Content-Length: 5\r\n\r\n");
	assert_request(
		"POST http://a.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n"
		"\r\nhello",
		"a.example", 80,
		"POST / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n"
		"Transfer-Encoding: chunked\r\n\r\n");
}

/* A greeting, then `request`, each byte by byte. */
static enum proxy_step ask_socks(
	struct span request, size_t *out_used, struct proxy_target *target, struct span *answer)
{
	struct proxy proxy = {.kind = PROXY_UNKNOWN};
	enum proxy_step step = PROXY_MORE;
	for (size_t len = 0; len < 4; len++) {
		step = proxy_read(&proxy, (struct span){"\5\2\2\0", len}, out_used, target, answer);
		assert_int_equal(step, PROXY_MORE);
	}
	step = proxy_read(&proxy, SPAN_LITERAL("\5\2\2\0"), out_used, target, answer);
	assert_int_equal(step, PROXY_ANSWER);
	assert_int_equal(*out_used, 4);
	assert_true(span_equals(*answer, SPAN_LITERAL("\5\0")));
	for (size_t len = 0; len <= request.len; len++) {
		step = proxy_read(
			&proxy, (struct span){request.data, len}, out_used, target, answer);
		if (step != PROXY_MORE) {
			break;
		}
	}
	return step;
}

static void assert_socks(struct span request, const char *name, unsigned port)
{
	char text[ADDRESS_TEXT_SIZE];
	struct proxy_target target;
	struct span answer;
	size_t used;
	assert_int_equal(ask_socks(request, &used, &target, &answer), PROXY_TARGET);
	assert_int_equal(used, request.len);
	assert_int_equal(target.port, port);
	if (target.is_address) {
		address_print(&target.address, text);
	}
	assert_string_equal(target.is_address ? text : target.name, name);
}

static void test_socks_names_a_host_and_a_port(void **state)
{
	assert_socks(SPAN_LITERAL("\5\1\0\3\3A.b\1\xbb"), "a.b", 443);
	assert_socks(SPAN_LITERAL("\5\1\0\1\xc0\0\2\7\0\x16"), "192.0.2.7", 22);
	assert_socks(SPAN_LITERAL("\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\7\0\x16"),
		"2001:db8::7", 22);
	/* curl --socks5-hostname sends an address as if it were a name. */
	assert_socks(SPAN_LITERAL("\5\1\0\3\11"
				  "127.0.0.1\0\x16"),
		"127.0.0.1", 22);
}

static void assert_socks_wrong(struct span request, unsigned char code)
{
	struct proxy_target target;
	struct span answer;
	size_t used;
	assert_int_equal(ask_socks(request, &used, &target, &answer), PROXY_WRONG);
	assert_int_equal(answer.len, 10);
	assert_int_equal((unsigned char)answer.data[1], code);
}

static void test_other_socks_is_wrong(void **state)
{
	assert_socks_wrong(SPAN_LITERAL("\4"), 1);
	assert_socks_wrong(SPAN_LITERAL("\5\2\0\1\0\0\0\0\0\0"), 7);
	assert_socks_wrong(SPAN_LITERAL("\5\3\0\3\1"), 7);
	assert_socks_wrong(SPAN_LITERAL("\5\1\0\2\0\0"), 8);
	assert_socks_wrong(SPAN_LITERAL("\5\1\0\3\0\0\1"), 1);
	assert_socks_wrong(SPAN_LITERAL("\5\1\0\3\1a\0\0"), 1);
	assert_socks_wrong(SPAN_LITERAL("\5\1\0\3\1\0\0\1"), 1);
	assert_socks_wrong(SPAN_LITERAL("\5\1\0\3\5"
					"127.1\0\1"),
		1);
}

static void test_socks_with_a_password_is_wrong(void **state)
{
	struct proxy proxy = {.kind = PROXY_UNKNOWN};
	struct proxy_target target;
	struct span answer;
	size_t used;
	assert_int_equal(
		proxy_read(&proxy, SPAN_LITERAL("\5\1\2"), &used, &target, &answer), PROXY_WRONG);
	assert_true(span_equals(answer, SPAN_LITERAL("\5\xff")));
}

static void test_each_end_has_its_answer(void **state)
{
	static const struct {
		enum proxy_end end;
		const char *http;
		char socks;
	} cases[] = {{PROXY_CONNECTED, "HTTP/1.1 200 ", 0}, {PROXY_REFUSED, "HTTP/1.1 403 ", 2},
		{PROXY_NOT_FOUND, "HTTP/1.1 502 ", 4}, {PROXY_UNREACHABLE, "HTTP/1.1 502 ", 5}};
	const struct proxy connect = {.kind = PROXY_CONNECT};
	const struct proxy socks = {.kind = PROXY_SOCKS};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct span http = proxy_answer(&connect, cases[i].end);
		assert_true(span_starts_with(http, span_of(cases[i].http)));
		assert_non_null(memmem(http.data, http.len, "\r\n\r\n", 4));
		struct span answer = proxy_answer(&socks, cases[i].end);
		assert_int_equal(answer.len, 10);
		assert_int_equal(answer.data[1], cases[i].socks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect_names_a_host_and_a_port),
		cmocka_unit_test(test_other_heads_are_wrong),
		cmocka_unit_test(test_a_head_may_come_byte_by_byte),
		cmocka_unit_test(test_a_head_has_an_end),
		cmocka_unit_test(test_a_request_is_written_anew_without_the_fields_of_the_hop),
		cmocka_unit_test(test_socks_names_a_host_and_a_port),
		cmocka_unit_test(test_other_socks_is_wrong),
		cmocka_unit_test(test_socks_with_a_password_is_wrong),
		cmocka_unit_test(test_each_end_has_its_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
