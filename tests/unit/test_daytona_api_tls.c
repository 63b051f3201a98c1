/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/daytona_tls_fixture.h"

/* The servers that get the key: those whose certificate is verified; and the proxy on the way. */

static char url[64];
static char authority[128];
static char words[4][128]; // of the environment
static const char *environment[5];

static int setup(void **state)
{
	api_setup(state);
	tls_forget();
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/api", tls_ports.right);
	snprintf(authority, sizeof(authority), "SSL_CERT_FILE=%s", tls_authority());
	memset(environment, 0, sizeof(environment));
	config.url = url;
	config.environment = environment;
	config.timeout_ms = 20000;
	return 0;
}

static void set_environment(const char *first, const char *second, const char *third)
{
	const char *given[] = {first, second, third};
	size_t used = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(given); i++) {
		if (given[i]) {
			snprintf(words[used], sizeof(words[used]), "%s", given[i]);
			environment[used] = words[used];
			used++;
		}
	}
	environment[used] = NULL;
}

static void ask_again(void)
{
	api_again();
	ask();
}

static void expect_answer(void)
{
	expect_done();
	assert_has(tls_log("requests.log"), "Authorization: Bearer " KEY "\r\n");
}

static void expect_untrusted(const char *text)
{
	expect_failed("DAYTONA_UNTRUSTED", text);
	assert_int_equal(outcome.err.code, ERROR_DENIED);
	assert_has(outcome.err.text, "SSL_CERT_FILE");
	assert_string_equal(tls_log("requests.log"), "");
	assert_has_not(outcome.err.text, "tried");
}

/* ---- certificates ---- */

static void test_an_authority_nobody_knows_is_not_trusted(void **state)
{
	ask_again();
	expect_untrusted("GET /sandbox/p1 at 127.0.0.1: ");
}

static void test_an_authority_of_the_environment_is_trusted(void **state)
{
	char bundle[128];
	set_environment(authority, NULL, NULL);
	ask_again();
	expect_answer();
	snprintf(bundle, sizeof(bundle), "CURL_CA_BUNDLE=%s", tls_authority());
	set_environment("SSL_CERT_FILE=/nowhere", bundle, "SSL_CERT_DIR=");
	ask_again();
	expect_answer();
	set_environment("SSL_CERT_FILE=", bundle, NULL);
	ask_again();
	expect_answer();
}

static void test_a_name_that_is_another_is_not_trusted(void **state)
{
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/api", tls_ports.wrong);
	set_environment(authority, NULL, NULL);
	ask_again();
	expect_untrusted("127.0.0.1");
}

static void test_an_authority_that_cannot_be_read_is_said_to_be_none(void **state)
{
	set_environment("SSL_CERT_FILE=/nowhere/ca.pem", NULL, NULL);
	ask_again();
	expect_untrusted("/nowhere/ca.pem");
}

static void test_a_server_without_tls_is_not_asked(void **state)
{
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/api", tls_ports.plain);
	config.timeout_ms = 300; // the server waits for more, because it understands nothing
	set_environment(authority, NULL, NULL);
	ask_again();
	wait_done();
	assert_true(outcome.has_failed);
	assert_has_not(tls_log("requests.log"), KEY);
}

/* ---- proxies ---- */

static void set_proxy(const char *variable, const char *user, int port, const char *no_proxy)
{
	char proxy[128];
	snprintf(proxy, sizeof(proxy), "%s=http://%s127.0.0.1:%d", variable, user, port);
	set_environment(authority, proxy, no_proxy);
}

static void test_a_proxy_of_the_environment_is_used_and_sees_no_key(void **state)
{
	static const char *const variables[] = {
		"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
	for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
		char line[64];
		tls_forget();
		set_proxy(variables[i], "me:pass@", tls_ports.proxy, NULL);
		ask_again();
		expect_answer();
		assert_has_not(tls_log("requests.log"), "Proxy-");
		snprintf(line, sizeof(line), "CONNECT 127.0.0.1:%d HTTP/1.1\r\n", tls_ports.right);
		assert_has(tls_log("proxy.log"), line);
		assert_has(tls_log("proxy.log"), "Proxy-Authorization: Basic bWU6cGFzcw==\r\n");
		assert_has_not(tls_log("proxy.log"), "Bearer");
	}
}

static void test_no_proxy_is_used_for_what_no_proxy_names(void **state)
{
	set_proxy("https_proxy", "", tls_ports.proxy, "no_proxy=a.org,127.0.0.1");
	ask_again();
	expect_answer();
	assert_string_equal(tls_log("proxy.log"), "");
}

static void test_http_to_a_loopback_goes_through_no_proxy(void **state)
{
	char http[64];
	snprintf(http, sizeof(http), "http_proxy=http://127.0.0.1:%d", tls_ports.proxy);
	set_proxy("all_proxy", "", tls_ports.proxy, http);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/api", tls_ports.plain);
	ask_again();
	expect_answer();
	assert_string_equal(tls_log("proxy.log"), "");
}

static void test_what_a_proxy_refuses_is_said_to_be_its_word(void **state)
{
	set_proxy("https_proxy", "", tls_ports.refusing, NULL);
	ask_again();
	expect_failed("DAYTONA_REJECTED", "proxy | environment | status 403");
	config.pause_ms = 60000; // too long to try again
	set_proxy("https_proxy", "me:pass@", tls_ports.refusing, NULL);
	ask_again();
	expect_failed("DAYTONA_UNAVAILABLE", "with status 502");
	assert_has_not(outcome.err.text, "pass");
	assert_string_equal(tls_log("requests.log"), "");
}

static void test_a_proxy_that_is_not_there_is_told_without_its_password(void **state)
{
	config.pause_ms = 60000; // too long to try again
	set_environment(authority, "https_proxy=http://me:s3cret@127.0.0.1:1", NULL);
	ask_again();
	expect_failed("DAYTONA_UNAVAILABLE", "GET /sandbox/p1 at 127.0.0.1");
	assert_has_not(outcome.err.text, "s3cret");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, api_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_authority_nobody_knows_is_not_trusted),
		TEST(test_an_authority_of_the_environment_is_trusted),
		TEST(test_a_name_that_is_another_is_not_trusted),
		TEST(test_an_authority_that_cannot_be_read_is_said_to_be_none),
		TEST(test_a_server_without_tls_is_not_asked),
		TEST(test_a_proxy_of_the_environment_is_used_and_sees_no_key),
		TEST(test_no_proxy_is_used_for_what_no_proxy_names),
		TEST(test_http_to_a_loopback_goes_through_no_proxy),
		TEST(test_what_a_proxy_refuses_is_said_to_be_its_word),
		TEST(test_a_proxy_that_is_not_there_is_told_without_its_password),
	};
	/* Only the environment that the API was given counts, not this one. */
	setenv("https_proxy", "http://127.0.0.1:1", 1);
	setenv("HTTP_PROXY", "http://127.0.0.1:1", 1);
	tls_begin(argc > 1 ? argv[1] : "tests/unit/daytona_tls.py");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	tls_end();
	return failed;
}
