/* SPDX-License-Identifier: MIT */
#include "base/login_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/buf.h"

#define PAGE "https://id.example/authorize?client=1&redirect_uri="

static void assert_leads(const char *url, uint16_t port, const char *site)
{
	struct login_url login;
	if (!login_url_read(span_of(url), &login)) {
		fail_msg("%s is a login's address", url);
	}
	assert_int_equal(login.port, port);
	assert_string_equal(login.site, site);
}

static void assert_none(const char *url)
{
	struct login_url login;
	if (login_url_read(span_of(url), &login)) {
		fail_msg("%s leads to port %u", url, login.port);
	}
}

/* ---- one URL ---- */

static void test_each_spelling_of_this_machine_has_its_port(void **state)
{
	static const char *const redirects[] = {"http://localhost:1455", "http://127.0.0.1:1455/",
		"http://[::1]:1455/cb?a=b", "http%3A%2F%2Flocalhost%3A1455%2Fauth%2Fcallback",
		"http%3a%2f%2f%5b%3A%3a1%5d%3a1455", "http://localhost:1455/a%2520b&state=x",
		"http://localhost:1455/#section"};
	char url[256];
	for (size_t i = 0; i < ARRAY_LENGTH(redirects); i++) {
		snprintf(url, sizeof(url), PAGE "%s", redirects[i]);
		assert_leads(url, 1455, "id.example");
	}
}

static void test_the_place_of_the_page_is_shown_as_it_is_written(void **state)
{
	assert_leads("http://127.0.0.1:8080?redirect_uri=http://localhost:65535", 65535,
		"127.0.0.1:8080");
	assert_leads(
		"https://[2001:db8::1]/?redirect_uri=http://localhost:1024", 1024, "[2001:db8::1]");
}

static void test_other_ports_are_none(void **state)
{
	static const char *const ports[] = {"", ":", ":0", ":1", ":80", ":1023", ":65536", ":99999",
		":100000", ":01455", ":+1455", ":-1455", ":1455a", ":1455:1456", ":1455%20",
		":14 55", ":1455%5c", ":1455@id.example", ":1455%40id.example", ":1455;",
		":4294968751"};
	char url[256];
	for (size_t i = 0; i < ARRAY_LENGTH(ports); i++) {
		snprintf(url, sizeof(url), PAGE "http://localhost%s", ports[i]);
		assert_none(url);
	}
}

static void test_other_hosts_and_schemes_are_none(void **state)
{
	static const char *const redirects[] = {"http://localhost.evil.example:1455",
		"http://evil.example:1455", "http://user@localhost:1455",
		"http://localhost@evil.example:1455", "http://localhost:1455@evil.example:1456",
		"http://a:1455@localhost:1456", "http://[::1:1455", "http://::1:1455",
		"http://[::1]1455", "http://[::2]:1455", "http://[0:0:0:0:0:0:0:1]:1455",
		"http://127.0.0.2:1455", "http://127.1:1455", "http://2130706433:1455",
		"http://0.0.0.0:1455", "http://LOCALHOST:1455", "http://localhost.:1455",
		"https://localhost:1455", "ftp://localhost:1455", "//localhost:1455",
		"localhost:1455", "http:localhost:1455", "http://localhost%00:1455",
		"http://localhost%0a:1455", "http://local%68ost%3", "http://localhost:1455/%",
		"http://localhost:1455/%zz", "http://localhost:1455/%00",
		"http://localhost:1455/%ff", "http://localhost:1455/%23",
		"http%253A%252F%252Flocalhost%253A1455", "",
		"http://localhost:1455&redirect_uri=http://localhost:1456"};
	char url[256];
	for (size_t i = 0; i < ARRAY_LENGTH(redirects); i++) {
		snprintf(url, sizeof(url), PAGE "%s", redirects[i]);
		assert_none(url);
	}
}

static void test_other_pages_are_none(void **state)
{
	static const char *const urls[] = {"", "https://",
		"https://?redirect_uri=http://localhost:1455",
		"file:///a?redirect_uri=http://localhost:1455",
		"javascript://id.example/?redirect_uri=http://localhost:1455",
		"https://user@id.example/?redirect_uri=http://localhost:1455",
		"https://id.example/redirect_uri=http://localhost:1455",
		"https://id.example/#?redirect_uri=http://localhost:1455",
		"https://id.example/?a#redirect_uri=http://localhost:1455",
		"https://id.example/?Redirect_uri=http://localhost:1455",
		"https://id.example/?xredirect_uri=http://localhost:1455",
		"https://id.example/?redirect%5furi=http://localhost:1455",
		"https://id.example/ ?redirect_uri=http://localhost:1455",
		"https://id.example\\?redirect_uri=http://localhost:1455",
		"https://id.ex\303\244mple/?redirect_uri=http://localhost:1455",
		"http://localhost:1455/"};
	for (size_t i = 0; i < ARRAY_LENGTH(urls); i++) {
		assert_none(urls[i]);
	}
}

/* ---- a text in pieces ---- */

/* "1455@id.example 1456@id.example " */
static void note(void *data, const struct login_url *login)
{
	assert_true(buf_append_format(data, NULL, "%u@%s ", login->port, login->site));
}

static void assert_found(const char *text, size_t piece, const char *expected)
{
	struct login_scan scan = {.len = 0};
	struct buf found;
	struct span all = span_of(text);
	buf_init(&found, 65536);
	for (size_t at = 0; at < all.len; at += piece) {
		size_t len = all.len - at < piece ? all.len - at : piece;
		login_scan_feed(&scan, (struct span){all.data + at, len}, note, &found);
	}
	login_scan_end(&scan, note, &found);
	assert_true(span_is(buf_span(&found), expected));
	buf_finish(&found);
}

static void assert_found_in_all_pieces(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		assert_found(text, piece, expected);
	}
}

static void test_urls_are_found_wherever_the_text_is_cut(void **state)
{
	assert_found_in_all_pieces("hhttp://a hthttps://id.example/?redirect_uri=http://localhost:"
				   "1455 httpshttp://b/?redirect_uri=http://[::1]:1456, end",
		"1455@id.example 1456@b ");
	assert_found_in_all_pieces(PAGE "http://localhost:1455/cb\n" PAGE
					"http://localhost:80/\n" PAGE "http://localhost:1456/cb",
		"1455@id.example 1456@id.example ");
}

static void test_marks_around_a_url_do_not_belong_to_it(void **state)
{
	static const char *const around[][2] = {{"<", ">"}, {"\"", "\""}, {"'", "'"}, {"(", ")."},
		{"\033]8;;", "\033\\login\033]8;;\033\\"}, {"\033[4m", "\033[0m"}, {"`", "`"},
		{"see ", "."}, {"", "\a"}, {"", "\r\n"}, {"\303\244", "\303\244"}, {"h", "\\n"}};
	char text[256];
	for (size_t i = 0; i < ARRAY_LENGTH(around); i++) {
		snprintf(text, sizeof(text), "%s" PAGE "http://localhost:1455%s", around[i][0],
			around[i][1]);
		assert_found_in_all_pieces(text, "1455@id.example ");
	}
}

static void test_a_url_that_is_too_long_is_ignored_and_the_next_is_found(void **state)
{
	struct buf text;
	buf_init(&text, 65536);
	size_t beginning = strlen(PAGE "http://localhost:1455/");
	buf_add(&text, SPAN_LITERAL(PAGE "http://localhost:1455/"));
	for (size_t i = beginning; i < LOGIN_URL_MAX; i++) {
		buf_add(&text, SPAN_LITERAL("x"));
	}
	buf_add(&text, SPAN_LITERAL(" " PAGE "http://localhost:1456/"));
	for (size_t i = beginning; i < LOGIN_URL_MAX + 1; i++) {
		buf_add(&text, SPAN_LITERAL("x"));
	}
	buf_add(&text, SPAN_LITERAL("\n" PAGE "http://localhost:1457/"));
	buf_add(&text, (struct span){"", 1});
	for (size_t piece = 1; piece < 2 * text.len; piece *= 3) {
		assert_found(text.data, piece, "1455@id.example 1457@id.example ");
	}
	buf_finish(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_spelling_of_this_machine_has_its_port),
		cmocka_unit_test(test_the_place_of_the_page_is_shown_as_it_is_written),
		cmocka_unit_test(test_other_ports_are_none),
		cmocka_unit_test(test_other_hosts_and_schemes_are_none),
		cmocka_unit_test(test_other_pages_are_none),
		cmocka_unit_test(test_urls_are_found_wherever_the_text_is_cut),
		cmocka_unit_test(test_marks_around_a_url_do_not_belong_to_it),
		cmocka_unit_test(test_a_url_that_is_too_long_is_ignored_and_the_next_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
