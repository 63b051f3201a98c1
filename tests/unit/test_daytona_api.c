/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <stdio.h>
#include <string.h>

/* Each call: what it sends, and what it makes of the answer. */

/* ---- sandboxes ---- */

static void test_a_create_is_sent_as_the_document_has_it(void **state)
{
	struct daytona_pair env[] = {{"A", "1"}, {NULL, NULL}};
	struct daytona_pair labels[] = {{"acp-broker/owner", "me \"x\""}, {NULL, NULL}};
	struct daytona_create create = {.name = "p1",
		.image = "debian:12",
		.target = "us",
		.env = env,
		.labels = labels,
		.cpu = 2,
		.memory_gib = 4,
		.auto_archive_min = 60,
		.auto_delete_min = -1,
		.blocks_network = true,
		.network_allow_list = "10.0.0.0/8,1.2.3.4/32"};
	server_will_answer(200, "", sandbox_text("e1", "creating"));
	daytona_create(api, &create, on_told, NULL);
	expect_done();
	assert_string_equal(outcome.sandbox.id, "e1");
	assert_string_equal(outcome.sandbox.state, "creating");
	const char *request = server_request(0);
	assert_has(request, "POST /api/sandbox HTTP/1.1\r\n");
	assert_has(request, "\r\nAuthorization: Bearer " KEY "\r\n");
	assert_has(request, "\r\nContent-Type: application/json\r\n");
	assert_has(request, "\r\nUser-Agent: acp-broker/");
	assert_has_not(request, "Organization");
	assert_has_not(request, "Expect");
	assert_has(request,
		"\r\n\r\n{\"name\":\"p1\",\"buildInfo\":{\"dockerfileContent\":\"FROM "
		"debian:12\\n\"},"
		"\"target\":\"us\",\"env\":{\"A\":\"1\"},"
		"\"labels\":{\"acp-broker/owner\":\"me \\\"x\\\"\"},\"cpu\":2,\"memory\":4,"
		"\"autoStopInterval\":0,\"autoArchiveInterval\":60,\"public\":false,"
		"\"networkBlockAll\":true,\"networkAllowList\":\"10.0.0.0/8,1.2.3.4/32\"}");
}

static void test_a_sandbox_is_read_with_its_nulls_and_gaps(void **state)
{
	server_will_answer(200, "", sandbox_text("e1", "a_state_of_tomorrow"));
	daytona_get(api, "p1/ x", on_told, NULL);
	expect_done();
	assert_has(server_request(0), "GET /api/sandbox/p1%2F%20x HTTP/1.1\r\n");
	assert_has_not(server_request(0), "Content-Type");
	assert_string_equal(outcome.sandbox.state, "a_state_of_tomorrow");
	assert_string_equal(outcome.sandbox.error_reason, "");
	assert_string_equal(outcome.sandbox.network_allow_list, "");
	assert_string_equal(outcome.sandbox.snapshot, "");
	assert_string_equal(outcome.sandbox.labels[0].name, "a/b");
	assert_string_equal(outcome.sandbox.labels[0].value, "1");
	assert_null(outcome.sandbox.labels[1].name);
	assert_false(outcome.sandbox.has_odd_labels);
	assert_int_equal(outcome.sandbox.auto_stop_min, 15);
	assert_int_equal(outcome.sandbox.auto_delete_min, -1);
}

static void test_acts_are_paths(void **state)
{
	static const struct {
		enum daytona_act act;
		const char *line;
	} table[] = {
		{DAYTONA_START, "POST /api/sandbox/e1/start HTTP/1.1\r\n"},
		{DAYTONA_STOP, "POST /api/sandbox/e1/stop HTTP/1.1\r\n"},
		{DAYTONA_ARCHIVE, "POST /api/sandbox/e1/archive HTTP/1.1\r\n"},
		{DAYTONA_DELETE, "DELETE /api/sandbox/e1 HTTP/1.1\r\n"},
		{DAYTONA_RECOVER, "POST /api/sandbox/e1/recover HTTP/1.1\r\n"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		outcome.count = 0;
		server_will_answer(200, "", sandbox_text("e1", "stopping"));
		daytona_act(api, table[i].act, "e1", on_told, NULL);
		expect_done();
		assert_has(server_request(i), table[i].line);
		assert_has(server_request(i), "Content-Length: 0\r\n");
		assert_has_not(server_request(i), "Content-Type");
	}
	assert_int_equal(server_connections(), 1);
}

static void test_settings_are_sent_and_201_or_nothing_is_a_yes(void **state)
{
	struct daytona_pair labels[] = {{"n", "5"}, {NULL, NULL}};
	struct daytona_network network = {.domain_allow_list = "a.org,*.b.org"};
	server_will_answer(200, "", sandbox_text("e1", "started"));
	daytona_set_labels(api, "e1", labels, on_told_done, NULL);
	expect_done();
	assert_has(server_request(0), "PUT /api/sandbox/e1/labels HTTP/1.1\r\n");
	assert_has(server_request(0), "\r\n\r\n{\"labels\":{\"n\":\"5\"}}");
	outcome.count = 0;
	server_will_answer(201, "", sandbox_text("e1", "started"));
	daytona_set_interval(api, "e1", DAYTONA_AUTO_DELETE, -1, on_told_done, NULL);
	expect_done();
	assert_has(server_request(1), "POST /api/sandbox/e1/autodelete/-1 HTTP/1.1\r\n");
	outcome.count = 0;
	server_will_answer(201, "", "");
	daytona_touch(api, "e1", on_told_done, NULL);
	expect_done();
	assert_has(server_request(2), "POST /api/sandbox/e1/last-activity HTTP/1.1\r\n");
	outcome.count = 0;
	server_will_answer(200, "", "no JSON at all");
	daytona_set_network(api, "e1", &network, on_told_done, NULL);
	expect_done();
	assert_has(server_request(3), "POST /api/sandbox/e1/network-settings HTTP/1.1\r\n");
	assert_has(server_request(3),
		"\r\n\r\n{\"networkBlockAll\":false,\"domainAllowList\":\"a.org,*.b.org\"}");
}

/* ---- access ---- */

static void test_access_is_a_token_and_a_place(void **state)
{
	static const struct {
		const char *command, *host;
		int port;
	} table[] = {
		{"ssh -p 2222 T0ken@127.0.0.1", "127.0.0.1", 2222},
		{"ssh T0ken@ssh.app.daytona.io", "ssh.app.daytona.io", 0},
		{"ssh T0ken@h -p 23", "h", 23},
		{"ssh -p22 T0ken@[::1]:24", "::1", 24},
		{"ssh a#b@proxy.app.daytona.io:2222", "proxy.app.daytona.io", 2222},
		{"ssh -p 99999 T0ken@h", "h", 0},
		{"ssh T0ken@-oProxyCommand=x", "", 0},
		{"something else", "", 0},
		{"", "", 0},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		char body[512];
		snprintf(body, sizeof(body),
			"{\"id\":\"x\",\"sandboxId\":\"e1\",\"token\":\"T0ken\","
			"\"expiresAt\":\"2026-11-20T19:28:27.521Z\",\"sshCommand\":\"%s\"}",
			table[i].command);
		outcome.count = 0;
		server_will_answer(200, "", body);
		daytona_ask_access(api, "e1", 60, on_told_access, NULL);
		expect_done();
		assert_string_equal(outcome.access.token, "T0ken");
		assert_string_equal(outcome.access.host, table[i].host);
		assert_int_equal(outcome.access.port, table[i].port);
		assert_string_equal(outcome.access.expires_at, "2026-11-20T19:28:27.521Z");
	}
	assert_has(server_request(0), "POST /api/sandbox/e1/ssh-access?expiresInMinutes=60 HTTP");
}

static void test_access_is_revoked_as_a_whole(void **state)
{
	server_will_answer(200, "", sandbox_text("e1", "started"));
	daytona_revoke_access(api, "e1", on_told_done, NULL);
	expect_done();
	assert_has(server_request(0), "DELETE /api/sandbox/e1/ssh-access HTTP/1.1\r\n");
}

/* ---- lists ---- */

static void will_page(const char *first, const char *second, const char *cursor)
{
	char one[1024];
	char body[4096];
	snprintf(one, sizeof(one), "%s", sandbox_text(first, "started"));
	snprintf(body, sizeof(body), "{\"total\":4,\"items\":[%s, %s],\"nextCursor\":%s}", one,
		sandbox_text(second, "stopped"), cursor);
	server_will_answer(200, "", body);
}

static void test_a_list_is_all_its_pages(void **state)
{
	struct daytona_pair labels[] = {{"acp-broker/owner", "m&e"}, {NULL, NULL}};
	will_page("e1", "e2", "\"a=b+\\u0063\"");
	will_page("e3", "e4", "null");
	daytona_list(api, labels, &on_listed, NULL);
	expect_done();
	assert_string_equal(outcome.ids, "e1 e2 e3 e4 ");
	assert_has(server_request(0),
		"GET /api/sandbox?limit=100&labels=%7B%22acp-broker%2Fowner%22%3A%22m%26e%22%7D "
		"HTTP/1.1\r\n");
	assert_has(server_request(1), "%7D&cursor=a%3Db%2Bc HTTP/1.1\r\n");
}

static void test_an_empty_list_is_one(void **state)
{
	struct daytona_pair labels[] = {{NULL, NULL}};
	server_will_answer(200, "", "{\"items\":[],\"nextCursor\":null}");
	daytona_list(api, labels, &on_listed, NULL);
	expect_done();
	assert_int_equal(outcome.listed, 0);
}

static void test_a_list_whose_cursor_leads_nowhere_ends(void **state)
{
	struct daytona_pair labels[] = {{NULL, NULL}};
	will_page("e1", "e2", "\"c\"");
	will_page("e3", "e4", "\"c\"");
	daytona_list(api, labels, &on_listed, NULL);
	expect_failed("DAYTONA_UNAVAILABLE", "has no end");
	assert_int_equal(outcome.listed, 2);
}

/* ---- the key ---- */

static unsigned int may;

static void on_permissions(void *data, unsigned int permissions, const struct error *err)
{
	may = permissions;
	on_told_done(data, err);
}

static void test_the_permissions_of_the_key_are_read(void **state)
{
	static const struct {
		const char *text;
		unsigned int permissions;
	} table[] = {
		{"[]", 0},
		{"[\"write:sandboxes\",\"read:volumes\"]", DAYTONA_MAY_WRITE},
		{"[7,\"delete:sandboxes\",\"write:sandboxes\",\"write:sandboxes \"]",
			DAYTONA_MAY_WRITE | DAYTONA_MAY_DELETE},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		char body[256];
		snprintf(body, sizeof(body), "{\"name\":\"k\",\"permissions\":%s}", table[i].text);
		server_will_answer(200, "", body);
		outcome.count = 0;
		daytona_ask_permissions(api, on_permissions, NULL);
		expect_done();
		assert_int_equal(may, table[i].permissions);
	}
	assert_has(server_request(0), "GET /api/api-keys/current HTTP/1.1\r\n");
}

static void test_permissions_that_are_not_told_are_no_missing_sandbox(void **state)
{
	server_will_answer(404, "",
		"{\"path\":\"/api/api-keys/current\",\"timestamp\":\"2026-11-20T19:23:26.653Z\","
		"\"statusCode\":404,\"error\":\"Not Found\",\"message\":\"API key not found\"}");
	daytona_ask_permissions(api, on_permissions, NULL);
	expect_failed("DAYTONA_REJECTED", "GET /api-keys/current | status 404");
	server_will_answer(200, "", "{\"permissions\":\"" KEY "\"}");
	outcome.count = 0;
	daytona_ask_permissions(api, on_permissions, NULL);
	expect_failed("DAYTONA_UNAVAILABLE", "no list");
	assert_has_not(outcome.err.text, KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_create_is_sent_as_the_document_has_it, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_sandbox_is_read_with_its_nulls_and_gaps, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(test_acts_are_paths, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(test_settings_are_sent_and_201_or_nothing_is_a_yes,
			api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_access_is_a_token_and_a_place, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_access_is_revoked_as_a_whole, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_list_is_all_its_pages, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(test_an_empty_list_is_one, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_list_whose_cursor_leads_nowhere_ends, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_the_permissions_of_the_key_are_read, api_setup, api_teardown),
		cmocka_unit_test_setup_teardown(
			test_permissions_that_are_not_told_are_no_missing_sandbox, api_setup,
			api_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
