/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_case_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/libssh2_library.h"

/* Connections that end or freeze at every stage. */

/* ---- servers that freeze or go ---- */

static void test_a_server_that_says_nothing_is_bounded(void **state)
{
	int fd;
	target.port = listen_silently(&fd);
	target.connect_timeout_ms = 400;
	client_connect_fails(&client, &target, "TIMEOUT_EXCEEDED");
	assert_non_null(strstr(client.err.text, "connect-timeout"));
	close(fd);
}

/* The password is given when the file exists. */
#define WAIT_AND_BE_WRONG "until [ -e %s ]; do sleep 0.05; done; echo wrong"

static void test_a_server_that_freezes_while_authenticating_is_bounded(void **state)
{
	char go[PATH_MAX], command[PATH_MAX + 64];
	case_path(go, "go");
	snprintf(command, sizeof(command), WAIT_AND_BE_WRONG, go);
	target_set(&target.password_command, command);
	use_no_key();
	target.auth_timeout_ms = 2500;
	client_connect(&client, &target);
	loop_until(is_authenticating, &client);
	loop_for_ms(300);
	sshd_freeze(&sshd);
	assert_int_equal(run_shell("touch %s", go), 0);
	wait_outcome(&client);
	sshd_thaw(&sshd);
	assert_int_equal(client.lost_count, 1);
	assert_string_equal(client.err.reason, "TIMEOUT_EXCEEDED");
	client_close(&client);
}

static void test_a_server_that_dies_while_authenticating_is_told(void **state)
{
	char go[PATH_MAX], command[PATH_MAX + 64];
	case_path(go, "go");
	snprintf(command, sizeof(command), WAIT_AND_BE_WRONG, go);
	target_set(&target.password_command, command);
	use_no_key();
	client_connect(&client, &target);
	loop_until(is_authenticating, &client);
	loop_for_ms(300);
	sshd_kill_connections(&sshd);
	assert_int_equal(run_shell("touch %s", go), 0);
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
	target.alive_interval_ms = 500;
	target.alive_count_max = 6; // a busy server has 3 s
	client_connect_ready(&client, &target);
	channel_open(&channel, &client, "cat");
	wait_event(&channel, 'o');
	/* While it answers, it counts as alive. */
	loop_for_ms(1200);
	assert_int_equal(client.lost_count, 0);
	sshd_freeze(&sshd);
	long long begun_ms = clock_now_ms();
	wait_lost(&client);
	long long took_ms = clock_now_ms() - begun_ms;
	sshd_thaw(&sshd);
	assert_true(took_ms >= 2000);
	assert_string_equal(client.err.reason, "LINK_LOST");
	assert_string_equal(channel.events, "ol");
	client_close(&client);
}

/* A gateway may open any kind of channel; here it is one that sshd opens, too. */
static __typeof__(libssh2_channel_open_ex) *open_really;
static size_t opened_count;

static LIBSSH2_CHANNEL *open_anything(LIBSSH2_SESSION *session, const char *type,
	unsigned int type_len, unsigned int window, unsigned int packet, const char *message,
	unsigned int message_len)
{
	LIBSSH2_CHANNEL *channel = open_really(
		session, "session", sizeof("session") - 1, window, packet, message, message_len);
	opened_count += channel != NULL;
	return channel;
}

static bool were_many_opened(void *data)
{
	return opened_count >= 12;
}

static void test_a_probe_that_is_opened_is_closed(void **state)
{
	struct error err;
	struct ssh2 *ssh2 = (struct ssh2 *)(uintptr_t)ssh2_open(&err);
	struct channel_record channel;
	open_really = ssh2->channel_open_ex;
	ssh2->channel_open_ex = open_anything;
	target.alive_interval_ms = 50;
	target.alive_count_max = 400;
	client_connect_ready(&client, &target);
	channel_open(&channel, &client, "cat");
	loop_until(were_many_opened, NULL); // more than the ten that sshd allows at once
	assert_int_equal(client.lost_count, 0);
	channel_close(&channel);
	echoes();
	ssh2->channel_open_ex = open_really;
}

static void test_a_connection_without_channels_is_watched_too(void **state)
{
	struct sshd other;
	struct sshd_spec spec = {.config = "ClientAliveInterval 1\nClientAliveCountMax 2\n"};
	sshd_start(&other, &spec);
	ssh_target_finish(&target);
	target_for(&target, &other);
	target.alive_interval_ms = 500;
	target.alive_count_max = 6;
	client_connect_ready(&client, &target);
	/* The server asks us, too, and would end the connection without our answers. */
	loop_for_ms(3500);
	assert_int_equal(client.lost_count, 0);
	sshd_freeze(&other);
	wait_lost(&client);
	sshd_thaw(&other);
	client_close(&client);
	sshd_stop(&other);
}

static void test_a_loop_that_slept_gives_the_server_its_time(void **state)
{
	enum { INTERVAL_MS = 500, COUNT_MAX = 3 };
	target.alive_interval_ms = INTERVAL_MS;
	target.alive_count_max = COUNT_MAX;
	client_connect_ready(&client, &target);
	usleep((COUNT_MAX + 1) * INTERVAL_MS * 1000);
	loop_for_ms(INTERVAL_MS / 2);
	assert_int_equal(client.lost_count, 0);
	echoes();
}

static void test_what_came_before_the_end_is_delivered(void **state)
{
	struct channel_record channel;
	client_connect_ready(&client, &target);
	channel_open(&channel, &client, "sleep 0.2; echo last words; sleep 0.2; kill -9 $PPID");
	wait_event(&channel, 'o');
	usleep(1000 * 1000); // both events are there when the loop looks
	wait_lost(&client);
	assert_string_equal(channel.heads[SSH_STREAM_OUT], "last words\n");
	client_close(&client);
}

/* ---- closing ---- */

enum { CLOSE_MAX_MS = 20 * 1000 }; // it waits for nothing; a busy machine may

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
		assert_true(clock_now_ms() - begun_ms < CLOSE_MAX_MS);
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
	assert_true(clock_now_ms() - begun_ms < CLOSE_MAX_MS);
	sshd_thaw(&sshd);
}

#define link_test(name)                                                                            \
	cmocka_unit_test_setup_teardown(name, case_begin_with_sshd, case_end_with_sshd)

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		link_test(test_a_server_that_says_nothing_is_bounded),
		link_test(test_a_server_that_freezes_while_authenticating_is_bounded),
		link_test(test_a_server_that_dies_while_authenticating_is_told),
		link_test(test_a_lost_connection_is_an_error_of_every_channel),
		link_test(test_a_frozen_server_is_noticed),
		link_test(test_a_probe_that_is_opened_is_closed),
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
