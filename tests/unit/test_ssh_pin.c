/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/client_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pinned key of any type that the server has, with either client. */
static const enum ssh_client_choice clients[] = {
	SSH_CLIENT_LIBSSH2, SSH_CLIENT_OPENSSH, SSH_CLIENT_AUTO};
static const struct sshd_spec spec = {.config = "# rsa\n"};

static void set_pin(struct client_world *world, const char *type)
{
	char line[512], pin[128] = "";
	snprintf(line, sizeof(line), "ssh-keygen -E sha256 -lf '%s/host_%s.pub' | cut -d' ' -f2",
		world->sshd.folder, type);
	FILE *out = popen(line, "r");
	assert_non_null(out);
	assert_non_null(fgets(pin, sizeof(pin), out));
	assert_int_equal(pclose(out), 0);
	pin[strcspn(pin, "\n")] = '\0';
	client_set(&world->target.host_key_pin, pin);
}

static void expect_ready(struct client_world *world, size_t first)
{
	for (size_t i = first; i < sizeof(clients) / sizeof(clients[0]); i++) {
		struct connection connection = {0};
		world->target.client = clients[i];
		connection_expect_ready(&connection, world);
		assert_string_equal(connection.told, "r");
		connection_close(&connection);
	}
}

static void expect_mismatch(struct client_world *world)
{
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		struct connection connection = {0};
		world->target.client = clients[i];
		connection_expect_failure(
			&connection, world, "HOST_KEY_MISMATCH", world->target.host_key_pin);
		assert_string_equal(connection.told, "l");
		connection_close(&connection);
	}
}

static void test_a_key_of_every_type_can_be_pinned(struct client_world *world)
{
	static const char *const types[] = {"ed25519", "ecdsa", "rsa"};
	client_world_start(world, &spec);
	client_write_file(world->sshd.known_hosts, "");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		set_pin(world, types[i]);
		if (i == 0) { // without what says that it is a SHA256, and padded
			char *pin = world->target.host_key_pin;
			memmove(pin, pin + 7, strlen(pin + 7) + 1);
			strncat(pin, "=", 2);
		}
		/* Not every libssh2 can verify the signatures of RSA keys. */
		expect_ready(world, strcmp(types[i], "rsa") == 0);
	}
}

static void test_another_key_is_refused_after_all_types(struct client_world *world)
{
	client_world_start(world, &spec);
	set_pin(world, "rsa");
	world->target.host_key_pin[20] ^= 1;
	expect_mismatch(world);
	assert_false(sshd_has_logged(&world->sshd, "Accepted publickey"));
}

/* Nothing in the user's files vouches for a key that is not the pinned one. */
static void test_the_configuration_does_not_go_round_a_pin(struct client_world *world)
{
	client_world_start(world, &spec);
	sshd_add_client_config(&world->sshd, "\tNoHostAuthenticationForLocalhost yes\n"
					     "\tVerifyHostKeyDNS yes\n"
					     "\tStrictHostKeyChecking no\n");
	set_pin(world, "ed25519");
	world->target.host_key_pin[20] ^= 1;
	expect_mismatch(world);
	assert_false(sshd_has_logged(&world->sshd, "Accepted publickey"));
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_a_key_of_every_type_can_be_pinned),
	CASE(test_another_key_is_refused_after_all_types),
	CASE(test_the_configuration_does_not_go_round_a_pin),
};

int main(int argc, char **argv)
{
	const struct client_table own = {cases, sizeof(cases) / sizeof(cases[0])};
	const struct client_table *const tables[] = {&own, NULL};
	return client_cases_run(argc, argv, "pin", ssh_connect, tables);
}
