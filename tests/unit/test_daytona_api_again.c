/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/daytona/api_judge.h"
#include "providers/daytona/profile.h"

/* Which calls are tried again and which are not, and for how long. */

#define BUSY                                                                                       \
	"{\"path\":\"/\",\"statusCode\":409,\"error\":\"Conflict\",\"message\":\"Sandbox state "   \
	"change in progress\"}"
#define THROTTLED "{\"statusCode\":429,\"message\":\"ThrottlerException: Too Many Requests\"}"

/* So little time that the first pause that the service asks for is too long. */
static void have_time(long long timeout_ms)
{
	config.timeout_ms = timeout_ms;
	api_again();
}

/* ---- answers ---- */

static void test_a_change_in_progress_is_waited_for(void **state)
{
	server_will_answer(409, "", BUSY);
	server_will_answer(409, "", BUSY);
	will_sandbox();
	daytona_act(api, DAYTONA_STOP, "p1", on_told, NULL);
	expect_done();
	assert_int_equal(server_count(), 3);
	assert_int_equal(server_connections(), 1);
}

static void test_a_change_that_does_not_end_is_a_deadline(void **state)
{
	have_time(1000);
	for (int i = 0; i < 100; i++) {
		server_will_answer(409, "", BUSY);
	}
	daytona_act(api, DAYTONA_DELETE, "p1", on_told, NULL);
	expect_failed("TIMEOUT_EXCEEDED", "state change in progress");
	assert_int_equal(outcome.err.code, ERROR_TIMEOUT);
	assert_has(outcome.err.text, "api-timeout");
	assert_has(outcome.err.text, "DELETE /sandbox/p1 at 127.0.0.1: status 409");
	assert_has(outcome.err.text, " times in ");
	assert_true(server_count() > 1);
}

static void test_a_name_that_is_taken_is_told_at_once(void **state)
{
	server_will_answer(409, "", "{\"message\":\"Sandbox with name p1 already exists\"}");
	create_one();
	expect_failed("DAYTONA_CONFLICT", "already exists");
	assert_int_equal(server_count(), 1);
}

static void test_a_gateway_that_fails_is_asked_again(void **state)
{
	static const int statuses[] = {502, 503, 504, 408};
	for (size_t i = 0; i < ARRAY_LENGTH(statuses); i++) {
		size_t before = server_count();
		server_will_answer(statuses[i], "", "<html>Bad Gateway</html>");
		will_sandbox();
		ask();
		expect_done();
		assert_int_equal(server_count() - before, 2);
		server_will_answer(statuses[i], "", "<html>Bad Gateway</html>");
		create_one();
		expect_failed("DAYTONA_UNAVAILABLE", "Bad Gateway");
		assert_int_equal(server_count() - before, 3);
	}
}

static void test_a_server_that_fails_is_asked_a_few_times(void **state)
{
	static const char body[] = "{\"message\":\"An unexpected error occurred.\"}";
	server_will_answer(500, "", body);
	will_sandbox();
	ask();
	expect_done();
	assert_int_equal(server_count(), 2);
	for (int i = 0; i < 3; i++) {
		server_will_answer(500, "", body);
	}
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "status 500: An unexpected error occurred.");
	assert_int_equal(server_count(), 5);
	server_will_answer(500, "", body);
	create_one(); // which may have been done
	expect_failed("DAYTONA_UNAVAILABLE", "status 500");
	assert_int_equal(server_count(), 6);
}

/* ---- 429 ---- */

static void test_a_limit_is_waited_for_as_long_as_it_says(void **state)
{
	server_will_answer(429, "Retry-After-sandbox-create: 1\r\n", THROTTLED);
	will_sandbox();
	long long begin = clock_now_ms();
	create_one();
	expect_done();
	assert_true(clock_now_ms() - begin >= 1000);
	assert_int_equal(server_count(), 2);
}

static void test_a_limit_without_a_time_is_tried_again(void **state)
{
	server_will_answer(429, "", THROTTLED);
	server_will_answer(429, "Retry-After: soon\r\n", THROTTLED);
	server_will_answer(429, "Retry-After-authenticated: 0\r\n", THROTTLED);
	will_sandbox();
	ask();
	expect_done();
	assert_int_equal(server_count(), 4);
}

static void test_a_limit_longer_than_the_deadline_is_told_at_once(void **state)
{
	static const char *const headers[] = {
		"Retry-After: 60\r\n",
		"retry-after:60 \r\n",
		"Retry-After-sandbox-lifecycle: 60\r\n",
		"Retry-After: 1\r\nRetry-After-authenticated: 60\r\nRetry-After-x: 2\r\n",
		"Date: Fri, 20 Nov 2026 19:22:17 GMT\r\n"
		"Retry-After: Fri, 20 Nov 2026 19:23:17 GMT\r\n",
		"Retry-After: Fri, 20 Nov 2026 19:23:17 GMT\r\n"
		"Date: Fri, 20 Nov 2026 19:22:17 GMT\r\n",
	};
	have_time(30000);
	for (size_t i = 0; i < ARRAY_LENGTH(headers); i++) {
		server_will_answer(429, headers[i], THROTTLED);
		ask();
		expect_failed("DAYTONA_RATE_LIMITED", "Too Many Requests | wait 60 s");
		assert_int_equal(outcome.err.code, ERROR_LIMIT);
		assert_int_equal(server_count(), i + 1);
	}
}

static void test_other_headers_are_no_time(void **state)
{
	have_time(30000);
	server_will_answer(429,
		"Retry-Afterwards: 60\r\nX-Retry-After: 60\r\nX-RateLimit-Reset: 60\r\n"
		"Retry-After-9: Thu, 01 Jan 1970 00:00:10 GMT\r\n",
		THROTTLED);
	will_sandbox();
	ask();
	expect_done();
	assert_int_equal(server_count(), 2);
}

static void test_an_earlier_answers_time_is_not_the_next_ones(void **state)
{
	server_will_answer(429, "Retry-After: 0\r\n", THROTTLED);
	server_will_answer(503, "", "{}");
	will_sandbox();
	ask();
	expect_done();
	assert_int_equal(server_count(), 3);
}

/* ---- connections ---- */

static void test_a_connection_that_breaks_is_tried_again_where_that_does_no_harm(void **state)
{
	server_will("", SERVER_CLOSE);
	server_will("HTTP/1.1 200 OK\r\nContent-Le", SERVER_CLOSE);
	server_will("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"id\":\"e", SERVER_CLOSE);
	will_sandbox();
	ask();
	expect_done();
	assert_int_equal(server_count(), 4);
	server_will("", SERVER_CLOSE);
	create_one();
	expect_failed("DAYTONA_UNAVAILABLE", "POST /sandbox at 127.0.0.1");
	assert_int_equal(server_count(), 5);
	server_will("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"id\":\"e", SERVER_CLOSE);
	create_one();
	expect_failed("DAYTONA_UNAVAILABLE", "POST /sandbox at 127.0.0.1");
	assert_int_equal(server_count(), 6);
}

/* If a kept connection turns out to be dead, libcurl itself would send the create once more. */
static void test_a_create_is_sent_once_though_a_kept_connection_dies(void **state)
{
	will_sandbox();
	ask();
	expect_done();
	server_will("", SERVER_CLOSE);
	will_sandbox();
	create_one();
	expect_failed("DAYTONA_UNAVAILABLE", "POST /sandbox at 127.0.0.1");
	assert_int_equal(server_count(), 2);
	assert_int_equal(server_connections(), 2);
}

static void test_a_kept_connection_that_was_closed_is_no_trouble(void **state)
{
	char bytes[2048];
	const char *body = sandbox_text("e1", "started");
	snprintf(bytes, sizeof(bytes), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		strlen(body), body);
	for (int i = 0; i < 3; i++) {
		server_will(bytes, SERVER_CLOSE);
		ask();
		expect_done();
		loop_for_ms(10);
	}
	assert_int_equal(server_count(), 3);
}

/* The server of the test sets that flag on its own descriptors. */
static void test_connections_are_not_inherited(void **state)
{
	server_will("", SERVER_HANG);
	ask();
	wait_requests(1);
	int sockets = 0;
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in address;
		socklen_t size = sizeof(address);
		if (getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
			address.sin_family == AF_INET) {
			sockets++;
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		}
	}
	assert_int_equal(sockets, 2);
}

static int closed_port(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	getsockname(fd, (struct sockaddr *)&address, &size);
	return fd;
}

static void test_a_server_that_is_not_there_is_tried_to_the_end(void **state)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	char url[64];
	int fd = closed_port(); // bound, so that nobody else gets the port, but not listening
	getsockname(fd, (struct sockaddr *)&address, &size);
	snprintf(url, sizeof(url), "http://localhost:%d", ntohs(address.sin_port));
	config.url = url;
	have_time(1000);
	create_one();
	expect_failed("DAYTONA_UNAVAILABLE", "POST /sandbox at localhost: ");
	assert_int_equal(outcome.err.code, ERROR_UNAVAILABLE);
	assert_has(outcome.err.text, " times in ");
	close(fd);
}

/* ---- deadlines ---- */

static void test_a_try_without_an_answer_is_followed_by_another(void **state)
{
	config.try_timeout_ms = 150;
	api_again();
	server_will("", SERVER_HANG);
	server_will("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"id\":\"e", SERVER_HANG);
	ask();
	wait_requests(3);
	assert_int_equal(outcome.count, 0);
	assert_true(server_open() <= 2); // the connections of calls that were given up are closed
}

static void test_a_create_without_an_answer_is_not(void **state)
{
	config.try_timeout_ms = 150;
	api_again();
	server_will("", SERVER_HANG);
	create_one();
	expect_failed("TIMEOUT_EXCEEDED", "no answer | api-timeout");
	assert_int_equal(outcome.err.code, ERROR_TIMEOUT);
	assert_int_equal(server_count(), 1);
}

static void test_a_server_that_never_answers_is_bounded(void **state)
{
	config.try_timeout_ms = 60;
	have_time(300);
	ask();
	expect_failed("TIMEOUT_EXCEEDED", "no answer | api-timeout");
	assert_has(outcome.err.text, " times in ");
}

/* The last try has no time left for an answer. */
static void test_what_was_wrong_all_the_time_is_told_at_its_end(void **state)
{
	config.pause_ms = 200;
	have_time(1500);
	server_will_answer(503, "", "{\"message\":\"down for maintenance\"}");
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "status 503: down for maintenance");
	assert_has(outcome.err.text, "(tried 2 times in ");
}

static void test_a_list_has_one_deadline_for_all_its_pages(void **state)
{
	have_time(1000);
	server_will_answer(200, "", "{\"items\":[{\"id\":\"e1\"}],\"nextCursor\":\"b\"}");
	daytona_list(api, NULL, &on_listed, NULL);
	expect_failed("TIMEOUT_EXCEEDED", "GET /sandbox at");
	assert_string_equal(outcome.ids, "e1 ");
}

/* ---- the pauses ---- */

static void test_pauses_grow_to_a_bound_and_are_not_all_the_same(void **state)
{
	static const struct {
		int tries;
		long long whole;
	} table[] = {{1, 500}, {2, 1000}, {3, 2000}, {4, 4000}, {5, 8000}, {6, 8000}, {900, 8000}};
	struct http_answer none = {.trouble = HTTP_NOT_MADE, .retry_in_s = 7};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		int tries = table[i].tries;
		assert_int_equal(daytona_pause_ms(500, tries, 0, &none), table[i].whole / 2);
		assert_int_equal(daytona_pause_ms(500, tries, 1023, &none), table[i].whole);
		for (unsigned int any = 0; any < 5000; any += 7) {
			long long pause = daytona_pause_ms(500, tries, any, &none);
			assert_true(pause >= table[i].whole / 2 && pause <= table[i].whole);
		}
	}
	struct http_answer asked = {.status = 429, .retry_in_s = 3};
	assert_true(daytona_pause_ms(500, 1, 0, &asked) >= 3000);
	assert_true(daytona_pause_ms(500, 1, 1023, &asked) < 3500);
}

/* The service names pauses of up to a minute; there must be time for that and for another try. */
static void test_the_defaults_have_time_for_a_limit(void **state)
{
	enum { TRY_MS = 20000 };
	struct http_answer asked = {.status = 429, .retry_in_s = 60};
	struct settings settings;
	struct daytona_profile profile;
	struct error err;
	settings_init(&settings);
	assert_true(daytona_profile_read(&profile, "cloud", &settings, NULL, &err));
	assert_true(daytona_pause_ms(500, 1, 1023, &asked) + TRY_MS < profile.api_timeout_ms);
	assert_true(profile.api_timeout_ms < profile.create_timeout_ms);
	daytona_profile_finish(&profile);
	settings_finish(&settings);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_change_in_progress_is_waited_for),
		TEST(test_a_change_that_does_not_end_is_a_deadline),
		TEST(test_a_name_that_is_taken_is_told_at_once),
		TEST(test_a_gateway_that_fails_is_asked_again),
		TEST(test_a_server_that_fails_is_asked_a_few_times),
		TEST(test_a_limit_is_waited_for_as_long_as_it_says),
		TEST(test_a_limit_without_a_time_is_tried_again),
		TEST(test_a_limit_longer_than_the_deadline_is_told_at_once),
		TEST(test_other_headers_are_no_time),
		TEST(test_an_earlier_answers_time_is_not_the_next_ones),
		TEST(test_a_connection_that_breaks_is_tried_again_where_that_does_no_harm),
		TEST(test_a_create_is_sent_once_though_a_kept_connection_dies),
		TEST(test_a_kept_connection_that_was_closed_is_no_trouble),
		TEST(test_connections_are_not_inherited),
		TEST(test_a_server_that_is_not_there_is_tried_to_the_end),
		TEST(test_a_try_without_an_answer_is_followed_by_another),
		TEST(test_a_create_without_an_answer_is_not),
		TEST(test_a_server_that_never_answers_is_bounded),
		TEST(test_what_was_wrong_all_the_time_is_told_at_its_end),
		TEST(test_a_list_has_one_deadline_for_all_its_pages),
		TEST(test_pauses_grow_to_a_bound_and_are_not_all_the_same),
		TEST(test_the_defaults_have_time_for_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
