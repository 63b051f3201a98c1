/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_case_fixture.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/support/facts.h"

/* Ways to reach a server. */

static void test_a_port_that_nobody_listens_on_is_told(void **state)
{
	int fd;
	char words[128];
	target.port = listen_silently(&fd);
	close(fd);
	client_connect_fails(&client, &target, "HOST_UNREACHABLE");
	snprintf(words, sizeof(words), "127.0.0.1 port %d: Connection refused", target.port);
	assert_non_null(strstr(client.err.text, words));
	assert_names(client.err.text, "is the host running | port | sshd");
}

static sem_t dns_answers;

/* The addresses, in this order. */
static int resolve_to(const char *const names[], const char *service, const struct addrinfo *hints,
	struct addrinfo **out_addresses)
{
	__typeof__(getaddrinfo) *real = (__typeof__(getaddrinfo) *)dlsym(RTLD_NEXT, "getaddrinfo");
	int failed = 0;
	for (; *names && failed == 0; names++) {
		failed = real(*names, service, hints, out_addresses);
		out_addresses = failed == 0 ? &(*out_addresses)->ai_next : NULL;
	}
	return failed;
}

/*
 * "later.invalid" resolves to this as long as the machine has no network, "stuck.invalid" as long
 * as its DNS servers are dead, and "both.invalid" always; the system resolves all others.
 */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's are reserved */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	struct addrinfo **out_addresses)
{
	if (strcmp(name, "later.invalid") == 0) {
		return EAI_AGAIN;
	}
	if (strcmp(name, "stuck.invalid") == 0) {
		sem_wait(&dns_answers);
		return EAI_AGAIN;
	}
	static const char *const both[] = {"::1", "::1", "127.0.0.1", NULL};
	const char *const given[] = {name, NULL};
	return resolve_to(
		strcmp(name, "both.invalid") == 0 ? both : given, service, hints, out_addresses);
}

static void test_a_name_that_cannot_be_asked_for_now_may_be_tried_again(void **state)
{
	target_set(&target.host, "later.invalid");
	client_connect_fails(&client, &target, "HOST_UNREACHABLE");
	assert_non_null(strstr(client.err.text, "this machine's network"));
}

/* More names than there are threads for them. */
static void test_names_that_are_stuck_do_not_keep_others_from_being_found(void **state)
{
	enum { STUCK = POOL_NAMES_THREADS + 1 };
	sem_init(&dns_answers, 0, 0);
	target.connect_timeout_ms = 50;
	target_set(&target.host, "stuck.invalid");
	for (int i = 0; i < STUCK; i++) {
		client_connect_fails(&client, &target, "TIMEOUT_EXCEEDED");
		assert_non_null(strstr(client.err.text,
			"resolving stuck.invalid: no answer within 0.05 s (connect-timeout)"));
	}
	target.connect_timeout_ms = 60 * 1000;
	target_set(&target.host, "127.0.0.1");
	client_connect_ready(&client, &target);
	for (int i = 0; i < STUCK; i++) {
		sem_post(&dns_answers);
	}
}

static void test_a_name_without_address_is_told(void **state)
{
	target_set(&target.host, "no-such-host.invalid");
	client_connect_fails(&client, &target, "HOST_NOT_FOUND");
	assert_non_null(strstr(client.err.text, "no-such-host.invalid"));
	assert_names(client.err.text, "correct host | profile");
}

static void test_a_name_with_addresses_of_both_families_connects(void **state)
{
	const char *const known[] = {"/dev/null", NULL};
	target_set(&target.host, "localhost");
	target_set_list(&target.user_known_hosts_files, known);
	/* On loopback nobody is in between; sshd listens only on IPv4. */
	target_set(&target.host_key_alias, "other");
	client_connect_fails(&client, &target, "HOST_KEY_UNKNOWN");
}

/* A socket at ::1; -1: there is no IPv6. */
static int bind_ipv6(int port)
{
	struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
	struct sockaddr_in6 address = {
		.sin6_family = AF_INET6, .sin6_addr = loopback, .sin6_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		fd_close(&fd);
	}
	return fd;
}

/* Fills the queue of the listener, so that the next client hears nothing. */
static void fill_queue(int listener, int out_fds[], size_t count)
{
	struct sockaddr_in6 address;
	socklen_t size = sizeof(address);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	for (size_t i = 0; i < count; i++) {
		out_fds[i] = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(out_fds[i], (struct sockaddr *)&address, size);
	}
}

/* The families take turns, and share the time to connect. */
static void test_an_address_that_is_silent_does_not_hold_up_the_next(void **state)
{
	enum { HELD = 4 };
	int held[HELD];
	char words[256];
	int listener = bind_ipv6(sshd.port);
	if (listener < 0) {
		skip();
	}
	fill_queue(listener, held, HELD);
	target_set(&target.host, "both.invalid");
	snprintf(words, sizeof(words), "[127.0.0.1]:%d", sshd.port);
	target_set(&target.host_key_alias, words);
	client_connect_ready(&client, &target);
	snprintf(words, sizeof(words),
		"Connecting to box (::1 port %d)\nConnecting to box (127.0.0.1 port %d)\n",
		sshd.port, sshd.port);
	assert_memory_equal(client.progress, words, strlen(words));
	echoes();
	for (size_t i = 0; i < HELD; i++) {
		close(held[i]);
	}
	close(listener);
}

/* The socket of this program that is connected to the sshd, or -1. */
static int find_connection(void)
{
	struct sockaddr_in peer;
	for (int fd = 0; fd < 1024; fd++) {
		socklen_t size = sizeof(peer);
		if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
			peer.sin_family == AF_INET && ntohs(peer.sin_port) == sshd.port) {
			return fd;
		}
	}
	return -1;
}

static void test_small_messages_leave_at_once(void **state)
{
	int is_on = 0;
	socklen_t size = sizeof(is_on);
	client_connect_ready(&client, &target);
	int fd = find_connection();
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_on, &size), 0);
	assert_true(is_on);
	echoes();
}

static void test_ipv6_connects(void **state)
{
	struct sshd other;
	struct sshd_spec spec = {.config = "ListenAddress ::1\n"};
	int fd = bind_ipv6(0);
	if (fd < 0) {
		skip();
	}
	fd_close(&fd);
	sshd_start(&other, &spec);
	ssh_target_finish(&target);
	target_for(&target, &other);
	char alias[64];
	snprintf(alias, sizeof(alias), "[127.0.0.1]:%d", other.port);
	target_set(&target.host_key_alias, alias);
	target_set(&target.host, "::1");
	client_connect_ready(&client, &target);
	assert_non_null(strstr(client.progress, "(::1 port"));
	echoes();
	sshd_stop(&other);
}

/* A pipe to the sshd, and a command that runs after it. */
static void use_proxy(const char *then)
{
	char command[PATH_MAX];
	snprintf(command, sizeof(command),
		"python3 -c 'import socket,os,threading\n"
		"s=socket.create_connection((\"127.0.0.1\",%d))\n"
		"def up():\n"
		" while True:\n"
		"  b=os.read(0,65536)\n"
		"  if not b: break\n"
		"  s.sendall(b)\n"
		" s.shutdown(1)\n"
		"threading.Thread(target=up,daemon=True).start()\n"
		"while True:\n"
		" b=s.recv(65536)\n"
		" if not b: break\n"
		" os.write(1,b)'; %s",
		sshd.port, then);
	target_set(&target.proxy_command, command);
}

static void test_a_proxy_command_connects(void **state)
{
	use_proxy("exit 0");
	client_connect_ready(&client, &target);
	echoes();
}

static void test_a_proxy_command_that_fails_is_told(void **state)
{
	target_set(&target.proxy_command, "exit 1");
	fails_and_says("HOST_UNREACHABLE", "closed | server");
	target_set(&target.proxy_command,
		"seq 30000 >&2; printf 'gate: no such\\033 box\\n' >&2; exit 1");
	fails_and_says("HOST_UNREACHABLE", "(output of the ProxyCommand: ");
	assert_non_null(strstr(client.err.text, "30000 gate: no such  box)"));
	assert_null(strstr(client.err.text, "20000"));
}

static void test_a_proxy_command_that_ends_later_is_told_too(void **state)
{
	use_proxy("echo the gate closes >&2");
	client_connect_ready(&client, &target);
	sshd_kill_connections(&sshd);
	wait_lost(&client);
	assert_string_equal(client.err.reason, "LINK_LOST");
	assert_names(client.err.text, "ProxyCommand | the gate closes");
}

static void test_two_hops_connect_and_carry_much(void **state)
{
	struct sshd hops[2];
	struct channel_record channel;
	sshd_start(&hops[0], NULL);
	sshd_start(&hops[1], NULL);
	target.via = hop_through(&hops[1]);
	target.via->via = hop_through(&hops[0]);
	client_connect_ready(&client, &target);
	assert_int_equal(sshd_count_connections(&hops[0]), 1);
	channel_run(&channel, &client, "yes | head -c 4194304");
	assert_int_equal(channel.counts[SSH_STREAM_OUT], 4194304);
	/* The hop before it is lost, and with it everything that goes through it. */
	sshd_kill_connections(&hops[0]);
	wait_lost(&client);
	assert_string_equal(client.err.reason, "LINK_LOST");
	client_close(&client);
	sshd_stop(&hops[1]);
	sshd_stop(&hops[0]);
}

static void test_a_hop_that_cannot_reach_the_host_is_told(void **state)
{
	int fd;
	target.via = hop_through(&sshd);
	target.port = listen_silently(&fd);
	close(fd);
	client_connect_fails(&client, &target, "HOST_UNREACHABLE");
	assert_non_null(strstr(client.err.text, "hop cannot connect to 127.0.0.1"));
}

static void test_a_hop_that_refuses_the_login_is_told(void **state)
{
	const char *const none[] = {NULL};
	target.via = hop_through(&sshd);
	target_set_list(&target.via->identity_files, none);
	client_connect_fails(&client, &target, "AUTH_FAILED");
	assert_non_null(strstr(client.err.text, "another host to box"));
}

#define route_test(name)                                                                           \
	cmocka_unit_test_setup_teardown(name, case_begin_with_sshd, case_end_with_sshd)

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		route_test(test_a_port_that_nobody_listens_on_is_told),
		route_test(test_a_name_without_address_is_told),
		route_test(test_a_name_that_cannot_be_asked_for_now_may_be_tried_again),
		route_test(test_names_that_are_stuck_do_not_keep_others_from_being_found),
		route_test(test_a_name_with_addresses_of_both_families_connects),
		route_test(test_ipv6_connects),
		route_test(test_an_address_that_is_silent_does_not_hold_up_the_next),
		route_test(test_small_messages_leave_at_once),
		route_test(test_a_proxy_command_connects),
		route_test(test_a_proxy_command_that_fails_is_told),
		route_test(test_a_proxy_command_that_ends_later_is_told_too),
		route_test(test_two_hops_connect_and_carry_much),
		route_test(test_a_hop_that_cannot_reach_the_host_is_told),
		route_test(test_a_hop_that_refuses_the_login_is_told),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	client_world_end();
	return failed;
}
