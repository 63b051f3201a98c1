/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/client_cases.h"
#include "tests/support/facts.h"

#include <stdlib.h>
#include <string.h>

/*
 * The choice between the two clients. A client that does what the test wants replaces libssh2; the
 * ssh program is real.
 */
struct scripted_client {
	struct ssh_client client;
	const struct ssh_client_listener *listener;
	void *data;
	ev_timer timer;
	struct ev_loop *loop;
};

static const char *scripted_reason; // NULL: it becomes ready
static bool fails_at_once;
static int open_count; // scripted clients that are not closed

static void scripted_close(struct ssh_client *client)
{
	struct scripted_client *self = CONTAINER_OF(client, struct scripted_client, client);
	ev_timer_stop(self->loop, &self->timer);
	open_count--;
	free(self);
}

static const struct ssh_client_impl scripted_impl = {.name = "libssh2", .close = scripted_close};

static bool set_cannot(struct error *err)
{
	return error_set_reason(err, ERROR_UNAVAILABLE, scripted_reason, "libssh2 cannot fly");
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct scripted_client *self = CONTAINER_OF(timer, struct scripted_client, timer);
	struct error err;
	if (!scripted_reason) {
		self->listener->on_ready(self->data);
		return;
	}
	set_cannot(&err);
	self->listener->on_lost(self->data, &err);
}

struct ssh_client *ssh_libssh2_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	if (fails_at_once) {
		set_cannot(err);
		return NULL;
	}
	struct scripted_client *self = mem_alloc_zero(sizeof(*self));
	self->client.impl = &scripted_impl;
	self->listener = listener;
	self->data = data;
	self->loop = context->loop;
	ev_timer_init(&self->timer, on_timer, 0.001, 0);
	ev_timer_start(self->loop, &self->timer);
	open_count++;
	return &self->client;
}

static void start(struct client_world *world, const char *reason, bool at_once)
{
	scripted_reason = reason;
	fails_at_once = at_once;
	client_world_start(world, NULL);
	world->target.client = SSH_CLIENT_AUTO;
}

static void expect_works(struct client_world *world, struct connection *connection)
{
	struct flow flow = {0};
	flow_run(&flow, connection, "echo switched", "");
	flow_expect_end(&flow, 0);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "switched\n");
	flow_close(&flow);
}

static void test_it_switches_and_says_so(struct client_world *world)
{
	for (int at_once = 0; at_once < 2; at_once++) {
		struct connection connection = {0};
		start(world, "SSH_UNSUPPORTED", at_once);
		connection_expect_ready(&connection, world);
		assert_int_equal(open_count, 0);
		assert_names(connection.progress, "libssh2 cannot fly | ssh program");
		expect_works(world, &connection);
		sshd_kill_connections(&world->sshd);
		client_run_until(world, &connection.is_lost);
		assert_string_equal(connection.told, "rl");
		connection_close(&connection);
		client_world_stop(world);
	}
	start(world, NULL, false);
}

static void test_it_stays_where_libssh2_can(struct client_world *world)
{
	struct connection connection = {0};
	start(world, NULL, false);
	connection_expect_ready(&connection, world);
	assert_int_equal(open_count, 1);
	assert_string_equal(connection.progress, "");
	connection_close(&connection);
	assert_int_equal(open_count, 0);
}

static void test_other_failures_are_final(struct client_world *world)
{
	struct connection connection = {0};
	start(world, "AUTH_FAILED", false);
	connection_expect_failure(&connection, world, "AUTH_FAILED", "cannot fly");
	assert_string_equal(connection.told, "l");
	connection_close(&connection);
	assert_int_equal(open_count, 0);
}

static void test_without_the_ssh_program_it_fails_as_libssh2_does(struct client_world *world)
{
	struct connection connection = {0};
	struct error err;
	start(world, "SSH_UNSUPPORTED", false);
	client_set(&world->target.ssh_program, NULL);
	connection_expect_failure(&connection, world, "SSH_UNSUPPORTED", "cannot fly");
	connection_close(&connection);
	static const struct ssh_client_listener nothing;
	fails_at_once = true;
	assert_null(ssh_connect(&world->context, &world->target, &nothing, NULL, &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	assert_int_equal(open_count, 0);
}

static void test_the_second_failure_is_the_one_that_is_told(struct client_world *world)
{
	struct connection connection = {0};
	start(world, "SSH_UNSUPPORTED", false);
	client_write_file(world->sshd.known_hosts, "");
	connection_expect_failure(&connection, world, "HOST_KEY_UNKNOWN", "SHA256:");
	assert_string_equal(connection.told, "l");
	connection_close(&connection);
}

static void test_handlers_close_it(struct client_world *world)
{
	static const char *const moments[] = {"using the ssh program", "Authenticating", "ready"};
	start(world, "SSH_UNSUPPORTED", false);
	for (size_t i = 0; i < 3; i++) {
		for (int at_once = 0; at_once < 2; at_once++) {
			struct connection connection = {.close_at = moments[i]};
			fails_at_once = at_once;
			connection_open(&connection, world);
			client_run_until(world, &connection.is_over);
			assert_null(connection.client);
			assert_int_equal(open_count, 0);
		}
	}
	client_run_for(world, 50);
}

static void test_the_target_chooses(struct client_world *world)
{
	struct connection connection = {0};
	start(world, "AUTH_FAILED", false);
	world->target.client = SSH_CLIENT_OPENSSH;
	connection_expect_ready(&connection, world);
	assert_string_equal(ssh_client_name(connection.client), "openssh");
	connection_close(&connection);
	struct connection other = {0};
	world->target.client = SSH_CLIENT_LIBSSH2;
	connection_expect_failure(&other, world, "AUTH_FAILED", "cannot fly");
	connection_close(&other);
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_it_switches_and_says_so),
	CASE(test_it_stays_where_libssh2_can),
	CASE(test_other_failures_are_final),
	CASE(test_without_the_ssh_program_it_fails_as_libssh2_does),
	CASE(test_the_second_failure_is_the_one_that_is_told),
	CASE(test_handlers_close_it),
	CASE(test_the_target_chooses),
};

int main(int argc, char **argv)
{
	const struct client_table own = {cases, sizeof(cases) / sizeof(cases[0])};
	const struct client_table *const tables[] = {&own, NULL};
	return client_cases_run(argc, argv, "auto", ssh_connect, tables);
}
