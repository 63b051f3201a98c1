/* SPDX-License-Identifier: MIT */
#include "broker/config/mcp_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/text.h"

static void test_every_spelling_of_this_machine_is_known(void **state)
{
	static const char *const urls[] = {
		"http://localhost",
		"http://localhost/",
		"https://localhost:8080/mcp",
		"HTTP://LocalHost:80",
		"http://localhost.",
		"http://localhost.:3000/x",
		"http://app.localhost/x",
		"http://a.b.LOCALHOST.:1",
		"http://user@localhost",
		"http://user:pass@localhost:1/x",
		"http://user:p@ss@localhost/x",
		"http://localhost?x=1",
		"http://localhost#x",
		"http://127.0.0.1",
		"http://127.0.0.1:3000/mcp",
		"http://127.255.255.254/",
		"http://127.0.0.1./",
		"http://127.1/",
		"http://0x7f000001/",
		"http://2130706433/",
		"http://0177.0.0.1/",
		"http://0.0.0.0:3000",
		"http://0/",
		"http://[::1]",
		"http://[::1]:3000/mcp",
		"http://u:p@[::1]:3000/mcp",
		"http://[0:0:0:0:0:0:0:1]/",
		"http://[::]:80",
		"http://[::ffff:127.0.0.1]/",
		"http://[::FFFF:7F00:1]/",
		"http://[::ffff:0.0.0.0]/",
		"http://%6cocalhost/",
		"http://%31%32%37.0.0.1/",
		"  http://localhost/ ",
		"http://localhost ",
		"http://local\thost/",
		"http:\\\\localhost\\x",
		"http:///localhost/x",
		"ws://localhost:1",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(urls); i++) {
		if (!mcp_url_is_loopback(urls[i])) {
			fail_msg("%s", urls[i]);
		}
	}
}

static void test_other_hosts_and_what_is_no_url_are_not_this_machine(void **state)
{
	static const char *const urls[] = {
		"",
		"localhost",
		"localhost:3000",
		"//localhost/",
		"/localhost",
		"http:localhost",
		"http:/localhost",
		"http://",
		"http://:80/",
		"http://?localhost",
		"http://example.com",
		"http://example.com/localhost",
		"http://example.com/?u=http://localhost",
		"http://example.com#@localhost",
		"http://localhost@example.com/",
		"http://localhost:80@example.com/",
		"http://localhost.example.com/",
		"http://notlocalhost/",
		"http://localhosts/",
		"http://localhost-1/",
		"http://127.0.0.1.example.com/",
		"http://128.0.0.1/",
		"http://126.255.255.255/",
		"http://1.0.0.127/",
		"http://10.0.0.1:3000/",
		"http://0.0.0.1/",
		"http://192.168.0.1/",
		"http://[::2]/",
		"http://[fe80::1]/",
		"http://[2001:db8::1]/",
		"http://[::ffff:10.0.0.1]/",
		"http://[::1/",
		"http://[]/",
		"http://::1/",
		"http://local%20host/",
		"http://localhost%00/",
		"://localhost/",
		"1http://localhost/",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(urls); i++) {
		if (mcp_url_is_loopback(urls[i])) {
			fail_msg("%s", urls[i]);
		}
	}
}

static void test_the_port_of_this_machine_is_found(void **state)
{
	static const struct {
		const char *url;
		uint16_t port;
	} samples[] = {
		{"http://localhost:3000/mcp", 3000},
		{"http://u:9@LOCALHOST:3000", 3000},
		{"https://a.localhost/x:5", 443},
		{"http://127.0.0.1", 80},
		{"http://127.0.0.1:/", 80},
		{"http://localhost:65535?x", 65535},
		{"http://localhost:65536", 0},
		{"http://localhost:99999999999999999999", 0},
		{"http://localhost:3x", 0},
		{"http://localhost:-3", 0},
		{"http://localhost:0", 0},
		{"ws://localhost:3000", 0},
		{"http://127.0.0.2:3000", 0},
		{"http://127.1:3000", 0},
		{"http://[::1]:3000", 0},
		{"http://0.0.0.0:3000", 0},
		{"http://example.com:3000", 0},
		{"", 0},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		assert_int_equal(mcp_url_local_port(samples[i].url), samples[i].port);
	}
}

static void test_a_host_is_told_as_it_is_understood(void **state)
{
	static const struct {
		const char *url;
		const char *host;
	} samples[] = {
		{"http://Example.COM:80/x", "example.com"},
		{"http://example.com./", "example.com"},
		{"http://./", "."},
		{"http://a%2Eb/", "a.b"},
		{"http://a%2", "a%2"},
		{"http://a%zz/", "a%zz"},
		{"http://[FE80::1]:1", "fe80::1"},
	};
	char host[MCP_HOST_MAX];
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		assert_true(mcp_url_host(samples[i].url, host));
		assert_string_equal(host, samples[i].host);
	}
}

static void test_a_host_has_a_longest_name(void **state)
{
	char host[MCP_HOST_MAX];
	char url[MCP_HOST_MAX + 16] = "http://";
	memset(url + 7, 'a', MCP_HOST_MAX - 1);
	assert_true(mcp_url_host(url, host));
	assert_int_equal(strlen(host), MCP_HOST_MAX - 1);
	url[7 + MCP_HOST_MAX - 1] = 'a';
	assert_false(mcp_url_host(url, host));
}

static void test_http_is_told_from_other_schemes(void **state)
{
	assert_true(mcp_url_is_http("http://h"));
	assert_true(mcp_url_is_http("HTTPS://h:1/x"));
	assert_false(mcp_url_is_http("ftp://h"));
	assert_false(mcp_url_is_http("httpx://h"));
	assert_false(mcp_url_is_http("http:h"));
	assert_false(mcp_url_is_http("http://"));
	assert_false(mcp_url_is_http("h"));
}

static void test_what_may_be_secret_is_not_shown(void **state)
{
	static const struct {
		const char *url;
		const char *shown;
	} samples[] = {
		{"http://h:1/a/b", "http://h:1/a/b"},
		{"http://user:hunter2@h:1/a?key=hunter2#x", "http://h:1/a"},
		{"http://h#hunter2", "http://h"},
		{"http://u:hunter2@h", "http://h"},
		{"mcp?hunter2", "mcp"},
	};
	char text[64];
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		assert_string_equal(
			mcp_url_shown(text, sizeof(text), samples[i].url), samples[i].shown);
	}
	assert_string_equal(mcp_url_shown(text, 10, "http://example.com"), "http:/" TEXT_CUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_spelling_of_this_machine_is_known),
		cmocka_unit_test(test_other_hosts_and_what_is_no_url_are_not_this_machine),
		cmocka_unit_test(test_the_port_of_this_machine_is_found),
		cmocka_unit_test(test_a_host_is_told_as_it_is_understood),
		cmocka_unit_test(test_a_host_has_a_longest_name),
		cmocka_unit_test(test_http_is_told_from_other_schemes),
		cmocka_unit_test(test_what_may_be_secret_is_not_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
