/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_client_fixture.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

/* The ways to a server, and connections that end or freeze at every stage. */

static struct sshd sshd;
static struct ssh_target target;
static struct client_record client;

static int start(void **state)
{
	struct sshd_spec spec = {.config = "KbdInteractiveAuthentication no\n"};
	sshd_start(&sshd, &spec);
	target_for(&target, &sshd);
	return 0;
}

static int stop(void **state)
{
	client_close(&client);
	ssh_target_finish(&target);
	sshd_stop(&sshd);
	return 0;
}

static void echoes(void)
{
	struct channel_record channel;
	channel_run(&channel, &client, "echo in");
	assert_string_equal(channel.heads[SSH_STREAM_OUT], "in\n");
	client_close(&client);
}

/* A socket that is listened on and never answered; returns its port. */
static int listen_silently(int *out_fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	*out_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*out_fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(*out_fd, 8), 0);
	assert_int_equal(getsockname(*out_fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

/* ---- ways ---- */

static void test_a_port_that_nobody_listens_on_is_told(void **state)
{
	int fd;
	char words[128];
	target.port = listen_silently(&fd);
	close(fd);
	client_connect_fails(&client, &target, "HOST_UNREACHABLE");
	snprintf(words, sizeof(words), "127.0.0.1 port %d: Connection refused", target.port);
	assert_non_null(strstr(client.err.text, words));
}

static void test_a_name_without_address_is_told(void **state)
{
	target_set(&target.host, "no-such-host.invalid");
	client_connect_fails(&client, &target, "HOST_NOT_FOUND");
	assert_non_null(strstr(client.err.text, "no-such-host.invalid"));
}

static void test_a_name_with_addresses_of_both_families_connects(void **state)
{
	const char *const known[] = {"/dev/null", NULL};
	target_set(&target.host, "localhost");
	target_set_list(&target.user_known_hosts_files, known);
	/* On loopback nobody is between; sshd listens on IPv4 alone. */
	target_set(&target.host_key_alias, "other");
	client_connect_fails(&client, &target, "HOST_KEY_UNKNOWN");
}

static void test_ipv6_connects(void **state)
{
	struct sshd other;
	struct sshd_spec spec = {.config = "ListenAddress ::1\n"};
	struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = loopback};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has_ipv6 = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	fd_close(&fd);
	if (!has_ipv6) {
		skip();
	}
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

static void test_a_proxy_command_connects(void **state)
{
	char command[PATH_MAX];
	snprintf(command, sizeof(command),
		"exec python3 -c 'import socket,os,threading\n"
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
		" os.write(1,b)'",
		sshd.port);
	target_set(&target.proxy_command, command);
	client_connect_ready(&client, &target);
	echoes();
}

static void test_a_proxy_command_that_fails_is_told(void **state)
{
	target_set(&target.proxy_command, "exit 1");
	client_connect_fails(&client, &target, "HOST_UNREACHABLE");
}

static struct ssh_target *hop_through(const struct sshd *hop)
{
	struct ssh_target *via = mem_alloc(sizeof(*via));
	target_for(via, hop);
	target_set(&via->alias, "hop");
	return via;
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
	/* The hop before is lost, and with it all that goes through it. */
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
	assert_non_null(strstr(client.err.text, "on the way to box"));
}

/* ---- servers that freeze or go ---- */

static void test_a_server_that_says_nothing_is_bounded(void **state)
{
	int fd;
	target.port = listen_silently(&fd);
	target.connect_timeout_ms = 400;
	client_connect_fails(&client, &target, "TIMEOUT_EXCEEDED");
	assert_non_null(strstr(client.err.text, "ConnectTimeout"));
	close(fd);
}

static bool is_authenticating(void *data)
{
	return strstr(((const struct client_record *)data)->progress, "Authenticating") != NULL;
}

static void test_a_server_that_freezes_while_authenticating_is_bounded(void **state)
{
	target_set(&target.password_command, "sleep 1; echo wrong");
	const char *const none[] = {NULL};
	target_set_list(&target.identity_files, none);
	target.auth_timeout_ms = 2500;
	client_connect(&client, &target);
	loop_until(is_authenticating, &client);
	loop_for_ms(300);
	sshd_freeze(&sshd);
	wait_outcome(&client);
	sshd_thaw(&sshd);
	assert_int_equal(client.lost_count, 1);
	assert_string_equal(client.err.reason, "TIMEOUT_EXCEEDED");
	client_close(&client);
}

static void test_a_server_that_dies_while_authenticating_is_told(void **state)
{
	target_set(&target.password_command, "sleep 1; echo wrong");
	const char *const none[] = {NULL};
	target_set_list(&target.identity_files, none);
	client_connect(&client, &target);
	loop_until(is_authenticating, &client);
	loop_for_ms(300);
	sshd_kill_connections(&sshd);
	wait_outcome(&client);
	assert_int_equal(client.lost_count, 1);
	assert_string_equal(client.err.reason, "LINK_LOST");
	assert_non_null(strstr(client.err.text, "closed the connection"));
	client_close(&client);
}

static void test_a_lost_connection_is_an_error_of_every_channel(void **state)
{
	struct channel_record idle;
	struct channel_record source;
	struct channel_record early;
	client_connect_ready(&client, &target);
	channel_open(&idle, &client, "cat");
	channel_open(&source, &client, "yes");
	wait_event(&idle, 'o');
	wait_event(&source, 'o');
	loop_for_ms(100);
	channel_open(&early, &client, "cat");
	sshd_kill_connections(&sshd);
	wait_lost(&client);
	assert_string_equal(client.err.reason, "LINK_LOST");
	assert_string_equal(idle.events, "ol");
	assert_string_equal(source.events, "ol");
	assert_true(channel_has(&early, 'l'));
	assert_int_equal(source.err.code, ERROR_UNAVAILABLE);
	struct error err;
	assert_null(ssh_channel_open(client.client, "true",
		&(struct ssh_channel_listener){.on_refused = (void *)abort,
			.on_bytes = (void *)abort,
			.on_closed = (void *)abort},
		NULL, &err));
	assert_string_equal(err.reason, "LINK_LOST");
	channel_close(&idle);
	client_close(&client);
}

static void test_a_frozen_server_is_noticed(void **state)
{
	struct channel_record channel;
	target.alive_interval_ms = 200;
	target.alive_count_max = 4;
	client_connect_ready(&client, &target);
	channel_open(&channel, &client, "cat");
	wait_event(&channel, 'o');
	/* As long as it answers it is there. */
	loop_for_ms(1500);
	assert_int_equal(client.lost_count, 0);
	sshd_freeze(&sshd);
	long long begun_ms = clock_now_ms();
	wait_lost(&client);
	long long took_ms = clock_now_ms() - begun_ms;
	sshd_thaw(&sshd);
	assert_true(took_ms >= 500);
	assert_true(took_ms < 10 * 1000);
	assert_string_equal(client.err.reason, "LINK_LOST");
	assert_string_equal(channel.events, "ol");
	client_close(&client);
}

static void test_a_connection_without_channels_is_watched_too(void **state)
{
	struct sshd other;
	struct sshd_spec spec = {.config = "ClientAliveInterval 1\nClientAliveCountMax 2\n"};
	sshd_start(&other, &spec);
	ssh_target_finish(&target);
	target_for(&target, &other);
	target.alive_interval_ms = 200;
	client_connect_ready(&client, &target);
	/* It asks us, too, and would end the connection without our answers. */
	loop_for_ms(5000);
	assert_int_equal(client.lost_count, 0);
	sshd_freeze(&other);
	wait_lost(&client);
	sshd_thaw(&other);
	client_close(&client);
	sshd_stop(&other);
}

static void test_a_loop_that_slept_gives_the_server_its_time(void **state)
{
	target.alive_interval_ms = 200;
	target.alive_count_max = 2;
	client_connect_ready(&client, &target);
	for (int i = 0; i < 3; i++) {
		usleep(1000 * 1000);
		loop_for_ms(350);
		assert_int_equal(client.lost_count, 0);
	}
	echoes();
}

static void test_what_came_before_the_end_is_delivered(void **state)
{
	struct channel_record channel;
	client_connect_ready(&client, &target);
	channel_open(&channel, &client, "sleep 0.2; echo last words; sleep 0.2; kill -9 $PPID");
	wait_event(&channel, 'o');
	usleep(1000 * 1000); // both are there when the loop looks
	wait_lost(&client);
	assert_string_equal(channel.heads[SSH_STREAM_OUT], "last words\n");
	client_close(&client);
}

/* ---- closing ---- */

static void test_it_can_be_closed_at_any_time(void **state)
{
	struct channel_record channels[3];
	for (int ms = 0; ms < 120; ms += 4) {
		client_connect(&client, &target);
		loop_for_ms(ms);
		for (size_t i = 0; i < 3 && client.ready_count > 0; i++) {
			channel_open(&channels[i], &client, i == 1 ? "yes" : "cat");
		}
		loop_for_ms(ms % 12);
		long long begun_ms = clock_now_ms();
		client_close(&client);
		assert_true(clock_now_ms() - begun_ms < 2000);
	}
	client_connect_ready(&client, &target);
	echoes();
}

static void test_it_can_be_closed_through_a_hop_at_any_time(void **state)
{
	target.via = hop_through(&sshd);
	for (int ms = 0; ms < 200; ms += 10) {
		client_connect(&client, &target);
		loop_for_ms(ms);
		client_close(&client);
	}
	client_connect_ready(&client, &target);
	echoes();
}

static void test_closing_in_a_frozen_connection_does_not_wait(void **state)
{
	struct channel_record channel;
	static char much[SSH_CHANNEL_BUFFER];
	client_connect_ready(&client, &target);
	channel_open(&channel, &client, "cat > /dev/null");
	wait_event(&channel, 'o');
	sshd_freeze(&sshd);
	for (int i = 0; i < 200; i++) {
		ssh_channel_write(channel.channel, (struct span){much, sizeof(much)});
		loop_for_ms(1);
	}
	long long begun_ms = clock_now_ms();
	client_close(&client);
	assert_true(clock_now_ms() - begun_ms < 1000);
	sshd_thaw(&sshd);
}

#define link_test(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		link_test(test_a_port_that_nobody_listens_on_is_told),
		link_test(test_a_name_without_address_is_told),
		link_test(test_a_name_with_addresses_of_both_families_connects),
		link_test(test_ipv6_connects),
		link_test(test_a_proxy_command_connects),
		link_test(test_a_proxy_command_that_fails_is_told),
		link_test(test_two_hops_connect_and_carry_much),
		link_test(test_a_hop_that_cannot_reach_the_host_is_told),
		link_test(test_a_hop_that_refuses_the_login_is_told),
		link_test(test_a_server_that_says_nothing_is_bounded),
		link_test(test_a_server_that_freezes_while_authenticating_is_bounded),
		link_test(test_a_server_that_dies_while_authenticating_is_told),
		link_test(test_a_lost_connection_is_an_error_of_every_channel),
		link_test(test_a_frozen_server_is_noticed),
		link_test(test_a_connection_without_channels_is_watched_too),
		link_test(test_a_loop_that_slept_gives_the_server_its_time),
		link_test(test_what_came_before_the_end_is_delivered),
		link_test(test_it_can_be_closed_at_any_time),
		link_test(test_it_can_be_closed_through_a_hop_at_any_time),
		link_test(test_closing_in_a_frozen_connection_does_not_wait),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	client_world_end();
	return failed;
}
