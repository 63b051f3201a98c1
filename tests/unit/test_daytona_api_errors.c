/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/support/facts.h"

/* The report about each failure, and that no report has anything secret. */

/* ---- statuses ---- */

static void test_each_status_has_its_reason_and_the_services_words(void **state)
{
	static const struct {
		int status;
		enum error_code code;
		const char *reason, *message;
	} table[] = {
		{400, ERROR_DENIED, "DAYTONA_REJECTED", "Sandbox failed to start: no runner"},
		{400, ERROR_UNAVAILABLE, "DAYTONA_UNAVAILABLE", "No available runners"},
		{401, ERROR_DENIED, "DAYTONA_UNAUTHORIZED", "Invalid credentials"},
		{403, ERROR_DENIED, "DAYTONA_UNAUTHORIZED", "Invalid authentication context"},
		{403, ERROR_LIMIT, "DAYTONA_QUOTA_EXCEEDED",
			"Total CPU limit exceeded. Maximum allowed: 1."},
		{403, ERROR_DENIED, "DAYTONA_REJECTED",
			"CPU request 9 exceeds maximum allowed per sandbox (4)."},
		{404, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND", "Sandbox with ID or name p1 not found"},
		{409, ERROR_UNAVAILABLE, "DAYTONA_CONFLICT", "Sandbox with name p1 already exists"},
		{422, ERROR_DENIED, "DAYTONA_REJECTED", "not for containers"},
		{501, ERROR_UNAVAILABLE, "DAYTONA_UNAVAILABLE", "not implemented"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		char body[512];
		char status[32];
		snprintf(body, sizeof(body),
			"{\"path\":\"/api/sandbox/p1\",\"timestamp\":\"2026-11-20T19:23:26.653Z\","
			"\"statusCode\":%d,\"error\":\"Kind\",\"message\":\"%s\"}",
			table[i].status, table[i].message);
		snprintf(status, sizeof(status), ": status %d: ", table[i].status);
		server_will_answer(table[i].status, "", body);
		ask();
		expect_failed(table[i].reason, table[i].message);
		assert_int_equal(outcome.err.code, table[i].code);
		assert_has(outcome.err.text, "GET /sandbox/p1 at 127.0.0.1");
		assert_has(outcome.err.text, status);
		assert_int_equal(server_count(), i + 1);
	}
}

static void test_a_key_that_is_not_taken_is_told_with_where_it_comes_from(void **state)
{
	server_will_answer(401, "", "{\"statusCode\":401,\"message\":\"Invalid credentials\"}");
	ask();
	expect_failed("DAYTONA_UNAUTHORIZED", "Invalid credentials | DAYTONA_API_KEY");
}

static void test_a_key_that_may_not_do_it_is_told_the_permissions(void **state)
{
	server_will_answer(403, "", "{\"statusCode\":403,\"message\":\"Forbidden resource\"}");
	ask();
	expect_failed("DAYTONA_UNAUTHORIZED", "Forbidden resource");
	assert_names(outcome.err.text, "write:sandboxes | delete:sandboxes");
}

static void test_what_a_create_does_not_find_is_no_sandbox(void **state)
{
	server_will_answer(404, "", "{\"statusCode\":404,\"message\":\"Region not found\"}");
	create_one();
	expect_failed(
		"DAYTONA_REJECTED", "POST /sandbox at 127.0.0.1: status 404: Region not found");
	assert_int_equal(outcome.err.code, ERROR_DENIED);
}

/* Otherwise a wrong URL would look like a deleted sandbox, and the files in it as lost. */
static void test_a_path_that_is_not_found_is_no_sandbox(void **state)
{
	static const char *const bodies[] = {
		"<html>404 Not Found</html>",
		"",
		"{\"error\":\"Not Found\",\"statusCode\":404}",
		("{\"message\":\"Cannot GET /sandbox/p1\",\"error\":\"Not "
		 "Found\",\"statusCode\":404}"),
	};
	for (size_t i = 0; i < ARRAY_LENGTH(bodies); i++) {
		server_will_answer(404, "", bodies[i]);
		ask();
		expect_failed("DAYTONA_REJECTED", "URL | API");
		assert_int_equal(outcome.err.code, ERROR_DENIED);
	}
}

static void test_a_message_may_have_any_shape(void **state)
{
	static const struct {
		const char *body, *text;
	} table[] = {
		{"{\"message\":[\"labels must be an object\",\"no\"],\"error\":\"Bad Request\"}",
			"status 400: labels must be an object, no"},
		{"{\"message\":\"Invalid JSON in request body\",\"error\":\"Bad Request\"}",
			"status 400: Invalid JSON in request body"},
		{"{\"message\":null,\"error\":\"Bad Request\"}", "status 400: Bad Request"},
		{"{\"message\":\"one\\u001b[31m\\ntwo\\u0000 \\u0085three\"}", "status 400: "},
		{"{\"message\":\"a\\u001b[31m\\n \\tb\\u0085c\"}", "status 400: a [31m b c"},
		{"<html>\r\n<h1>Bad</h1>\x01\xff</html>",
			"status 400: <html> <h1>Bad</h1> </html>"},
		{"", "status 400 | gives no reason"},
		{"[]", "status 400: []"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		server_will_answer(400, "", table[i].body);
		ask();
		expect_failed("DAYTONA_REJECTED", table[i].text);
	}
}

static void test_a_long_message_is_cut_at_a_character(void **state)
{
	char body[2048] = "{\"message\":\"";
	for (int i = 0; i < 400; i++) {
		snprintf(body + strlen(body), sizeof(body) - strlen(body), "\xc3\xa9");
	}
	snprintf(body + strlen(body), sizeof(body) - strlen(body), "\"}");
	server_will_answer(400, "", body);
	ask();
	expect_failed("DAYTONA_REJECTED", "\xc3\xa9\xc3\xa9…");
	assert_true(strlen(outcome.err.text) < 500);
}

static void test_a_redirect_is_not_followed(void **state)
{
	char headers[128];
	snprintf(headers, sizeof(headers), "Location: http://127.0.0.1:%d/elsewhere\r\n",
		server_port());
	server_will_answer(302, headers, "");
	server_will_answer(200, "", sandbox_text("e1", "started"));
	ask();
	expect_failed("DAYTONA_REJECTED", "status 302");
	assert_has(outcome.err.text, "it redirects");
	assert_int_equal(server_count(), 1);
}

/* ---- answers that are none ---- */

static void test_an_answer_that_cannot_be_read_is_shown(void **state)
{
	static const struct {
		const char *body, *words;
	} table[] = {
		{"<html>\n<b>Welcome</b>", "it begins: <html> <b>Welcome</b>"},
		{"", "status 200 | cannot be read"},
		{"[1]", "not an object | it begins: [1]"},
		{"{\"name\":\"p1\"}", "it has no \"id\""},
		{"{\"id\":7}", "it has no \"id\""},
		{"{\"id\":\"e1\"", "cannot be read"},
		{"{\"id\":\"e1\"} trailing", "cannot be read"},
		{"\xff\xfe", "cannot be read"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		server_will_answer(200, "", table[i].body);
		ask();
		expect_failed("DAYTONA_UNAVAILABLE", table[i].words);
		assert_int_equal(server_count(), i + 1);
	}
}

static void test_a_list_that_cannot_be_read_says_where(void **state)
{
	static const struct {
		const char *body, *words;
	} table[] = {
		{"{\"items\":{},\"nextCursor\":null}", "no list \"items\""},
		{"{\"nextCursor\":null}", "no list \"items\""},
		{"[]", "no list \"items\""},
		{"{\"items\":[{\"id\":\"e1\"},7],\"nextCursor\":null}", "item 1 | not an object"},
		{"{\"items\":[],\"nextCursor\":{\"a\":1}}", "\"nextCursor\" is not a string"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		outcome.count = 0;
		server_will_answer(200, "", table[i].body);
		daytona_list(api, NULL, &on_listed, NULL);
		expect_failed("DAYTONA_UNAVAILABLE", table[i].words);
	}
}

static void test_labels_that_are_no_texts_are_told(void **state)
{
	server_will_answer(200, "",
		"{\"id\":\"e1\",\"labels\":{\"n\":5,\"a\\u0062\":\"c\",\"o\":{\"p\":\"q\"},"
		"\"z\":\"\\u0000\"}}");
	ask();
	expect_done();
	assert_true(outcome.sandbox.has_odd_labels);
	assert_string_equal(outcome.sandbox.labels[0].name, "ab");
	assert_string_equal(outcome.sandbox.labels[0].value, "c");
	assert_null(outcome.sandbox.labels[1].name);
}

static void test_what_is_no_http_is_said_to_be_none(void **state)
{
	server_will("SSH-2.0-OpenSSH_9.2\r\nmore\r\n", SERVER_CLOSE);
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "GET /sandbox/p1");
	assert_int_equal(server_count(), 1);
}

static void test_an_answer_without_an_end_is_cut_off(void **state)
{
	server_will_flood("HTTP/1.1 200 OK\r\n\r\n", "{\"id\":\"e1\",", 20 << 20);
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "answer | too long");
	server_will_flood("HTTP/1.1 200 OK\r\nContent-Length: 20971520\r\n\r\n", " ", 1 << 20);
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "GET /sandbox/p1");
	server_will_flood(
		"HTTP/1.1 200 OK\r\n", "X-Header: of no use to anybody at all\r\n", 2 << 20);
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "answer | too long");
	assert_int_equal(server_count(), 3);
}

/* ---- secrets ---- */

static void test_an_echo_of_the_key_is_masked(void **state)
{
	server_will_answer(401, "", "{\"message\":\"bad key Bearer " KEY ", sorry\"}");
	ask();
	expect_failed("DAYTONA_UNAUTHORIZED", "bad key Bearer ***, sorry");
	server_will_answer(200, "", "Authorization: Bearer " KEY "\n");
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "it begins: Authorization: Bearer ***");
}

static void test_an_answer_that_may_hold_a_token_is_not_shown(void **state)
{
	static const char *const bodies[] = {
		"{\"token\":\"s3cret\"",
		"{\"token\":\"s3cret with spaces\"}",
		"{\"token\":\"s3cret\\u0000\"}",
		"s3cret",
		"{\"tokens\":\"s3cret\"}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(bodies); i++) {
		outcome.count = 0;
		server_will_answer(200, "", bodies[i]);
		daytona_ask_access(api, "e1", 5, on_told_access, NULL);
		expect_failed("DAYTONA_UNAVAILABLE", "POST /sandbox/e1/ssh-access at");
		assert_has_not(outcome.err.text, "s3cret");
	}
}

static void test_an_organization_goes_with_a_jwt_alone(void **state)
{
	config.organization = "0rg-1d";
	api_again();
	server_will_answer(200, "", sandbox_text("e1", "started"));
	ask();
	expect_done();
	assert_has_not(server_request(0), "0rg-1d");
	config.key = "eyJh.eyJz.c2ln";
	api_again();
	server_will_answer(200, "", sandbox_text("e1", "started"));
	ask();
	expect_done();
	assert_has(server_request(1), "\r\nAuthorization: Bearer eyJh.eyJz.c2ln\r\n");
	assert_has(server_request(1), "\r\nX-Daytona-Organization-ID: 0rg-1d\r\n");
}

/* ---- what cannot be sent ---- */

static void refuse(const char *url, const char *key, const char *facts)
{
	struct error err;
	struct daytona_api_config bad = config;
	bad.url = url ? url : config.url;
	bad.key = key ? key : config.key;
	assert_null(daytona_api_create(&bad, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_names(err.text, facts);
	assert_has_not(err.text, "s3cret");
}

static void test_a_url_that_gives_the_key_away_is_refused(void **state)
{
	refuse("http://app.daytona.io/api", NULL, "key | in the clear");
	refuse("http://127.0.0.1.evil.org/api", NULL, "in the clear");
	refuse("http://localhost.evil.org/api", NULL, "in the clear");
	refuse("http://128.0.0.1/api", NULL, "in the clear");
	refuse("http://[::2]/api", NULL, "in the clear");
	refuse("https://me:s3cret@app.daytona.io/api", NULL, "no user");
	refuse("https://app.daytona.io/api?s3cret", NULL, "user, query");
	refuse("https://app.daytona.io/api#s3cret", NULL, "fragment");
	refuse("ftp://app.daytona.io/api", NULL, "not the URL of");
	refuse("file:///etc/passwd", NULL, "not the URL of");
	refuse("app.daytona.io/api", NULL, "not a URL");
	refuse("https://", NULL, "not a URL");
	refuse("", NULL, "not a URL");
}

static void test_a_key_that_is_no_header_is_refused(void **state)
{
	refuse(NULL, "", "key | API | empty");
	refuse(NULL, "s3cret\r\nX-Other: 1", "the key of Daytona's");
	refuse(NULL, "s3cret word", "the key of Daytona's");
	refuse(NULL, "s3cret\xc3\xa9", "the key of Daytona's");
	config.organization = "a b";
	refuse(NULL, NULL, "the organization's id");
}

static void test_an_image_of_more_than_a_word_is_refused(void **state)
{
	daytona_create(api, &(struct daytona_create){.name = "p1", .image = "a\nRUN rm -rf /"},
		on_told, NULL);
	wait_done();
	assert_int_equal(outcome.err.code, ERROR_CONFIG);
	assert_has(outcome.err.text, "POST /sandbox: ");
	assert_has(outcome.err.text, "not an image");
	assert_int_equal(server_count(), 0);
}

static void test_what_is_too_long_to_be_sent_is_refused(void **state)
{
	size_t size = 1 << 20;
	char *value = mem_alloc(size + 1);
	memset(value, 'x', size);
	value[size] = '\0';
	struct daytona_pair labels[] = {{"n", value}, {NULL, NULL}};
	daytona_set_labels(api, "e1", labels, on_told_done, NULL);
	wait_done();
	assert_int_equal(outcome.err.code, ERROR_LIMIT);
	outcome.count = 0;
	daytona_list(api, labels, &on_listed, NULL);
	wait_done();
	assert_int_equal(outcome.err.code, ERROR_LIMIT);
	assert_int_equal(server_count(), 0);
	free(value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_status_has_its_reason_and_the_services_words),
		TEST(test_a_key_that_is_not_taken_is_told_with_where_it_comes_from),
		TEST(test_a_key_that_may_not_do_it_is_told_the_permissions),
		TEST(test_what_a_create_does_not_find_is_no_sandbox),
		TEST(test_a_path_that_is_not_found_is_no_sandbox),
		TEST(test_a_message_may_have_any_shape),
		TEST(test_a_long_message_is_cut_at_a_character),
		TEST(test_a_redirect_is_not_followed),
		TEST(test_an_answer_that_cannot_be_read_is_shown),
		TEST(test_a_list_that_cannot_be_read_says_where),
		TEST(test_labels_that_are_no_texts_are_told),
		TEST(test_what_is_no_http_is_said_to_be_none),
		TEST(test_an_answer_without_an_end_is_cut_off),
		TEST(test_an_echo_of_the_key_is_masked),
		TEST(test_an_answer_that_may_hold_a_token_is_not_shown),
		TEST(test_an_organization_goes_with_a_jwt_alone),
		TEST(test_a_url_that_gives_the_key_away_is_refused),
		TEST(test_a_key_that_is_no_header_is_refused),
		TEST(test_an_image_of_more_than_a_word_is_refused),
		TEST(test_what_is_too_long_to_be_sent_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
