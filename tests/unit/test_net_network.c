/* SPDX-License-Identifier: MIT */
#include "tests/unit/net_fixture.h"

/* ---- the tests ---- */

static void test_a_program_connects_by_name_and_the_server_may_speak_first(void **state)
{
	begin(state);
	struct sockaddr_in name;
	socklen_t size = sizeof(name);
	int client = dial_name("good.example");
	int peer = accept_at_server();
	say(peer, "220 welcome\n");
	expect(client, "220 welcome\n");
	assert_int_equal(seen.asked.target, NETWORK_TO_NAME);
	assert_int_equal(seen.asked.way, NETWORK_BY_SOCKET);
	assert_string_equal(seen.asked_name, "good.example");
	assert_int_equal(seen.asked.port, server_port);
	assert_int_equal(getsockname(client, (struct sockaddr *)&name, &size), 0);
	assert_int_equal(seen.asked.client_port, ntohs(name.sin_port));
	TURN_UNTIL(seen.tells == 1);
	assert_int_equal(seen.result, NETWORK_CONNECTED);
	say(client, "HELO\n");
	shutdown(client, SHUT_WR);
	expect(peer, "HELO\n");
	char byte;
	assert_int_equal(read_some(peer, &byte, 1), 0);
	say(peer, "250 after the end\n");
	close(peer);
	expect(client, "250 after the end\n");
	expect_end(client);
	finish();
}

static void test_what_is_said_before_the_decision_arrives_after_it(void **state)
{
	begin(state);
	seen.mode = WAITS;
	int client = dial_name("good.example");
	say(client, "early ");
	TURN_UNTIL(seen.asks == 1);
	assert_false(is_readable(server));
	say(client, "bird");
	network_decide(seen.network, seen.ids[0], true);
	int peer = accept_at_server();
	expect(peer, "early bird");
	close(peer);
	expect_end(client);
	finish();
}

static void test_connect_and_socks_reach_the_same(void **state)
{
	char text[128];
	begin(state);
	int client = dial(PORTS_GATE_ADDRESS, PORTS_GATE_PORT);
	text_whole(
		text, sizeof(text), "CONNECT Good.Example:%u HTTP/1.1\r\n\r\nearly", server_port);
	say(client, text);
	int peer = accept_at_server();
	expect(peer, "early");
	expect(client, "HTTP/1.1 200 Connection established\r\n\r\n");
	assert_int_equal(seen.asked.way, NETWORK_BY_CONNECT);
	assert_string_equal(seen.asked_name, "good.example");
	close(client);
	expect_end(peer);

	client = dial(PORTS_GATE_ADDRESS, PORTS_GATE_PORT);
	const char host[] = "other.example";
	char request[64] = {5, 1, 0, 5, 1, 0, 3, sizeof(host) - 1};
	memcpy(request + 8, host, sizeof(host) - 1);
	request[8 + sizeof(host) - 1] = (char)(server_port >> 8);
	request[8 + sizeof(host)] = (char)server_port;
	size_t size = 8 + sizeof(host) + 1;
	assert_int_equal(send(client, request, size, 0), size);
	peer = accept_at_server();
	char answer[12];
	size_t len = 0;
	while (len < sizeof(answer)) {
		ssize_t got = read_some(client, answer + len, sizeof(answer) - len);
		assert_true(got > 0);
		len += (size_t)got;
	}
	assert_memory_equal(answer, "\5\0\5\0\0\1\0\0\0\0\0\0", sizeof(answer));
	assert_int_equal(seen.asked.way, NETWORK_BY_SOCKS);
	assert_string_equal(seen.asked_name, "other.example");
	close(peer);
	expect_end(client);
	finish();
}

static void test_a_name_that_is_refused_is_reset_and_never_looked_up(void **state)
{
	char text[128];
	begin(state);
	seen.mode = REFUSES;
	expect_reset(dial_name("good.example"));
	assert_string_equal(seen.asked_name, "good.example");
	int client = dial(PORTS_GATE_ADDRESS, PORTS_GATE_PORT);
	text_whole(text, sizeof(text), "CONNECT good.example:%u HTTP/1.1\r\n\r\n", server_port);
	say(client, text);
	expect(client, "HTTP/1.1 403 ");
	close(client);
	assert_int_equal(seen.tells, 0);
	assert_false(is_readable(server));
	finish();
}

/* The owner of a name chooses its address. */
static void test_addresses_that_only_this_machine_reaches_are_refused(void **state)
{
	static const char *const names[] = {
		"loop.example", "metadata.example", "private.example", "own.example"};
	static const uint32_t addresses[] = {0xa9fea9fe, OWN_PRIVATE, OWN_PUBLIC};
	begin(state);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_reset(dial_name(names[i]));
		TURN_UNTIL(seen.tells == (int)i + 1);
		assert_int_equal(seen.result, NETWORK_FORBIDDEN);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++) {
		expect_reset(dial(addresses[i], server_port));
		assert_int_equal(seen.asked.target, NETWORK_TO_ADDRESS);
		TURN_UNTIL(seen.tells == (int)(ARRAY_LENGTH(names) + i) + 1);
		assert_int_equal(seen.result, NETWORK_FORBIDDEN);
	}
	assert_false(is_readable(server));
	expect_reset(dial_name("nobody.example"));
	TURN_UNTIL(seen.result == NETWORK_NOT_FOUND);
	expect_reset(dial_name("far.example"));
	TURN_UNTIL(seen.result == NETWORK_FORBIDDEN);
	finish();
}

static void test_the_allowed_one_of_many_addresses_is_taken(void **state)
{
	struct sockaddr_in name;
	socklen_t size = sizeof(name);
	begin(state);
	int client = dial_name("mixed.example");
	int peer = accept_at_server();
	assert_int_equal(getsockname(peer, (struct sockaddr *)&name, &size), 0);
	assert_int_equal(ntohl(name.sin_addr.s_addr), OWN_LISTED);
	close(peer);
	expect_end(client);
	client = dial(OWN_LISTED, server_port);
	peer = accept_at_server();
	assert_int_equal(seen.asked.target, NETWORK_TO_ADDRESS);
	assert_string_equal(seen.asked_name, "10.9.8.7");
	close(peer);
	expect_end(client);
	finish();
}

static void test_an_address_of_nobodys_name_is_reset(void **state)
{
	begin(state);
	expect_reset(dial(0xc6120200, 443));
	expect_reset(dial(PORTS_GATE_ADDRESS, 443));
	assert_int_equal(seen.asks, 0);
	finish();
}

static void test_a_service_of_this_machine_is_reached_at_its_port(void **state)
{
	char text[128];
	begin(state);
	int client = dial(INADDR_LOOPBACK, server_port);
	int peer = accept_at_server();
	assert_int_equal(seen.asked.target, NETWORK_TO_SERVICE);
	assert_string_equal(seen.asked_name, "localhost");
	assert_int_equal(seen.asked.port, server_port);
	close(peer);
	expect_end(client);
	client = dial(PORTS_GATE_ADDRESS, PORTS_GATE_PORT);
	text_whole(text, sizeof(text), "CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\n", server_port);
	say(client, text);
	peer = accept_at_server();
	assert_int_equal(seen.asked.target, NETWORK_TO_SERVICE);
	assert_int_equal(seen.asks, 2);
	close(peer);
	close(client);
	client = dial(PORTS_GATE_ADDRESS, PORTS_GATE_PORT);
	say(client, "CONNECT localhost:1 HTTP/1.1\r\n\r\n");
	expect(client, "HTTP/1.1 403 ");
	close(client);
	assert_int_equal(seen.asks, 2);
	assert_int_equal(resolve("localhost"), INADDR_LOOPBACK);
	finish();
}

static void test_a_reset_is_a_reset_on_the_other_side(void **state)
{
	begin(state);
	int client = dial_name("good.example");
	int peer = accept_at_server();
	reset(peer);
	expect_reset(client);
	client = dial_name("good.example");
	peer = accept_at_server();
	say(client, "x");
	expect(peer, "x");
	reset(client);
	expect_reset(peer);
	finish();
}

static void test_much_arrives_whole_both_ways(void **state)
{
	enum { SIZE = 3 << 20 };
	begin(state);
	int client = dial_name("good.example");
	int peer = accept_at_server();
	const int ends[][2] = {{client, peer}, {peer, client}};
	for (size_t way = 0; way < ARRAY_LENGTH(ends); way++) {
		static char out[SIZE], in[SIZE];
		size_t sent = 0, got = 0;
		random_fill(out, sizeof(out));
		while (got < SIZE) {
			ssize_t now = send(ends[way][0], out + sent, SIZE - sent, MSG_DONTWAIT);
			sent += now > 0 ? (size_t)now : 0;
			now = recv(ends[way][1], in + got, SIZE - got, MSG_DONTWAIT);
			assert_true(now > 0 || (now < 0 && errno == EAGAIN));
			got += now > 0 ? (size_t)now : 0;
		}
		assert_memory_equal(in, out, SIZE);
	}
	close(peer);
	expect_end(client);
	finish();
}

/* Returns -1 if the connection was reset before connect(2) returned. */
static int dial_one_more(uint32_t address)
{
	struct sockaddr_in name = place(address, server_port);
	int fd = cell_socket(SOCK_STREAM);
	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
		assert_int_equal(errno, ECONNRESET);
		fd_close(&fd);
	}
	return fd;
}

static void test_the_257th_connection_is_reset_and_the_next_is_not(void **state)
{
	enum { MANY = 300 };
	static int clients[MANY];
	begin(state);
	seen.mode = WAITS;
	uint32_t address = resolve("good.example");
	for (int i = 0; i < MANY; i++) {
		clients[i] = i < NETWORK_CONNECTIONS_MAX ? dial(address, server_port)
		                                         : dial_one_more(address);
		turn();
	}
	TURN_UNTIL(seen.asks == NETWORK_CONNECTIONS_MAX && seen.limits == 1);
	assert_int_equal(seen.limit, NETWORK_LIMIT_CONNECTIONS);
	for (int i = NETWORK_CONNECTIONS_MAX; i < MANY; i++) {
		if (clients[i] >= 0) {
			expect_reset(clients[i]);
		}
	}
	for (int i = 0; i < NETWORK_CONNECTIONS_MAX; i++) {
		reset(clients[i]);
	}
	TURN_UNTIL(seen.gone == NETWORK_CONNECTIONS_MAX);
	seen.mode = ALLOWS;
	int client = dial(address, server_port);
	close(accept_at_server());
	expect_end(client);
	assert_int_equal(seen.limits, 1);
	finish();
}

static void test_names_have_a_limit_and_those_before_it_go_on(void **state)
{
	begin(state);
	uint32_t first = resolve("good.example");
	for (int i = 1; i < NAMES_MAX; i++) {
		char name[64];
		text_whole(name, sizeof(name), "n%d.example", i);
		assert_int_equal(resolve(name), first + i);
	}
	assert_int_equal(resolve("one-more.example"), 0);
	TURN_UNTIL(seen.limits == 1);
	assert_int_equal(seen.limit, NETWORK_LIMIT_NAMES);
	assert_int_equal(resolve("good.example"), first);
	int client = dial(first, server_port);
	close(accept_at_server());
	expect_end(client);
	finish();
}

static void test_the_server_name_of_tls_is_told(void **state)
{
	char bytes[256];
	begin(state);
	int client = dial_name("good.example");
	int peer = accept_at_server();
	size_t size = net_hello("front.example", bytes);
	assert_int_equal(send(client, bytes, 3, 0), 3);
	char got[256];
	assert_int_equal(read_some(peer, got, sizeof(got)), 3);
	assert_int_equal(send(client, bytes + 3, size - 3, 0), size - 3);
	TURN_UNTIL(seen.server_name[0] != '\0');
	assert_string_equal(seen.server_name, "front.example");
	close(client);
	close(peer);
	finish();
}

/* ---- the process ---- */

/* Our relaying process among all processes below us; 0 if there is none. */
static pid_t find_relay(pid_t above)
{
	struct tree tree = {0};
	pid_t found = 0;
	assert_true(tree_scan(&tree, NULL));
	for (size_t i = 0; i < tree.count; i++) {
		char path[64];
		char line[256] = "";
		text_whole(path, sizeof(path), "/proc/%d/cmdline", (int)tree.items[i].pid);
		ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t size = fd >= 0 ? read(fd, line, sizeof(line) - 1) : 0;
		bool is_relay = size > 0 &&
		                memmem(line, (size_t)size, RELAY_ARGUMENT, sizeof(RELAY_ARGUMENT));
		pid_t at = tree.items[i].pid;
		for (int steps = 0; is_relay && at > 1 && at != above && steps < 32; steps++) {
			const struct tree_process *process = tree_find(&tree, at);
			at = process ? process->parent : 0;
		}
		/* The lookup process is its child and has the same arguments. */
		const struct tree_process *last = tree_find(&tree, found);
		if (is_relay && at == above && (!last || last->parent == tree.items[i].pid)) {
			found = tree.items[i].pid;
		}
	}
	tree_finish(&tree);
	return found;
}

static void test_its_death_is_told_once_and_ends_all_connections(void **state)
{
	begin(state);
	int client = dial_name("good.example");
	int peer = accept_at_server();
	pid_t pid = find_relay(getpid());
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	TURN_UNTIL(seen.has_ended);
	assert_int_equal(seen.err.code, ERROR_UNAVAILABLE);
	char byte;
	assert_true(read_some(client, &byte, 1) <= 0);
	assert_true(read_some(peer, &byte, 1) <= 0);
	close(client);
	close(peer);
	TURN_UNTIL(find_relay(getpid()) == 0); // and the one that looks up names
	network_decide(seen.network, 1, true);
	finish();
}

/* Checks /proc/PID/status, whose lines have the real, the effective and two more ids. */
static void assert_ids_are(pid_t pid, unsigned id)
{
	static const char *const lines[] = {"\nUid:", "\nGid:"};
	char path[64], text[4096], expected[64];
	text_whole(path, sizeof(path), "/proc/%d/status", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	read_all(fd, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		text_whole(expected, sizeof(expected), "%s\t%u\t%u\t%u\t%u\n", lines[i], id, id, id,
			id);
		assert_non_null(strstr(text, expected));
	}
	assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
}

static void test_it_is_the_user_without_capabilities(void **state)
{
	begin(state);
	pid_t pid = find_relay(getpid());
	assert_true(pid > 1);
	assert_ids_are(pid, USER);
	finish();
	assert_ends(pid);
}

static void test_it_ends_when_it_is_stopped(void **state)
{
	begin(state);
	pid_t pid = find_relay(getpid());
	assert_true(pid > 1);
	finish();
	assert_ends(pid);
	TURN_UNTIL(find_relay(getpid()) == 0);
}

/*
 * Another broker, which is killed. Its descriptors are at the places where execute_broker puts
 * them.
 */
enum { TOLD_AT = 20, SERVICE_AT };
#define BROKER_ARGUMENT "--broker"

static int run_broker(void)
{
	struct error err;
	int fds[PORTS_MAX] = {[PORTS_NAMES] = SERVICE_AT + 1,
		[PORTS_STREAMS] = SERVICE_AT + 2,
		[PORTS_SERVICES] = SERVICE_AT};
	spawner = spawner_create(&err);
	if (!spawner) {
		return 1;
	}
	set_up_loop();
	start_in(spawner, fds, USER);
	while (!seen.is_ready) {
		turn();
	}
	pid_t pid = find_relay(getpid());
	(void)!write(TOLD_AT, &pid, sizeof(pid));
	for (;;) {
		turn();
	}
}

static void execute_broker(const int *fds, int told) ATTR_NORETURN;
static void execute_broker(const int *fds, int told)
{
	char program[] = "/proc/self/exe", argument[] = BROKER_ARGUMENT;
	char *const argv[] = {program, argument, NULL};
	dup2(told, TOLD_AT);
	dup2(fds[PORTS_SERVICES], SERVICE_AT);
	dup2(fds[PORTS_NAMES], SERVICE_AT + 1);
	dup2(fds[PORTS_STREAMS], SERVICE_AT + 2);
	execv(program, argv);
	_exit(1);
}

static size_t count_children(void)
{
	struct tree tree = {0};
	size_t count = 0;
	assert_true(tree_scan(&tree, NULL));
	for (size_t i = 0; i < tree.count; i++) {
		count += tree.items[i].parent == getpid();
	}
	tree_finish(&tree);
	return count;
}

static void test_it_ends_with_the_broker(void **state)
{
	int told[2], fds[PORTS_MAX];
	pid_t pid = 0;
	struct error err;
	open_server();
	if (!make_cell(server_port, fds)) {
		skip();
	}
	assert_true(fd_pipe(told, &err));
	size_t children = count_children();
	pid_t broker = fork();
	if (broker == 0) {
		execute_broker(fds, told[1]);
	}
	assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
	assert_true(pid > 1);
	assert_int_equal(kill(broker, SIGKILL), 0);
	assert_int_equal(waitpid(broker, NULL, 0), broker);
	assert_ends(pid);
	/* The processes that the broker has left become our children, and end. */
	TURN_UNTIL((waitpid(-1, NULL, WNOHANG), count_children() == children));
	for (size_t i = 0; i < PORTS_MAX; i++) {
		fd_close(&fds[i]);
	}
	close(told[0]);
	close(told[1]);
	close(server);
	close(cell_ns);
}

static void test_a_process_that_sends_no_messages_is_ended(void **state)
{
	start_for(state, GARBAGE_GROUP);
	TURN_UNTIL(seen.has_ended);
	assert_int_equal(seen.err.code, ERROR_UNAVAILABLE);
	assert_false(seen.is_ready);
	finish();
	TURN_UNTIL(find_relay(getpid()) == 0);
}

/* The group in the first packet says that this one is to send garbage. */
static bool is_garbage_asked(void)
{
	struct wire_user user;
	return recv(0, &user, sizeof(user), MSG_PEEK) == (ssize_t)sizeof(user) &&
	       user.gid == GARBAGE_GROUP;
}

static void send_garbage(void)
{
	struct wire_message message = {.kind = WIRE_ASK,
		.id = 1,
		.target = NETWORK_TO_NAME,
		.name = "\x1b[31m",
		.port = 1};
	(void)!send(0, &message, sizeof(message), 0);
	for (;;) {
		pause();
	}
}

static int set_up(void **state)
{
	return set_up_loop();
}

static int tear_down(void **state)
{
	return tear_down_loop();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_connects_by_name_and_the_server_may_speak_first),
		cmocka_unit_test(test_what_is_said_before_the_decision_arrives_after_it),
		cmocka_unit_test(test_connect_and_socks_reach_the_same),
		cmocka_unit_test(test_a_name_that_is_refused_is_reset_and_never_looked_up),
		cmocka_unit_test(test_addresses_that_only_this_machine_reaches_are_refused),
		cmocka_unit_test(test_the_allowed_one_of_many_addresses_is_taken),
		cmocka_unit_test(test_an_address_of_nobodys_name_is_reset),
		cmocka_unit_test(test_a_service_of_this_machine_is_reached_at_its_port),
		cmocka_unit_test(test_a_reset_is_a_reset_on_the_other_side),
		cmocka_unit_test(test_much_arrives_whole_both_ways),
		cmocka_unit_test(test_the_257th_connection_is_reset_and_the_next_is_not),
		cmocka_unit_test(test_names_have_a_limit_and_those_before_it_go_on),
		cmocka_unit_test(test_the_server_name_of_tls_is_told),
		cmocka_unit_test(test_its_death_is_told_once_and_ends_all_connections),
		cmocka_unit_test(test_it_is_the_user_without_capabilities),
		cmocka_unit_test(test_it_ends_when_it_is_stopped),
		cmocka_unit_test(test_it_ends_with_the_broker),
		cmocka_unit_test(test_a_process_that_sends_no_messages_is_ended),
	};
	if (relay_is_asked(argc, argv)) {
		if (is_garbage_asked()) {
			send_garbage();
		}
		relay_run();
	}
	if (argc == 2 && strcmp(argv[1], BROKER_ARGUMENT) == 0) {
		return run_broker();
	}
	bool is_root = argc == 2 && strcmp(argv[1], "root") == 0;
	if (is_root && geteuid() != 0) {
		fprintf(stderr, "only root can become another user\n");
		return NOT_HERE;
	}
	if (!make_machine(is_root)) {
		fprintf(stderr, "no namespaces here: errno %d\n", errno);
		return NOT_HERE;
	}
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
