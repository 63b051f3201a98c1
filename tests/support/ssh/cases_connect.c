/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/ssh/client_cases.h"

/* Hosts that are known or not, and the ways to log in. */
/* Otherwise a server asks questions, which not every client can answer. */
static const struct sshd_spec keys_alone = {
	.config = "KbdInteractiveAuthentication no\nPasswordAuthentication no\n"};

/* A shell script in the folder of sshd, which has to succeed. */
static void run_shell(const struct client_world *world, const char *script)
{
	char line[1024];
	snprintf(line, sizeof(line), "cd %s && %s", world->sshd.folder, script);
	assert_int_equal(system(line), 0);
}

static void expect_works(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	connection_expect_ready(&connection, world);
	flow_run(&flow, &connection, "echo works", "");
	flow_expect_end(&flow, 0);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "works\n");
	flow_close(&flow);
	connection_close(&connection);
}

static void expect_failure(struct client_world *world, const char *reasons, const char *words)
{
	struct connection connection = {0};
	connection_expect_failure(&connection, world, reasons, words);
	connection_close(&connection);
}

static void test_progress_names_host_and_user(struct client_world *world)
{
	struct connection connection = {0};
	char expected[64];
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	snprintf(expected, sizeof(expected), "127.0.0.1 port %d", world->sshd.port);
	assert_non_null(strstr(connection.progress, expected));
	assert_non_null(strstr(connection.progress, "Authenticating as "));
	connection_close(&connection);
}

static void test_an_unknown_host_is_refused(struct client_world *world)
{
	client_world_start(world, NULL);
	client_write_file(world->sshd.known_hosts, "");
	expect_failure(world, "HOST_KEY_UNKNOWN", "SHA256:");
}

static void test_a_changed_key_is_refused(struct client_world *world)
{
	client_world_start(world, NULL);
	run_shell(world, "ssh-keygen -q -N '' -t ed25519 -f other && "
			 "sed -i \"s|ssh-ed25519 .*|$(cut -d' ' -f1,2 other.pub)|; /ecdsa/d\" "
			 "known_hosts");
	world->target.host_checking = SSH_HOST_CHECKING_OFF;
	expect_failure(world, "HOST_KEY_MISMATCH", "SHA256:");
}

static void test_a_revoked_key_is_refused(struct client_world *world)
{
	client_world_start(world, NULL);
	run_shell(world, "sed -i 's/^/@revoked /' known_hosts");
	expect_failure(world, "HOST_KEY_MISMATCH", "");
}

static void test_an_unknown_host_is_written_down_where_that_is_asked_for(struct client_world *world)
{
	client_world_start(world, NULL);
	unlink(world->sshd.known_hosts);
	world->target.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW;
	expect_works(world);
	world->target.host_checking = SSH_HOST_CHECKING_STRICT;
	expect_works(world);
}

static void test_a_pinned_key_needs_no_file(struct client_world *world)
{
	char pin[128] = "";
	client_world_start(world, &(struct sshd_spec){.config = "HostKeyAlgorithms ssh-ed25519\n"});
	run_shell(world, "ssh-keygen -lf host_ed25519.pub | cut -d' ' -f2 > pin");
	char path[SSHD_PATH_MAX];
	snprintf(path, sizeof(path), "%s/pin", world->sshd.folder);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(pin, sizeof(pin), file));
	fclose(file);
	pin[strcspn(pin, "\n")] = '\0';
	client_write_file(world->sshd.known_hosts, "");
	client_set(&world->target.host_key_pin, pin);
	expect_works(world);
	pin[strlen(pin) - 5] ^= 1;
	client_set(&world->target.host_key_pin, pin);
	expect_failure(world, "HOST_KEY_MISMATCH", pin);
}

static void test_a_host_without_address(struct client_world *world)
{
	client_world_start(world, NULL);
	client_set(&world->target.host, "nobody.invalid");
	expect_failure(world, "HOST_NOT_FOUND", "nobody.invalid");
	expect_failure(world, "HOST_NOT_FOUND", "correct host in the profile");
}

static void test_a_host_that_refuses(struct client_world *world)
{
	client_world_start(world, NULL);
	world->target.port = 1;
	expect_failure(world, "HOST_UNREACHABLE", "refused");
	expect_failure(world, "HOST_UNREACHABLE", "sshd");
}

static void make_encrypted_key(struct client_world *world)
{
	run_shell(world, "ssh-keygen -q -t ed25519 -N 'open it' -f locked && "
			 "cat locked.pub > authorized_keys");
	char path[SSHD_PATH_MAX];
	snprintf(path, sizeof(path), "%s/locked", world->sshd.folder);
	client_set_list(&world->target.identity_files, path);
	run_shell(world, "sed -i '/IdentityFile/d' ssh_config");
}

static void test_a_passphrase_comes_from_a_command(struct client_world *world)
{
	client_world_start(world, &keys_alone);
	make_encrypted_key(world);
	client_set(&world->target.passphrase_command, "echo 'open it'");
	expect_works(world);
	client_set(&world->target.passphrase_command, "echo 'open that'");
	expect_failure(world, "AUTH_FAILED", "locked");
	client_set(&world->target.passphrase_command, NULL);
	expect_failure(world, "AUTH_FAILED", "");
}

/* The agent ends together with the folder. */
static void test_a_key_of_the_agent(struct client_world *world)
{
	char path[SSHD_PATH_MAX];
	client_world_start(world, &keys_alone);
	run_shell(world,
		"(ssh-agent -a agent sh -c 'ssh-add -q id && mv id elsewhere && touch added && "
		"while [ -e added ]; do sleep 0.1; done; kill $SSH_AGENT_PID' < /dev/null > "
		"/dev/null 2>&1 &) && "
		"i=0; while [ ! -e added ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done; "
		"sed -i '/Identity/d' ssh_config");
	snprintf(path, sizeof(path), "%s/agent", world->sshd.folder);
	client_set(&world->target.identity_agent, path);
	world->target.identities_only = false;
	expect_works(world);
	client_set(&world->target.identity_agent, NULL);
	expect_failure(world, "AUTH_FAILED", "");
}

static void test_a_key_that_the_host_does_not_take(struct client_world *world)
{
	client_world_start(world, &keys_alone);
	run_shell(world, "echo > authorized_keys");
	expect_failure(world, "AUTH_FAILED", world->sshd.key);
}

static void test_a_password_comes_from_a_command(struct client_world *world)
{
	if (getuid() != 0) {
		skip(); // only root's password is one that the test knows
	}
	client_world_start(
		world, &(struct sshd_spec){.config = "AuthenticationMethods password\n"
						     "KbdInteractiveAuthentication no\n"});
	client_set(&world->target.password_command, "echo " SSHD_PASSWORD);
	expect_works(world);
	client_set(&world->target.password_command, "echo wrong");
	expect_failure(world, "AUTH_FAILED", "");
}

/* The same host three times: two of them on the way to itself. */
static void test_two_hosts_on_the_way(struct client_world *world)
{
	client_world_start(world, NULL);
	world->target.via = calloc(1, sizeof(struct ssh_target));
	assert_non_null(world->target.via);
	client_target_init(world->target.via, &world->sshd);
	struct ssh_target *via = world->target.via;
	via->via = calloc(1, sizeof(struct ssh_target));
	assert_non_null(via->via);
	client_target_init(via->via, &world->sshd);
	struct connection connection = {0};
	struct flow flow = {0};
	connection_expect_ready(&connection, world);
	assert_int_equal(sshd_count_connections(&world->sshd), 3);
	flow_run(&flow, &connection, "cat", "through");
	flow_expect_end(&flow, 0);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "through");
	flow_close(&flow);
	connection_close(&connection);
	client_expect_no_connection(world);

	client_write_file(world->sshd.known_hosts, "");
	client_set_list(&world->target.user_known_hosts_files, "/dev/null");
	expect_failure(world, "HOST_KEY_UNKNOWN", "");
}

static void test_a_proxy_command(struct client_world *world)
{
	char command[256];
	client_world_start(world, NULL);
	snprintf(command, sizeof(command), "busybox nc 127.0.0.1 %d", world->sshd.port);
	client_set(&world->target.proxy_command, command);
	expect_works(world);
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_progress_names_host_and_user),
	CASE(test_an_unknown_host_is_refused),
	CASE(test_a_changed_key_is_refused),
	CASE(test_a_revoked_key_is_refused),
	CASE(test_an_unknown_host_is_written_down_where_that_is_asked_for),
	CASE(test_a_pinned_key_needs_no_file),
	CASE(test_a_host_without_address),
	CASE(test_a_host_that_refuses),
	CASE(test_a_passphrase_comes_from_a_command),
	CASE(test_a_key_of_the_agent),
	CASE(test_a_key_that_the_host_does_not_take),
	CASE(test_a_password_comes_from_a_command),
	CASE(test_two_hosts_on_the_way),
	CASE(test_a_proxy_command),
};

const struct client_table client_connect_cases = {cases, sizeof(cases) / sizeof(cases[0])};
