/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/net/network.h"
#include "providers/local/net/upstream.h"
#include "tests/support/facts.h"

/* ---- stand-ins for the process and the cell ---- */

struct network {
	const struct network_listener *listener;
	void *data;
	uint16_t services[PORTS_SERVICES_MAX];
	size_t service_count;
	size_t network_count;
	struct upstream upstream;
	uint32_t decided;
	bool is_allowed;
	bool is_stopped;
	uid_t uid;
	gid_t gid;
};

static struct network process;

struct network *network_create(struct ev_loop *loop, struct spawner *spawner,
	struct network_user user, const struct network_listener *listener, void *data,
	struct error *err)
{
	process = (struct network){
		.listener = listener, .data = data, .uid = user.uid, .gid = user.gid};
	return &process;
}

bool network_serve(
	struct network *network, const struct network_options *options, struct error *err)
{
	network->service_count = options->service_count;
	network->network_count = options->network_count;
	network->upstream = *options->upstream;
	memcpy(network->services, options->services,
		options->service_count * sizeof(*options->services));
	return true;
}

void network_decide(struct network *network, uint32_t id, bool is_allowed)
{
	network->decided = id;
	network->is_allowed = is_allowed;
}

void network_stop(struct network *network)
{
	network->is_stopped = true;
}

void cell_take_ports(struct cell *cell, int out_fds[PORTS_MAX])
{
	for (size_t i = 0; i < PORTS_MAX; i++) {
		out_fds[i] = -1;
	}
}

/* ---- its events ---- */

struct told {
	bool is_ready;
	struct error failed;
	char **notices;
	uint32_t wished; // the last wish; 0: none
	char wish[300];  // "host port"
	uint32_t gone;   // the last wish that is gone
	char **lines;    // "target way rule result server-name", and "left N" where it says so
};

static void on_ready(void *data)
{
	((struct told *)data)->is_ready = true;
}

static void on_failed(void *data, const struct error *err)
{
	((struct told *)data)->failed = *err;
}

static void on_notice(void *data, const char *text)
{
	words_append(&((struct told *)data)->notices, text);
}

static void on_connection(void *data, const struct sandbox_connection *connection)
{
	char line[1024];
	text_format(line, sizeof(line), "%s %s %s %s%s%s%s", connection->target, connection->way,
		connection->rule, connection->is_allowed ? connection->result : "refused",
		connection->is_by_user ? " user" : "", connection->server_name ? " " : "",
		connection->server_name ? connection->server_name : "");
	assert_int_equal(connection->is_allowed, connection->result != NULL);
	if (connection->left_out > 0) {
		text_append(line, sizeof(line), " left %zu", connection->left_out);
	}
	words_append(&((struct told *)data)->lines, line);
}

static void on_wish(void *data, const struct sandbox_wish *wish)
{
	struct told *told = data;
	told->wished = wish->id;
	text_format(told->wish, sizeof(told->wish), "%s %u", wish->host, wish->port);
}

static void on_wish_gone(void *data, uint32_t id)
{
	((struct told *)data)->gone = id;
}

static const struct sandbox_listener listener = {.on_failed = on_failed,
	.on_notice = on_notice,
	.on_connection = on_connection,
	.on_wish = on_wish,
	.on_wish_gone = on_wish_gone};

struct fixture {
	struct settings settings;
	struct told told;
	struct cell_network *network;
};

static void add(struct settings *settings, const char *key, const char *value)
{
	settings_add(settings, key, value, "test");
}

static int begin_with(void **state, const char *network)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	static const char *const environment[] = {
		"HTTPS_PROXY=http://me:secret@proxy.example:3128", NULL};
	struct provider_context context = {.loop = NULL, .environment = environment};
	struct error err;
	settings_init(&fixture->settings);
	add(&fixture->settings, "network", network);
	add(&fixture->settings, "allow-host", "a.example");
	add(&fixture->settings, "allow-host", "*.b.example:443");
	add(&fixture->settings, "allow-host", "localhost:5432");
	add(&fixture->settings, "allow-cidr", "10.0.0.0/8");
	const struct cell_network_config config = {.context = &context,
		.settings = &fixture->settings,
		.uid = 1000,
		.gid = 1001,
		.on_ready = on_ready,
		.data = &fixture->told,
		.listener = &listener,
		.listener_data = &fixture->told};
	fixture->network = cell_network_create(&config, &err);
	assert_non_null(fixture->network);
	*state = fixture;
	return 0;
}

static int begin_early(void **state)
{
	return begin_with(state, "allow");
}

static int serve(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	assert_true(cell_network_serve(fixture->network, NULL, &err));
	return 0;
}

static int begin(void **state)
{
	return begin_with(state, "allow") || serve(state);
}

static int begin_asking(void **state)
{
	return begin_with(state, "ask") || serve(state);
}

static int end(void **state)
{
	struct fixture *fixture = *state;
	cell_network_stop(fixture->network);
	assert_true(process.is_stopped);
	settings_finish(&fixture->settings);
	words_free(fixture->told.notices);
	words_free(fixture->told.lines);
	free(fixture);
	return 0;
}

static struct network_connection to_name(uint32_t id, const char *name, uint16_t port)
{
	return (struct network_connection){
		.id = id, .target = NETWORK_TO_NAME, .name = name, .port = port};
}

static struct network_connection to_address(uint32_t id, const char *text, uint16_t port)
{
	struct network_connection connection = {
		.id = id, .target = NETWORK_TO_ADDRESS, .name = text, .port = port};
	assert_true(address_parse(&connection.address, text));
	return connection;
}

static bool ask(const struct network_connection *connection)
{
	process.listener->on_ask(process.data, connection);
	assert_int_equal(process.decided, connection->id);
	return process.is_allowed;
}

static void test_it_decides_by_name_address_and_service(void **state)
{
	const struct {
		struct network_connection connection;
		bool is_allowed;
	} cases[] = {
		{to_name(1, "a.example", 22), true},
		{to_name(2, "x.a.example", 22), false},
		{to_name(3, "x.b.example", 443), true},
		{to_name(4, "x.b.example", 22), false},
		{to_name(5, "localhost", 5432), false},
		{to_address(6, "10.1.1.1", 22), true},
		{to_address(7, "192.168.1.1", 22), false},
		{to_address(8, "93.184.215.14", 443), false},
		{to_address(9, "169.254.169.254", 80), false},
		{{.id = 90, .target = NETWORK_TO_SERVICE, .name = "localhost", .port = 5432}, true},
		{{.id = 91, .target = NETWORK_TO_SERVICE, .name = "localhost", .port = 22}, false},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		if (ask(&cases[i].connection) != cases[i].is_allowed) {
			fail_msg("%s:%u", cases[i].connection.name, cases[i].connection.port);
		}
	}
	assert_int_equal(process.service_count, 1);
	assert_int_equal(process.services[0], 5432);
	assert_int_equal(process.network_count, 1);
	assert_int_equal(process.uid, 1000);
	assert_int_equal(process.gid, 1001);
}

static void test_each_decision_is_a_line(void **state)
{
	struct fixture *fixture = *state;
	struct network_connection good = to_name(1, "a.example", 443);
	struct network_connection bad = to_name(2, "evil.example", 443);
	struct network_connection six = to_address(3, "2001:db8::1", 22);
	good.way = NETWORK_BY_CONNECT;
	six.way = NETWORK_BY_SOCKS;
	ask(&good);
	assert_null(fixture->told.lines);
	process.listener->on_tell(process.data, &good, NETWORK_CONNECTED);
	process.listener->on_server_name(process.data, 1, "a.example");
	process.listener->on_server_name(process.data, 1, "other.example");
	process.listener->on_server_name(process.data, 7, "nobody.example");
	ask(&bad);
	ask(&six);
	char **lines = fixture->told.lines;
	assert_int_equal(words_count(lines), 4);
	assert_string_equal(lines[0], "a.example:443 connect allow-host = a.example connected");
	assert_string_equal(
		lines[1], "a.example:443 connect allow-host = a.example connected other.example");
	assert_string_equal(lines[2], "evil.example:443 socket network = allow refused");
	assert_string_equal(lines[3], "[2001:db8::1]:22 socks network = allow refused");
}

/* Otherwise they would push older lines out of the file. */
static void test_a_flood_of_connections_has_few_lines(void **state)
{
	struct fixture *fixture = *state;
	struct network_connection bad = to_name(1, "evil.example", 443);
	for (uint32_t i = 1; i <= 2000; i++) {
		bad.id = i;
		assert_false(ask(&bad));
	}
	size_t count = words_count(fixture->told.lines);
	assert_in_range(count, 256, 1000);
	assert_int_equal(words_count(fixture->told.notices), 1);
}

static void test_the_user_learns_what_would_allow_it(void **state)
{
	struct fixture *fixture = *state;
	const struct network_connection refused[] = {to_name(1, "evil.example", 443),
		to_name(2, "evil.example", 443), to_address(3, "192.168.1.1", 22),
		to_address(4, "2001:db8::1", 22), to_address(5, "169.254.169.254", 80)};
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		ask(&refused[i]);
	}
	struct network_connection inner = to_name(6, "a.example", 80);
	ask(&inner);
	process.listener->on_tell(process.data, &inner, NETWORK_FORBIDDEN);
	char **notices = fixture->told.notices;
	assert_int_equal(words_count(notices), 5);
	assert_names(notices[0], "evil.example:443 | allow-host = evil.example:443");
	assert_names(notices[1], "192.168.1.1:22 | allow-cidr = 192.168.1.1/32");
	assert_names(notices[2], "[2001:db8::1]:22 | allow-cidr = 2001:db8::1/128");
	assert_names(notices[3], "169.254.169.254:80 | allow-host = localhost:PORT");
	assert_names(notices[4], "a.example:80 | allow-cidr = NETWORK");
}

static void tell(uint32_t id, enum network_result result, uint16_t status)
{
	struct network_connection connection = to_name(id, "a.example", (uint16_t)(id + 100));
	connection.proxy_status = status;
	ask(&connection);
	process.listener->on_tell(process.data, &connection, result);
}

static void test_the_process_gets_the_machines_proxy(void **state)
{
	assert_string_equal(process.upstream.place.name, "proxy.example");
	assert_int_equal(process.upstream.place.port, 3128);
	assert_string_equal(process.upstream.key, "bWU6c2VjcmV0");
}

static void test_the_user_learns_what_the_proxy_refuses(void **state)
{
	struct fixture *fixture = *state;
	tell(1, NETWORK_PROXY_REFUSED, 403);
	tell(2, NETWORK_PROXY_REFUSED, 407);
	tell(3, NETWORK_PROXY_REFUSED, 0);
	tell(4, NETWORK_PROXY_UNREACHABLE, 0);
	tell(5, NETWORK_PROXY_UNREACHABLE, 0);
	char **notices = fixture->told.notices;
	assert_int_equal(words_count(notices), 4);
	assert_names(notices[0], "HTTPS_PROXY | a.example:101 | 403");
	assert_names(notices[1], "HTTPS_PROXY | a.example:102 | 407");
	assert_names(notices[2], "HTTPS_PROXY | a.example:103");
	assert_names(notices[3], "HTTPS_PROXY | no_proxy");
	assert_names(fixture->told.lines[0], "proxy-refused");
	assert_names(fixture->told.lines[4], "proxy-unreachable");
	for (size_t i = 0; i < words_count(notices); i++) {
		assert_null(strstr(notices[i], "secret"));
	}
}

static void test_the_user_is_not_told_without_end(void **state)
{
	struct fixture *fixture = *state;
	for (uint32_t i = 1; i <= 100; i++) {
		char name[32];
		text_format(name, sizeof(name), "h%u.example", i);
		struct network_connection bad = to_name(i, name, 443);
		ask(&bad);
	}
	assert_int_equal(words_count(fixture->told.notices), 9);
	assert_names(fixture->told.notices[8], "audit = FILE");
}

static void test_a_start_that_fails_is_told_apart_from_a_later_end(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "CELL_UNAVAILABLE", "no filter");
	process.listener->on_end(process.data, &err);
	assert_names(fixture->told.failed.text, "network = allow | no filter");
	assert_true(error_has_reason(&fixture->told.failed, "CELL_UNAVAILABLE"));
	assert_null(fixture->told.notices);
}

/* While the cell is being made, the sandbox waits for the cell alone. */
static void test_an_end_before_the_cell_is_ready_fails_the_start_when_it_is(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "CELL_UNAVAILABLE", "no filter");
	process.listener->on_end(process.data, &err);
	assert_int_equal(fixture->told.failed.code, ERROR_NONE);
	assert_null(fixture->told.notices);
	assert_false(cell_network_serve(fixture->network, NULL, &err));
	assert_names(err.text, "network = allow | no filter");
	assert_true(error_has_reason(&err, "CELL_UNAVAILABLE"));
}

static void test_its_end_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	process.listener->on_ready(process.data);
	assert_true(fixture->told.is_ready);
	error_set(&err, ERROR_UNAVAILABLE, "killed by signal 9");
	process.listener->on_end(process.data, &err);
	assert_int_equal(fixture->told.failed.code, ERROR_NONE);
	assert_int_equal(words_count(fixture->told.notices), 1);
	assert_names(fixture->told.notices[0], "network = allow | signal 9 | refused");
}

static void test_the_variables_of_proxies_are_those_of_the_cell(void **state)
{
	struct fixture *fixture = *state;
	char **environment = mem_alloc_zero(sizeof(*environment));
	static const char *const old[] = {"PATH=/bin", "HTTP_PROXY=http://corporate:1",
		"https_proxy=http://corporate:1", "ALL_PROXY=socks5://corporate:1", "no_proxy=x"};
	for (size_t i = 0; i < ARRAY_LENGTH(old); i++) {
		words_append(&environment, old[i]);
	}
	cell_network_set_variables(&fixture->settings, &environment);
	assert_int_equal(words_count(environment), 5);
	const char *const *now = (const char *const *)environment;
	assert_string_equal(environment_get(now, "PATH"), "/bin");
	assert_string_equal(environment_get(now, "HTTPS_PROXY"), "http://198.18.0.1:3128");
	assert_string_equal(environment_get(now, "https_proxy"), "http://198.18.0.1:3128");
	assert_string_equal(environment_get(now, "NO_PROXY"), "localhost,127.0.0.1,::1");
	assert_string_equal(environment_get(now, "no_proxy"), "localhost,127.0.0.1,::1");
	struct settings blocked;
	settings_init(&blocked);
	add(&blocked, "network", "blocked");
	cell_network_set_variables(&blocked, &environment);
	assert_int_equal(words_count(environment), 1);
	settings_finish(&blocked);
	words_free(environment);
}

static void test_the_plan_has_the_services(void **state)
{
	struct fixture *fixture = *state;
	struct cell_plan plan = {.has_network = false};
	cell_network_plan(&fixture->settings, &plan);
	assert_true(plan.has_ports);
	assert_int_equal(plan.service_count, 1);
	assert_int_equal(plan.services[0], 5432);
	struct settings blocked;
	settings_init(&blocked);
	add(&blocked, "network", "blocked");
	struct cell_plan other = {.has_network = false};
	cell_network_plan(&blocked, &other);
	assert_false(other.has_ports);
	settings_finish(&blocked);
}

/* ---- network = ask ---- */

static void wish_for(struct fixture *fixture, const struct network_connection *connection)
{
	process.decided = 0;
	fixture->told.wished = 0;
	process.listener->on_ask(process.data, connection);
}

static void test_what_a_line_allows_is_not_asked_and_what_none_could_allow_is_refused(void **state)
{
	const struct network_connection refused[] = {to_address(1, "192.168.1.1", 22),
		to_address(2, "127.0.0.1", 22), to_address(3, "169.254.169.254", 80),
		to_address(4, "fd00::1", 80),
		{.id = 5, .target = NETWORK_TO_SERVICE, .name = "localhost", .port = 22}};
	const struct network_connection allowed[] = {
		to_name(6, "a.example", 1), to_address(7, "10.1.1.1", 1)};
	struct fixture *fixture = *state;
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		wish_for(fixture, &refused[i]);
		assert_int_equal(process.decided, refused[i].id);
		assert_false(process.is_allowed);
		assert_int_equal(fixture->told.wished, 0);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++) {
		wish_for(fixture, &allowed[i]);
		assert_int_equal(process.decided, allowed[i].id);
		assert_true(process.is_allowed);
		assert_int_equal(fixture->told.wished, 0);
	}
}

static void test_the_answer_to_a_wish_decides_and_is_logged(void **state)
{
	struct fixture *fixture = *state;
	const struct network_connection name = to_name(1, "new.example", 443);
	const struct network_connection address = to_address(2, "93.184.215.14", 22);
	const struct network_connection third = to_name(3, "third.example", 443);
	wish_for(fixture, &name);
	assert_int_equal(process.decided, 0);
	assert_string_equal(fixture->told.wish, "new.example 443");
	cell_network_decide(fixture->network, 1,
		&(struct sandbox_verdict){.is_allowed = true, .rule = "network = ask: yes"});
	assert_int_equal(process.decided, 1);
	assert_true(process.is_allowed);
	process.listener->on_tell(process.data, &name, NETWORK_CONNECTED);
	wish_for(fixture, &address);
	assert_string_equal(fixture->told.wish, "93.184.215.14 22");
	cell_network_decide(
		fixture->network, 2, &(struct sandbox_verdict){.rule = "network = ask: no"});
	assert_int_equal(process.decided, 2);
	assert_false(process.is_allowed);
	assert_null(fixture->told.notices);
	wish_for(fixture, &third);
	cell_network_decide(fixture->network, 3,
		&(struct sandbox_verdict){.rule = "network = ask", .why = "nobody is here"});
	char **lines = fixture->told.lines;
	assert_int_equal(words_count(lines), 3);
	assert_string_equal(lines[0], "new.example:443 socket network = ask: yes connected user");
	assert_string_equal(lines[1], "93.184.215.14:22 socket network = ask: no refused user");
	assert_string_equal(lines[2], "third.example:443 socket network = ask refused");
	assert_int_equal(words_count(fixture->told.notices), 1);
	assert_names(fixture->told.notices[0],
		"network = ask | third.example:443 | nobody is here | allow-host = "
		"third.example:443");
	process.decided = 0;
	cell_network_decide(fixture->network, 1,
		&(struct sandbox_verdict){.is_allowed = true, .rule = "again"});
	assert_int_equal(process.decided, 0);
}

static void test_a_wish_that_is_gone_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	const struct network_connection name = to_name(1, "new.example", 443);
	wish_for(fixture, &name);
	process.listener->on_gone(process.data, 1);
	assert_int_equal(fixture->told.gone, 1);
	fixture->told.gone = 0;
	process.listener->on_gone(process.data, 1);
	assert_int_equal(fixture->told.gone, 0);
	struct error err;
	process.listener->on_ready(process.data);
	const struct network_connection other = to_name(2, "new.example", 443);
	wish_for(fixture, &other);
	error_set(&err, ERROR_UNAVAILABLE, "killed by signal 9");
	process.listener->on_end(process.data, &err);
	assert_int_equal(fixture->told.gone, 2);
}

static void test_only_so_many_wishes_wait(void **state)
{
	struct fixture *fixture = *state;
	for (uint32_t id = 1; id <= NETWORK_CONNECTIONS_MAX + 1; id++) {
		const struct network_connection name = to_name(id, "new.example", 443);
		wish_for(fixture, &name);
		bool is_one_more = id > NETWORK_CONNECTIONS_MAX;
		assert_int_equal(process.decided, is_one_more ? id : 0);
	}
	assert_false(process.is_allowed);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)
#define ASKING_CASE(test) cmocka_unit_test_setup_teardown(test, begin_asking, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_it_decides_by_name_address_and_service),
		CASE(test_each_decision_is_a_line),
		CASE(test_a_flood_of_connections_has_few_lines),
		CASE(test_the_user_learns_what_would_allow_it),
		CASE(test_the_process_gets_the_machines_proxy),
		CASE(test_the_user_learns_what_the_proxy_refuses),
		CASE(test_the_user_is_not_told_without_end),
		CASE(test_a_start_that_fails_is_told_apart_from_a_later_end),
		cmocka_unit_test_setup_teardown(
			test_an_end_before_the_cell_is_ready_fails_the_start_when_it_is,
			begin_early, end),
		CASE(test_its_end_is_told_once),
		CASE(test_the_variables_of_proxies_are_those_of_the_cell),
		CASE(test_the_plan_has_the_services),
		ASKING_CASE(
			test_what_a_line_allows_is_not_asked_and_what_none_could_allow_is_refused),
		ASKING_CASE(test_the_answer_to_a_wish_decides_and_is_logged),
		ASKING_CASE(test_a_wish_that_is_gone_is_told_once),
		ASKING_CASE(test_only_so_many_wishes_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
