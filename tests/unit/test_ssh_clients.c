/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/client_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The cases of every client, with libssh2; test_ssh_libssh2.c has the cases that concern only
 * libssh2. Also the choice between the two clients when it depends on what a real server offers.
 */
static const char etm_alone[] =
	"Ciphers aes256-ctr\n"
	"MACs hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com\n";

static void test_a_server_that_libssh2_cannot_talk_to(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, &(struct sshd_spec){.config = etm_alone});
	world->target.client = SSH_CLIENT_LIBSSH2;
	connection_expect_failure(&connection, world, "SSH_UNSUPPORTED", "ssh-client");
	connection_close(&connection);
}

static void test_auto_takes_the_program_there(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, &(struct sshd_spec){.config = etm_alone});
	world->target.client = SSH_CLIENT_AUTO;
	world->connect = ssh_connect;
	connection_expect_ready(&connection, world);
	world->connect = ssh_libssh2_connect;
	assert_non_null(strstr(connection.progress, "using the ssh program"));
	flow_run(&flow, &connection, "cat", "there");
	flow_expect_end(&flow, 0);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "there");
	flow_close(&flow);
	connection_close(&connection);
}

static void test_auto_stays_with_libssh2_elsewhere(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, NULL);
	world->target.client = SSH_CLIENT_AUTO;
	world->connect = ssh_connect;
	connection_expect_ready(&connection, world);
	world->connect = ssh_libssh2_connect;
	assert_null(strstr(connection.progress, "using the ssh program"));
	connection_close(&connection);
}

/*
 * An authority that the server knows signs the user's key; the server does not know the key
 * otherwise.
 */
static void certify(struct client_world *world)
{
	char command[1024];
	snprintf(command, sizeof(command),
		"cd %s && ssh-keygen -q -t ed25519 -N '' -f authority && "
		"sed 's/^/cert-authority /' authority.pub > authorized_keys && "
		"ssh-keygen -q -t ed25519 -N '' -f mine && "
		"ssh-keygen -q -s authority -I me -n %s mine.pub",
		world->sshd.folder, world->sshd.user);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/mine", world->sshd.folder);
	client_set_list(&world->target.identity_files, command);
}

static void test_auto_takes_the_program_for_a_certificate(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, NULL);
	certify(world);
	world->target.client = SSH_CLIENT_LIBSSH2;
	connection_expect_failure(
		&connection, world, "SSH_UNSUPPORTED", "mine-cert.pub is a certificate");
	connection_close(&connection);
	world->target.client = SSH_CLIENT_AUTO;
	world->connect = ssh_connect;
	connection = (struct connection){0};
	connection_expect_ready(&connection, world);
	world->connect = ssh_libssh2_connect;
	assert_non_null(strstr(connection.progress, "using the ssh program"));
	connection_close(&connection);
}

/* The certificate of the server itself, with which its plain keys need not be known. */
static const char certified[] = "HostCertificate host_ed25519-cert.pub\n";

/* ssh looks for the name with its port, and without. */
static void know_the_authority(struct client_world *world, bool has_port)
{
	char command[1024];
	char name[64];
	snprintf(name, sizeof(name), has_port ? "[127.0.0.1]:%d" : "127.0.0.1", world->sshd.port);
	snprintf(command, sizeof(command),
		"cd %s && sed \"s/^/@cert-authority %s /\" authority.pub > known_hosts",
		world->sshd.folder, name);
	assert_int_equal(system(command), 0);
}

static void expect_the_program(struct client_world *world, const char *words)
{
	struct connection connection = {0};
	world->target.client = SSH_CLIENT_AUTO;
	world->connect = ssh_connect;
	connection_expect_ready(&connection, world);
	world->connect = ssh_libssh2_connect;
	assert_non_null(strstr(connection.progress, words));
	assert_non_null(strstr(connection.progress, "using the ssh program"));
	connection_close(&connection);
}

static void expect_the_program_for_an_authority(struct client_world *world, const char *reason)
{
	struct connection connection = {0};
	world->target.client = SSH_CLIENT_LIBSSH2;
	connection_expect_failure(&connection, world, reason, "@cert-authority");
	assert_non_null(strstr(connection.err.text, "ssh-client = openssh"));
	connection_close(&connection);
	expect_the_program(world, "@cert-authority");
}

static void test_auto_takes_the_program_for_a_host_that_an_authority_knows(
	struct client_world *world)
{
	client_world_start(world, &(struct sshd_spec){.config = certified});
	know_the_authority(world, true);
	expect_the_program_for_an_authority(world, "SSH_UNSUPPORTED");
	know_the_authority(world, false);
	expect_the_program_for_an_authority(world, "SSH_UNSUPPORTED");
	/* No key is written down, although new keys are accepted. */
	world->target.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW;
	expect_the_program_for_an_authority(world, "SSH_UNSUPPORTED");
	char command[512];
	snprintf(command, sizeof(command), "test $(wc -l < %s) = 1", world->sshd.known_hosts);
	assert_int_equal(system(command), 0);
}

/* Writes another plain key of the host into the known hosts. */
static void know_another_key(struct client_world *world)
{
	char command[1024];
	snprintf(command, sizeof(command),
		"cd %s && echo \"[127.0.0.1]:%d $(cut -d' ' -f1,2 id.pub)\" >> known_hosts",
		world->sshd.folder, world->sshd.port);
	assert_int_equal(system(command), 0);
}

/* Nobody has to know the plain key then. */
static void test_an_authority_goes_before_the_plain_keys(struct client_world *world)
{
	client_world_start(world, &(struct sshd_spec){.config = certified});
	know_the_authority(world, true);
	know_another_key(world);
	expect_the_program_for_an_authority(world, "HOST_KEY_MISMATCH");
}

static void test_without_a_certificate_an_authority_vouches_for_no_changed_key(
	struct client_world *world)
{
	char command[512];
	struct connection connection = {0};
	client_world_start(world, NULL);
	snprintf(command, sizeof(command), "ssh-keygen -q -t ed25519 -N '' -f %s/authority",
		world->sshd.folder);
	assert_int_equal(system(command), 0);
	know_the_authority(world, true);
	know_another_key(world);
	world->target.client = SSH_CLIENT_AUTO;
	world->connect = ssh_connect;
	connection_expect_failure(&connection, world, "HOST_KEY_MISMATCH", "");
	world->connect = ssh_libssh2_connect;
	connection_close(&connection);
}

/* The key with which the program logs in stands for a ticket. */
static void test_auto_takes_the_program_for_kerberos(struct client_world *world)
{
	static const char takes_tickets[] =
		"GSSAPIAuthentication yes\nKbdInteractiveAuthentication no\n";
	client_world_start(world, &(struct sshd_spec){.config = takes_tickets});
	client_set_list(&world->target.identity_files, "/dev/null");
	world->target.has_kerberos = true;
	world->target.names_tickets = true;
	expect_the_program(world, "GSSAPIAuthentication");
}

/* A proxy that passes on its connection and ends, as in systemd's configuration for ssh. */
static void test_auto_takes_the_program_for_a_proxy_that_passes_its_connection(
	struct client_world *world)
{
	char command[512];
	client_world_start(world, NULL);
	snprintf(command, sizeof(command),
		"python3 -c 'import socket; peer = socket.create_connection((\"127.0.0.1\", %d)); "
		"socket.send_fds(socket.socket(fileno=1), [bytes(1)], [peer.fileno()])'",
		world->sshd.port);
	client_set(&world->target.proxy_command, command);
	client_set(&world->target.unknown_setting, "ProxyUseFdpass yes");
	sshd_add_client_config(&world->sshd, "ProxyUseFdpass yes\n");
	expect_the_program(world, "ProxyUseFdpass");
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_a_server_that_libssh2_cannot_talk_to),
	CASE(test_auto_takes_the_program_there),
	CASE(test_auto_stays_with_libssh2_elsewhere),
	CASE(test_auto_takes_the_program_for_a_certificate),
	CASE(test_auto_takes_the_program_for_a_host_that_an_authority_knows),
	CASE(test_an_authority_goes_before_the_plain_keys),
	CASE(test_without_a_certificate_an_authority_vouches_for_no_changed_key),
	CASE(test_auto_takes_the_program_for_kerberos),
	CASE(test_auto_takes_the_program_for_a_proxy_that_passes_its_connection),
};

int main(int argc, char **argv)
{
	const struct client_table own = {cases, sizeof(cases) / sizeof(cases[0])};
	const struct client_table *const tables[] = {
		&client_channel_cases, &client_connect_cases, &client_trouble_cases, &own, NULL};
	return client_cases_run(argc, argv, "libssh2", ssh_libssh2_connect, tables);
}
