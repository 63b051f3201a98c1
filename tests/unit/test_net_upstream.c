/* SPDX-License-Identifier: MIT */
#include "providers/local/net/upstream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/text.h"
#include "tests/support/facts.h"

static struct upstream upstream;

static void read_from(const char *proxy, const char *except)
{
	const char *const environment[] = {proxy, except, NULL};
	struct error err;
	if (!upstream_read(&upstream, environment, &err)) {
		fail_msg("%s: %s", proxy, err.text);
	}
	assert_true(upstream_is_whole(&upstream));
}

static struct proxy_target target_of(const char *text)
{
	struct proxy_target target;
	assert_true(proxy_read_authority(&target, span_of(text), 443));
	return target;
}

static bool takes(const char *text)
{
	const struct proxy_target target = target_of(text);
	return upstream_takes(&upstream, &target);
}

static bool is_it(const char *text)
{
	const struct proxy_target target = target_of(text);
	return upstream_is(&upstream, &target);
}

/* ---- the variables ---- */

static void test_the_variables_are_those_of_curl_in_its_order(void **state)
{
	struct error err;
	const char *const all[] = {"NO_PROXY=a.example", "ALL_PROXY=http://d", "all_proxy=http://c",
		"HTTPS_PROXY=http://b", "https_proxy=http://a", NULL};
	static const char *const expected[] = {"d", "c", "b", "a"};
	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		/* What is empty is not set. */
		const char *some[ARRAY_LENGTH(all) + 1] = {i < 3 ? "https_proxy=" : "A=b"};
		memcpy(some + 1, all, (i + 2) * sizeof(*some));
		assert_true(upstream_read(&upstream, some, &err));
		assert_string_equal(upstream.place.name, expected[i]);
		assert_int_equal(upstream.place.port, 1080);
		assert_false(takes("a.example"));
	}
	const char *const plain[] = {"http_proxy=http://a", "HTTP_PROXY=http://a", NULL};
	assert_true(upstream_read(&upstream, plain, &err));
	assert_false(upstream_is_set(&upstream));
	assert_true(upstream_is_whole(&upstream));
	assert_false(takes("a.example"));
}

static void test_a_proxy_is_a_host_a_port_and_a_login(void **state)
{
	static const struct {
		const char *value;
		const char *host;
		uint16_t port;
		const char *login;
	} cases[] = {
		{"http://Proxy.Example:3128", "proxy.example", 3128, ""},
		{"HTTP://proxy.example:80/", "proxy.example", 80, ""},
		{"proxy.example:8080", "proxy.example", 8080, ""},
		{"http://10.0.0.5:3128", "10.0.0.5", 3128, ""},
		{"http://[2001:db8::5]:3128/x", "2001:db8::5", 3128, ""},
		{"http://me@proxy.example", "proxy.example", 1080, "me:"},
		{"http://me:secret@proxy.example", "proxy.example", 1080, "me:secret"},
		{"http://me:a%40b%3A/@c:d@proxy.example:1", "proxy.example", 1, "me:a@b:/@c:d"},
		{"http://dom%5Cme:p%0d%0a@proxy.example", "proxy.example", 1080, "dom\\me:p\r\n"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char variable[256], host[NAME_SIZE];
		text_whole(variable, sizeof(variable), "HTTPS_PROXY=%s", cases[i].value);
		read_from(variable, NULL);
		proxy_print_host(&upstream.place, host);
		assert_string_equal(host, cases[i].host);
		assert_int_equal(upstream.place.port, cases[i].port);
		assert_string_equal(upstream.variable, "HTTPS_PROXY");
		uint8_t *login;
		size_t len;
		assert_true(base64_decode(span_of(upstream.key), &login, &len));
		assert_int_equal(len, strlen(cases[i].login));
		assert_memory_equal(login, cases[i].login, len);
		free(login);
	}
}

static void test_the_error_for_another_proxy_has_no_password(void **state)
{
	static const char *const wrong[] = {"socks5://me:secret@proxy.example",
		"https://secret.example", "http://", "http://me:secret@",
		"http://me:secret@proxy.example:port", "http://me:secret@proxy.example:0",
		"http://me:secret@proxy.example:65536", "http://me:secret%4@proxy.example",
		"http://me:secret%zz@proxy.example", "http://secret example",
		"http://secret\nexample", "://secret", "http://0x7f.1"};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		char variable[128];
		struct error err;
		text_whole(variable, sizeof(variable), "all_proxy=%s", wrong[i]);
		const char *const environment[] = {variable, NULL};
		if (upstream_read(&upstream, environment, &err)) {
			fail_msg("%s", wrong[i]);
		}
		assert_int_equal(err.code, ERROR_CONFIG);
		assert_names(err.text, "all_proxy | http://HOST:PORT");
		assert_null(strstr(err.text, "secret"));
	}
}

static void test_what_is_too_long_is_refused(void **state)
{
	static char variable[2 * UPSTREAM_EXCEPT_SIZE];
	struct error err;
	const char *const environment[] = {variable, "https_proxy=http://a", NULL};
	memset(variable, 'x', sizeof(variable) - 1);
	memcpy(variable, "no_proxy=", 9);
	assert_false(upstream_read(&upstream, environment, &err));
	assert_names(err.text, "no_proxy | 8191");
	variable[9 + UPSTREAM_EXCEPT_SIZE - 1] = '\0';
	assert_true(upstream_read(&upstream, environment, &err));
	assert_true(upstream_is_whole(&upstream));
	upstream.except[UPSTREAM_EXCEPT_SIZE - 1] = 'x';
	assert_false(upstream_is_whole(&upstream));
	memset(variable, 'x', sizeof(variable) - 1);
	memcpy(variable, "https_proxy=http://u:", 21);
	memcpy(variable + 21 + UPSTREAM_LOGIN_MAX - 1, "@a", 3);
	assert_false(upstream_read(&upstream, environment, &err));
	memcpy(variable + 21 + UPSTREAM_LOGIN_MAX - 2, "@a", 3);
	assert_true(upstream_read(&upstream, environment, &err));
}

/* ---- targets ---- */

static void test_no_proxy_lists_names_addresses_and_networks(void **state)
{
	read_from("https_proxy=proxy.example:3128", "no_proxy= one.example,.Two.example. ,*.three."
						    "example\t10.0.0.0/8,192.0.2.7 [2001:db8::7],"
						    "fd00::/8,four.example:443,,");
	static const char *const direct[] = {"one.example", "x.one.example", "two.example",
		"y.x.two.example:80", "three.example", "x.three.example", "10.255.0.1", "192.0.2.7",
		"[2001:db8::7]", "[fd12::1]"};
	static const char *const proxied[] = {"example", "xone.example", "one.example.org",
		"four.example", "11.0.0.1", "192.0.2.8", "[2001:db8::8]", "[fe80::1]"};
	for (size_t i = 0; i < ARRAY_LENGTH(direct); i++) {
		if (takes(direct[i])) {
			fail_msg("%s", direct[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(proxied); i++) {
		if (!takes(proxied[i])) {
			fail_msg("%s", proxied[i]);
		}
	}
	read_from("https_proxy=proxy.example:3128", "no_proxy=one.example, *");
	assert_false(takes("other.example"));
	assert_false(takes("10.0.0.1"));
	read_from("https_proxy=proxy.example:3128", NULL);
	assert_true(takes("one.example"));
	assert_false(takes("localhost"));
	assert_false(takes("127.0.0.1"));
}

static void test_the_proxy_itself_is_known(void **state)
{
	read_from("https_proxy=proxy.example:3128", NULL);
	assert_true(is_it("Proxy.example:3128"));
	assert_false(is_it("proxy.example:3129"));
	assert_false(is_it("x.proxy.example:3128"));
	read_from("https_proxy=10.0.0.5:3128", NULL);
	assert_true(is_it("10.0.0.5:3128"));
	assert_false(is_it("10.0.0.6:3128"));
	assert_false(is_it("[::ffff:10.0.0.6]:3128"));
	read_from("https_proxy=[::1]:3128", NULL);
	static const char *const here[] = {
		"127.0.0.1:3128", "127.1.2.3:3128", "localhost:3128", "[::1]:3128"};
	for (size_t i = 0; i < ARRAY_LENGTH(here); i++) {
		assert_true(is_it(here[i]));
	}
	assert_false(is_it("localhost:3129"));
}

/* Programs may know a proxy that the broker does not use. */
static void test_the_proxies_of_the_other_variables_are_known(void **state)
{
	struct error err;
	const char *const environment[] = {"https_proxy=http://a.example:3128",
		"HTTPS_PROXY=http://A.example:3128/", "all_proxy=socks5h://me:s/e@10.0.0.5:1",
		"ALL_PROXY=https://tls.example", "http_proxy=b.example:3128",
		"HTTP_PROXY=http://[::1]:8080", NULL};
	static const char *const known[] = {"a.example:3128", "b.example:3128", "10.0.0.5:1",
		"tls.example:443", "127.0.0.1:8080", "localhost:8080"};
	static const char *const unknown[] = {
		"b.example:3129", "10.0.0.6:1", "tls.example:1080", "localhost:3128", "me:1"};
	const struct proxy_target *places[UPSTREAM_PLACES_MAX];
	assert_true(upstream_read(&upstream, environment, &err));
	assert_true(upstream_is_whole(&upstream));
	assert_string_equal(upstream.place.name, "a.example");
	assert_int_equal(upstream.other_count, 4);
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		if (!is_it(known[i])) {
			fail_msg("%s", known[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(unknown); i++) {
		if (is_it(unknown[i])) {
			fail_msg("%s", unknown[i]);
		}
	}
	assert_int_equal(upstream_list(&upstream, 3128, places), 2);
	assert_int_equal(upstream_list(&upstream, 3129, places), 0);
	upstream.other_count = UPSTREAM_PLACES_MAX;
	assert_false(upstream_is_whole(&upstream));
	upstream.other_count = 4;
	upstream.others[3].port = 0;
	assert_false(upstream_is_whole(&upstream));
	/* No proxy is used; what is no proxy at all is no error. */
	read_from("http_proxy=http://me:secret@cache.example:3128", "HTTP_PROXY=http://0x7f.1");
	assert_false(upstream_is_set(&upstream));
	assert_true(is_it("cache.example:3128"));
	assert_string_equal(upstream.key, "");
	assert_int_equal(upstream.other_count, 1);
}

/* ---- the request and its answer ---- */

static void test_the_request_names_the_target_and_has_the_login(void **state)
{
	char text[UPSTREAM_HEAD_SIZE];
	read_from("https_proxy=me:secret@proxy.example", NULL);
	struct proxy_target target = target_of("a.example:22");
	size_t len = upstream_write(&upstream, &target, text);
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n"
				  "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n");
	read_from("https_proxy=proxy.example", NULL);
	target = target_of("[2001:db8::7]:443");
	upstream_write(&upstream, &target, text);
	assert_string_equal(text, "CONNECT [2001:db8::7]:443 HTTP/1.1\r\n"
				  "Host: [2001:db8::7]:443\r\n\r\n");
	memset(&target, 0, sizeof(target));
	memset(target.name, 'a', NAME_MAX_BYTES);
	target.port = 65535;
	memset(upstream.key, 'k', sizeof(upstream.key) - 1);
	len = upstream_write(&upstream, &target, text);
	assert_int_equal(len, strlen(text));
}

static enum upstream_step read_answer(const char *text, size_t *out_used, unsigned *out_status)
{
	*out_used = 0;
	*out_status = 0;
	return upstream_read_answer(span_of(text), out_used, out_status);
}

static void test_answers(void **state)
{
	static const struct {
		const char *text;
		enum upstream_step step;
		size_t used;
		unsigned status;
	} cases[] = {
		{"", UPSTREAM_MORE, 0, 0},
		{"HTTP/1.", UPSTREAM_MORE, 0, 0},
		{"HTTP/1.1 200 OK\r\n\r", UPSTREAM_MORE, 0, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", UPSTREAM_ANSWERED, 19, 200},
		{"HTTP/1.0 200\r\n\r\nSSH-2.0", UPSTREAM_ANSWERED, 16, 200},
		{"HTTP/1.1 204 \r\nContent-Length: 9\r\n\r\nx", UPSTREAM_ANSWERED, 36, 204},
		{"HTTP/1.1 407 No\r\n\r\n", UPSTREAM_ANSWERED, 19, 407},
		{"HTTP/1.1 2000\r\n\r\n", UPSTREAM_WRONG, 0, 0},
		{"HTTP/1.1  200\r\n\r\n", UPSTREAM_WRONG, 0, 0},
		{"HTTP/2 200\r\n\r\n", UPSTREAM_WRONG, 0, 0},
		{"http/1.1 200\r\n\r\n", UPSTREAM_WRONG, 0, 0},
		{"SSH-2.0-x\r\n", UPSTREAM_WRONG, 0, 0},
		{"\r\n\r\n", UPSTREAM_WRONG, 0, 0},
		{"HTTP/1.1 2\r\n\r\n", UPSTREAM_WRONG, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		size_t used;
		unsigned status;
		if (read_answer(cases[i].text, &used, &status) != cases[i].step) {
			fail_msg("%s", cases[i].text);
		}
		assert_int_equal(used, cases[i].used);
		assert_int_equal(status, cases[i].status);
	}
}

static void test_an_answer_without_an_end_is_wrong(void **state)
{
	static char text[UPSTREAM_ANSWER_MAX + 5];
	size_t used;
	unsigned status;
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "HTTP/1.1 200 ", 13);
	text[UPSTREAM_ANSWER_MAX - 1] = '\0';
	assert_int_equal(read_answer(text, &used, &status), UPSTREAM_MORE);
	text[UPSTREAM_ANSWER_MAX - 1] = 'x';
	memcpy(text + UPSTREAM_ANSWER_MAX, "\r\n\r\n", 5);
	assert_int_equal(read_answer(text, &used, &status), UPSTREAM_WRONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_variables_are_those_of_curl_in_its_order),
		cmocka_unit_test(test_a_proxy_is_a_host_a_port_and_a_login),
		cmocka_unit_test(test_the_error_for_another_proxy_has_no_password),
		cmocka_unit_test(test_what_is_too_long_is_refused),
		cmocka_unit_test(test_no_proxy_lists_names_addresses_and_networks),
		cmocka_unit_test(test_the_proxy_itself_is_known),
		cmocka_unit_test(test_the_proxies_of_the_other_variables_are_known),
		cmocka_unit_test(test_the_request_names_the_target_and_has_the_login),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_an_answer_without_an_end_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
