/* SPDX-License-Identifier: MIT */
#include "providers/local/net/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/random.h"
#include "base/text.h"

/* The broker and the lookup are played by the test; services are real, on this machine. */
enum { DEADLINE_MS = 60000, MESSAGES_MAX = 16 };

static struct ev_loop *loop;
static struct host_names *names;
static struct flows *flows;
static struct wire_start start;
static struct wire_message messages[MESSAGES_MAX];
static size_t message_count;
static struct lookup_request request;
static bool takes_lookups;
static int listener; // for programs and for servers
static uint16_t port;

static void on_message(void *data, const struct wire_message *message)
{
	assert_true(message_count < MESSAGES_MAX);
	messages[message_count++] = *message;
}

static bool on_lookup(void *data, const struct lookup_request *asked)
{
	request = *asked;
	return takes_lookups;
}

static const struct flows_listener flows_listener = {
	.on_message = on_message, .on_lookup = on_lookup};

static int open_listener(uint16_t *out_port)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, size), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
	*out_port = ntohs(name.sin_port);
	return fd;
}

static int set_up(void **state)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	names = host_names_create();
	listener = open_listener(&port);
	start = (struct wire_start){.service_count = 1, .services = {port}};
	message_count = 0;
	takes_lookups = true;
	request = (struct lookup_request){.id = 0};
	flows = flows_create(loop, names, &start, &flows_listener, NULL);
	return 0;
}

static int tear_down(void **state)
{
	flows_destroy(flows);
	host_names_destroy(names);
	fd_close(&listener);
	ev_loop_destroy(loop);
	return 0;
}

static void on_tick(struct ev_loop *ticking, ev_timer *timer, int events)
{
}

static void turn(void)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.005, 0.);
	ev_timer_start(loop, &tick);
	ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &tick);
}

#define TURN_UNTIL(condition)                                                                      \
	do {                                                                                       \
		long long until_ms = clock_now_ms() + DEADLINE_MS;                                 \
		while (!(condition) && clock_now_ms() < until_ms) {                                \
			turn();                                                                    \
		}                                                                                  \
		assert_true(condition);                                                            \
	} while (0)

static int accept_now(void)
{
	struct pollfd poll_fd = {.fd = listener, .events = POLLIN};
	TURN_UNTIL(poll(&poll_fd, 1, 0) == 1);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(fd >= 0);
	return fd;
}

/* Returns the socket of a program; *out_accepted is the socket that it is connected to. */
static int dial(int *out_accepted)
{
	struct sockaddr_in name = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	*out_accepted = accept_now();
	return fd;
}

static int dial_to(const char *host, uint16_t to)
{
	int accepted;
	int fd = dial(&accepted);
	struct proxy_target target = {.port = to};
	target.is_address = address_parse(&target.address, host);
	if (!target.is_address) {
		text_whole(target.name, sizeof(target.name), "%s", host);
	}
	flows_add_to(flows, accepted, &target);
	return fd;
}

static int dial_gate(const char *said)
{
	int fd = dial_to(PORTS_GATE, PORTS_GATE_PORT);
	assert_int_equal(send(fd, said, strlen(said), 0), strlen(said));
	return fd;
}

static int dial_service(uint16_t to)
{
	int accepted;
	int fd = dial(&accepted);
	flows_add_service(flows, accepted, to);
	return fd;
}

static ssize_t read_some(int fd, char *bytes, size_t size)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	TURN_UNTIL(poll(&poll_fd, 1, 0) == 1);
	return recv(fd, bytes, size, MSG_DONTWAIT);
}

static void expect(int fd, const char *text)
{
	char bytes[256];
	assert_true(strlen(text) < sizeof(bytes));
	assert_int_equal(read_some(fd, bytes, strlen(text)), strlen(text));
	assert_memory_equal(bytes, text, strlen(text));
}

static void expect_reset(int fd)
{
	char byte;
	assert_int_equal(read_some(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

static void assert_told(size_t at, enum wire_kind kind, enum network_result result)
{
	assert_true(message_count > at);
	assert_int_equal(messages[at].kind, kind);
	assert_int_equal(messages[at].result, result);
	assert_int_equal(messages[at].id, messages[0].id);
}

static void test_a_name_that_has_no_address_is_not_found(void **state)
{
	int client = dial_to("nobody.example", 443);
	assert_told(0, WIRE_ASK, 0);
	assert_string_equal(request.name, "");
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "nobody.example");
	struct lookup_answer answer = {.id = request.id + 1};
	flows_found(flows, &answer); // an answer that belongs to nobody
	assert_int_equal(message_count, 1);
	answer.id = request.id;
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_NOT_FOUND);
	expect_reset(client);
	flows_found(flows, &answer);
	flows_decide(flows, messages[0].id, true);
	assert_int_equal(message_count, 2);
	assert_int_equal(flows_count(flows), 0);
}

static void test_an_answer_counts_only_after_a_yes(void **state)
{
	int client = dial_to("good.example", 443);
	struct lookup_answer answer = {.id = messages[0].id, .count = 1};
	answer.found[0].address = address_from_ipv4(0x08080808);
	flows_found(flows, &answer);
	assert_int_equal(message_count, 1);
	flows_decide(flows, messages[0].id, false);
	expect_reset(client);
	assert_int_equal(message_count, 1);
}

static void test_a_lookup_that_cannot_be_handed_on_is_told(void **state)
{
	takes_lookups = false;
	int client = dial_gate("CONNECT good.example:443 HTTP/1.1\r\n\r\n");
	TURN_UNTIL(message_count == 1);
	flows_decide(flows, messages[0].id, true);
	assert_told(1, WIRE_TELL, NETWORK_UNREACHABLE);
	expect(client, "HTTP/1.1 502 ");
	close(client);
}

static void test_addresses_that_are_not_reached_are_forbidden(void **state)
{
	int client = dial_to("rebound.example", 443);
	flows_decide(flows, messages[0].id, true);
	struct lookup_answer answer = {.id = request.id, .count = 2};
	answer.found[0].address = address_from_ipv4(INADDR_LOOPBACK);
	answer.found[1] = (struct lookup_found){address_from_ipv4(0x08080808), .is_own = 1};
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
	expect_reset(client);
}

static void test_nobody_at_a_port_is_unreachable(void **state)
{
	uint16_t closed;
	int fd = open_listener(&closed);
	fd_close(&fd);
	int client = dial_service(closed);
	flows_decide(flows, messages[0].id, true);
	TURN_UNTIL(message_count == 2);
	assert_told(1, WIRE_TELL, NETWORK_UNREACHABLE);
	expect_reset(client);
}

static void test_who_gives_up_needs_no_verdict(void **state)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	int client = dial_to("good.example", 443);
	setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(client);
	TURN_UNTIL(message_count == 2);
	assert_told(1, WIRE_GONE, 0);
	assert_int_equal(flows_count(flows), 0);
}

static void test_what_is_no_head_is_closed_and_nothing_is_asked(void **state)
{
	char byte;
	int client = dial_gate("GET / HTTP/1.1\r\n\r\n");
	expect(client, "HTTP/1.1 400 ");
	close(client);
	client = dial_gate("CONNECT good.exam");
	turn();
	shutdown(client, SHUT_WR);
	assert_true(read_some(client, &byte, 1) <= 0);
	close(client);
	assert_int_equal(message_count, 0);
	assert_int_equal(flows_count(flows), 0);
}

/* A request with this body, to a server of the test's; its connection is *out_server. */
static int post(const char *body, int *out_server)
{
	char text[256];
	text_whole(text, sizeof(text),
		"POST http://127.0.0.1:%u/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n%s",
		port, body);
	int client = dial_gate(text);
	TURN_UNTIL(message_count == 1);
	assert_int_equal(messages[0].way, NETWORK_BY_REQUEST);
	assert_int_equal(messages[0].port, port);
	flows_decide(flows, messages[0].id, true);
	*out_server = accept_now();
	text_whole(text, sizeof(text),
		"POST /a HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n"
		"Content-Length: 5\r\n\r\n",
		port);
	expect(*out_server, text);
	expect(*out_server, body);
	return client;
}

static void test_a_request_is_relayed_and_its_answer(void **state)
{
	char byte;
	int server;
	int client = post("hel", &server);
	assert_int_equal(send(client, "lo", 2, 0), 2);
	expect(server, "lo");
	assert_int_equal(send(server, "answer", 6, 0), 6);
	expect(client, "answer");
	fd_close(&server);
	assert_int_equal(read_some(client, &byte, 1), 0);
	close(client);
	TURN_UNTIL(flows_count(flows) == 0);
}

static void test_a_body_in_chunks_is_relayed_and_nothing_after_it(void **state)
{
	char byte;
	char text[256];
	text_whole(text, sizeof(text),
		"POST http://127.0.0.1:%u/a HTTP/1.1\r\nHost: x\r\n"
		"Transfer-Encoding: chunked\r\n\r\n3\r\nhel",
		port);
	int client = dial_gate(text);
	TURN_UNTIL(message_count == 1);
	flows_decide(flows, messages[0].id, true);
	int server = accept_now();
	text_whole(text, sizeof(text),
		"POST /a HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n"
		"Transfer-Encoding: chunked\r\n\r\n3\r\nhel",
		port);
	expect(server, text);
	assert_int_equal(send(client, "\r\n0\r\n\r\n", 7, 0), 7);
	expect(server, "\r\n0\r\n\r\n");
	assert_int_equal(send(client, "GET", 3, 0), 3);
	assert_int_equal(read_some(server, &byte, 1), -1);
	fd_close(&server);
	expect_reset(client);
	client = dial_gate("PUT http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
			   "0;x\r\n\r\n");
	expect_reset(client);
	assert_int_equal(flows_count(flows), 0);
}

/* A second request could be for another host, and nobody would decide about it. */
static void test_a_second_request_on_a_connection_is_not_sent_on(void **state)
{
	int server;
	char byte;
	int client = post("hello", &server);
	assert_int_equal(send(client, "GET", 3, 0), 3);
	assert_int_equal(read_some(server, &byte, 1), -1);
	fd_close(&server);
	expect_reset(client);
	client = dial_gate("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\nGET http://b/ HTTP/1.1\r\n");
	expect_reset(client);
	assert_int_equal(flows_count(flows), 0);
}

/* ---- by the proxy of this machine, which the test plays, too ---- */

static void use_proxy(const char *except)
{
	start.upstream.place = (struct proxy_target){.port = port, .name = "proxy.example"};
	text_whole(start.upstream.key, sizeof(start.upstream.key), "c2VjcmV0");
	text_whole(start.upstream.except, sizeof(start.upstream.except), "%s", except);
}

/* Allows the connection; the lookup finds the proxy here. Returns the proxy's socket. */
static int ask_proxy_for(const char *authority)
{
	char text[256];
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "proxy.example");
	struct lookup_answer answer = {.id = request.id, .count = 1};
	answer.found[0].address = address_from_ipv4(INADDR_LOOPBACK);
	flows_found(flows, &answer);
	int proxy = accept_now();
	text_whole(text, sizeof(text),
		"CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n",
		authority, authority);
	expect(proxy, text);
	return proxy;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void test_a_proxy_is_asked_for_the_name_and_nothing_else_is_looked_up(void **state)
{
	char byte;
	use_proxy("");
	int client = dial_to("far.example", 22);
	say(client, "hello");
	assert_string_equal(request.name, "");
	int proxy = ask_proxy_for("far.example:22");
	turn();
	assert_int_equal(recv(proxy, &byte, 1, 0), -1); // its bytes wait for the answer
	say(proxy, "HTTP/1.1 200 Co");
	turn();
	say(proxy, "nnection established\r\nVia: x\r\n\r\nSSH-2.0");
	expect(client, "SSH-2.0");
	expect(proxy, "hello");
	assert_told(1, WIRE_TELL, NETWORK_CONNECTED);
	say(proxy, " more");
	expect(client, " more");
	close(proxy);
	assert_int_equal(read_some(client, &byte, 1), 0);
	close(client);
	TURN_UNTIL(flows_count(flows) == 0);
}

static void test_a_program_that_asks_our_proxy_is_told_of_the_other_ones_yes(void **state)
{
	use_proxy("");
	int client = dial_gate("CONNECT far.example:443 HTTP/1.1\r\n\r\nhello");
	TURN_UNTIL(message_count == 1);
	int proxy = ask_proxy_for("far.example:443");
	say(proxy, "HTTP/1.0 200\r\n\r\nfirst");
	expect(client, "HTTP/1.1 200 Connection established\r\n\r\n");
	expect(client, "first");
	expect(proxy, "hello");
	close(proxy);
	close(client);
	TURN_UNTIL(flows_count(flows) == 0);
}

static void test_a_request_goes_through_the_proxy_as_a_connection(void **state)
{
	use_proxy("");
	int client = dial_gate("GET http://far.example/a HTTP/1.1\r\nHost: x\r\n\r\n");
	TURN_UNTIL(message_count == 1);
	int proxy = ask_proxy_for("far.example:80");
	say(proxy, "HTTP/1.1 200 OK\r\n\r\n");
	expect(proxy, "GET /a HTTP/1.1\r\nHost: far.example\r\n");
	say(proxy, "HTTP/1.1 200 OK\r\n");
	expect(client, "HTTP/1.1 200 OK\r\n");
	close(proxy);
	close(client);
	TURN_UNTIL(flows_count(flows) == 0);
}

static void test_what_a_proxy_refuses_is_told_with_its_status(void **state)
{
	static const struct {
		const char *answer;
		enum network_result result;
		uint32_t status;
	} cases[] = {
		{"HTTP/1.1 403 Forbidden\r\n\r\nbody", NETWORK_PROXY_REFUSED, 403},
		{"HTTP/1.1 407 Login\r\nContent-Length: 9\r\n\r\n", NETWORK_PROXY_REFUSED, 407},
		{"HTTP/1.1 100 Continue\r\n\r\n", NETWORK_PROXY_REFUSED, 100},
		{"HTTP/1.1 503 Later\r\n\r\n", NETWORK_UNREACHABLE, 503},
		{"SSH-2.0-OpenSSH\r\n", NETWORK_PROXY_REFUSED, 0},
		{"HTTP/1.1 200 OK\r\n", NETWORK_PROXY_UNREACHABLE, 0}, // then it closes
		{"", NETWORK_PROXY_UNREACHABLE, 0},
	};
	use_proxy("");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		message_count = 0;
		int client = dial_to("far.example", 443);
		int proxy = ask_proxy_for("far.example:443");
		say(proxy, cases[i].answer);
		close(proxy);
		TURN_UNTIL(message_count == 2);
		assert_told(1, WIRE_TELL, cases[i].result);
		assert_int_equal(messages[1].status, cases[i].status);
		expect_reset(client);
	}
	assert_int_equal(flows_count(flows), 0);
}

static void test_a_proxy_that_nobody_knows_or_answers_is_told(void **state)
{
	use_proxy("");
	int client = dial_to("far.example", 443);
	flows_decide(flows, messages[0].id, true);
	struct lookup_answer answer = {.id = request.id};
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_PROXY_UNREACHABLE);
	expect_reset(client);
	uint16_t closed;
	int fd = open_listener(&closed);
	fd_close(&fd);
	start.upstream.place.port = closed;
	message_count = 0;
	client = dial_to("far.example", 443);
	flows_decide(flows, messages[0].id, true);
	answer = (struct lookup_answer){.id = request.id, .count = 1};
	answer.found[0].address = address_from_ipv4(INADDR_LOOPBACK);
	flows_found(flows, &answer);
	TURN_UNTIL(message_count == 2);
	assert_told(1, WIRE_TELL, NETWORK_PROXY_UNREACHABLE);
	expect_reset(client);
}

static void test_what_no_proxy_names_is_reached_directly(void **state)
{
	use_proxy("near.example");
	int client = dial_to("near.example", 443);
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "near.example");
	assert_string_equal(request.avoid[0], "");
	close(client);
	message_count = 0;
	client = dial_to("near.example", port); // the port of the proxy
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "near.example");
	assert_string_equal(request.avoid[0], "proxy.example");
	struct lookup_answer answer = {.id = request.id, .count = 1};
	answer.found[0] = (struct lookup_found){address_from_ipv4(0x08080808), .is_avoided = 1};
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
	expect_reset(client);
}

static void test_another_name_of_the_proxy_is_forbidden(void **state)
{
	use_proxy("");
	int client = dial_to("alias.example", port);
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "alias.example");
	assert_string_equal(request.avoid[0], "proxy.example");
	struct lookup_answer answer = {.id = request.id, .count = 1};
	answer.found[0] = (struct lookup_found){
		address_from_ipv4(INADDR_LOOPBACK), .is_own = 1, .is_avoided = 1};
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
	expect_reset(client);
	message_count = 0;
	client = dial_to("other.example", port);
	flows_decide(flows, messages[0].id, true);
	answer = (struct lookup_answer){.id = request.id}; // only the proxy knows it
	flows_found(flows, &answer);
	assert_string_equal(request.name, "proxy.example");
	close(client);
}

static void test_no_name_leads_to_a_proxy_that_is_not_used(void **state)
{
	start.upstream.other_count = 2;
	start.upstream.others[0] = (struct proxy_target){.port = 3128, .name = "cache.example"};
	start.upstream.others[1] = (struct proxy_target){.port = 3128, .name = "other.example"};
	int client = dial_to("alias.example", 3128);
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.avoid[0], "cache.example");
	assert_string_equal(request.avoid[1], "other.example");
	assert_string_equal(request.avoid[2], "");
	struct lookup_answer answer = {.id = request.id, .count = 1};
	answer.found[0] = (struct lookup_found){address_from_ipv4(0x08080808), .is_avoided = 1};
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
	expect_reset(client);
	message_count = 0;
	use_proxy(""); // with a proxy that is used, the name is looked up here first
	client = dial_to("alias.example", 3128);
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "alias.example");
	assert_string_equal(request.avoid[0], "cache.example");
	close(client);
	message_count = 0;
	client = dial_to("cache.example", 3128); // this is our own proxy
	say(client, "CONNECT other.example:3128 HTTP/1.1\r\n\r\n");
	expect(client, "HTTP/1.1 403 ");
	close(client);
	assert_int_equal(message_count, 0);
}

/* An address without a name is checked as if there were no proxy. */
static void test_an_address_is_checked_before_the_proxy_is_asked(void **state)
{
	static const char *const never[] = {"10.1.2.3", "169.254.169.254", "192.168.0.1"};
	struct lookup_answer answer = {.count = 1};
	use_proxy("");
	for (size_t i = 0; i < ARRAY_LENGTH(never); i++) {
		message_count = 0;
		int client = dial_to(never[i], 443);
		flows_decide(flows, messages[0].id, true);
		assert_string_equal(request.name, never[i]);
		answer.id = request.id;
		assert_true(address_parse(&answer.found[0].address, never[i]));
		flows_found(flows, &answer);
		assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
		expect_reset(client);
	}
	message_count = 0;
	int client = dial_to("8.8.8.8", 443);
	flows_decide(flows, messages[0].id, true);
	answer.id = request.id;
	answer.found[0].address = address_from_ipv4(0x08080808);
	flows_found(flows, &answer);
	assert_string_equal(request.name, "proxy.example");
	answer.found[0].address = address_from_ipv4(INADDR_LOOPBACK);
	flows_found(flows, &answer); // late, and not about the proxy
	assert_int_equal(message_count, 1);
	answer.id = request.id;
	flows_found(flows, &answer);
	int proxy = accept_now();
	expect(proxy, "CONNECT 8.8.8.8:443 HTTP/1.1\r\n");
	close(proxy);
	expect_reset(client);
}

/* It would connect from this machine. */
static void test_a_proxy_of_this_machine_is_not_asked_for_what_only_this_machine_reaches(
	void **state)
{
	static const char *const never[] = {"127.0.0.1", "169.254.169.254", "10.1.2.3", "::1"};
	struct lookup_answer here = {.count = 1}, answer = {.count = 1};
	here.found[0] = (struct lookup_found){address_from_ipv4(INADDR_LOOPBACK), .is_own = 1};
	use_proxy("");
	for (size_t i = 0; i < ARRAY_LENGTH(never); i++) {
		message_count = 0;
		int client = dial_to("rebound.example", 443);
		flows_decide(flows, messages[0].id, true);
		assert_string_equal(request.name, "proxy.example");
		here.id = request.id;
		flows_found(flows, &here);
		assert_string_equal(request.name, "rebound.example");
		answer.id = request.id;
		assert_true(address_parse(&answer.found[0].address, never[i]));
		flows_found(flows, &answer);
		assert_string_equal(request.name, "proxy.example");
		here.id = request.id;
		flows_found(flows, &here);
		assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
		expect_reset(client);
	}
	message_count = 0;
	int client = dial_to("far.example", 443);
	flows_decide(flows, messages[0].id, true);
	here.id = request.id;
	flows_found(flows, &here);
	answer = (struct lookup_answer){.id = request.id}; // only the proxy knows it
	flows_found(flows, &answer);
	here.id = request.id;
	flows_found(flows, &here);
	int proxy = accept_now();
	expect(proxy, "CONNECT far.example:443 HTTP/1.1\r\n");
	close(proxy);
	close(client);
}

static void test_a_proxy_on_the_loopback_is_not_looked_up(void **state)
{
	use_proxy("");
	text_whole(start.upstream.place.name, sizeof(start.upstream.place.name), "localhost");
	int client = dial_to("rebound.example", 443);
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "rebound.example");
	struct lookup_answer answer = {.id = request.id, .count = 2};
	answer.found[0].address = address_from_ipv4(0x08080808);
	answer.found[1] = (struct lookup_found){address_from_ipv4(INADDR_LOOPBACK), .is_own = 1};
	flows_found(flows, &answer);
	assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
	expect_reset(client);
}

/* It waits for FLOW_CHECK_MS. Some machines behind a proxy have no name server that answers. */
static void test_a_name_without_an_answer_goes_to_a_proxy_of_this_machine(void **state)
{
	use_proxy("");
	text_whole(start.upstream.place.name, sizeof(start.upstream.place.name), "localhost");
	int client = dial_to("far.example", 443);
	flows_decide(flows, messages[0].id, true);
	assert_string_equal(request.name, "far.example");
	int proxy = accept_now();
	expect(proxy, "CONNECT far.example:443 HTTP/1.1\r\n");
	assert_int_equal(message_count, 1);
	close(proxy);
	close(client);
}

/* The proxy could resolve such a name to its own machine, which may be this one. */
static void test_a_name_below_localhost_is_not_given_to_a_proxy(void **state)
{
	use_proxy("");
	int client = dial_to("a.localhost", 443);
	flows_decide(flows, messages[0].id, true);
	assert_told(1, WIRE_TELL, NETWORK_FORBIDDEN);
	assert_string_equal(request.name, "");
	expect_reset(client);
}

static void test_nobody_in_the_cell_reaches_the_proxy_itself(void **state)
{
	char text[128];
	use_proxy("");
	text_whole(text, sizeof(text), "CONNECT proxy.example:%u HTTP/1.1\r\n\r\n", port);
	int client = dial_gate(text);
	expect(client, "HTTP/1.1 403 ");
	close(client);
	client = dial_to("proxy.example", port); // this is our own proxy
	say(client, text);
	expect(client, "HTTP/1.1 403 ");
	close(client);
	client = dial_to("proxy.example", port);
	say(client, "CONNECT far.example:443 HTTP/1.1\r\n\r\n");
	TURN_UNTIL(message_count == 1);
	assert_string_equal(messages[0].name, "far.example");
	flows_decide(flows, messages[0].id, false);
	expect(client, "HTTP/1.1 403 ");
	close(client);
	text_whole(start.upstream.place.name, sizeof(start.upstream.place.name), "localhost");
	client = dial_service(port);
	say(client, text);
	TURN_UNTIL(message_count == 2);
	assert_string_equal(messages[1].name, "proxy.example");
	flows_decide(flows, messages[1].id, false);
	expect(client, "HTTP/1.1 403 ");
	close(client);
	assert_int_equal(flows_count(flows), 0);
}

/* The rest waits in the program's own socket, and wakes nobody up. */
static void test_much_that_is_said_early_arrives_whole(void **state)
{
	enum { SIZE = 1 << 20 };
	static char out[SIZE], in[SIZE];
	size_t said = 0, got = 0;
	int client = dial_service(port);
	random_fill(out, sizeof(out));
	for (ssize_t count = 1; count > 0;) {
		count = send(client, out + said, SIZE - said, MSG_DONTWAIT);
		said += count > 0 ? (size_t)count : 0;
		turn();
	}
	assert_true(said > (64 << 10) && message_count == 1);
	flows_decide(flows, messages[0].id, true);
	int server = accept_now();
	while (got < SIZE) {
		ssize_t count = send(client, out + said, SIZE - said, MSG_DONTWAIT);
		said += count > 0 ? (size_t)count : 0;
		turn();
		count = recv(server, in + got, SIZE - got, 0);
		assert_true(count > 0 || (count < 0 && errno == EAGAIN));
		got += count > 0 ? (size_t)count : 0;
	}
	assert_memory_equal(in, out, SIZE);
	close(client);
	close(server);
	TURN_UNTIL(flows_count(flows) == 0);
}

static void test_the_end_closes_all(void **state)
{
	char byte;
	int waiting = dial_to("good.example", 443);
	int client = dial_service(port);
	flows_decide(flows, messages[1].id, true);
	int server = accept_now();
	TURN_UNTIL(message_count == 3);
	flows_destroy(flows);
	flows = NULL;
	assert_true(read_some(waiting, &byte, 1) <= 0);
	assert_true(read_some(client, &byte, 1) <= 0);
	assert_true(read_some(server, &byte, 1) <= 0);
	close(waiting);
	close(client);
	close(server);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_a_name_that_has_no_address_is_not_found),
		CASE(test_an_answer_counts_only_after_a_yes),
		CASE(test_a_lookup_that_cannot_be_handed_on_is_told),
		CASE(test_addresses_that_are_not_reached_are_forbidden),
		CASE(test_nobody_at_a_port_is_unreachable),
		CASE(test_who_gives_up_needs_no_verdict),
		CASE(test_what_is_no_head_is_closed_and_nothing_is_asked),
		CASE(test_a_request_is_relayed_and_its_answer),
		CASE(test_a_body_in_chunks_is_relayed_and_nothing_after_it),
		CASE(test_a_second_request_on_a_connection_is_not_sent_on),
		CASE(test_a_proxy_is_asked_for_the_name_and_nothing_else_is_looked_up),
		CASE(test_a_program_that_asks_our_proxy_is_told_of_the_other_ones_yes),
		CASE(test_a_request_goes_through_the_proxy_as_a_connection),
		CASE(test_what_a_proxy_refuses_is_told_with_its_status),
		CASE(test_a_proxy_that_nobody_knows_or_answers_is_told),
		CASE(test_what_no_proxy_names_is_reached_directly),
		CASE(test_another_name_of_the_proxy_is_forbidden),
		CASE(test_no_name_leads_to_a_proxy_that_is_not_used),
		CASE(test_an_address_is_checked_before_the_proxy_is_asked),
		CASE(test_a_proxy_of_this_machine_is_not_asked_for_what_only_this_machine_reaches),
		CASE(test_a_proxy_on_the_loopback_is_not_looked_up),
		CASE(test_a_name_without_an_answer_goes_to_a_proxy_of_this_machine),
		CASE(test_a_name_below_localhost_is_not_given_to_a_proxy),
		CASE(test_nobody_in_the_cell_reaches_the_proxy_itself),
		CASE(test_much_that_is_said_early_arrives_whole),
		CASE(test_the_end_closes_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
