/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/real_stage.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "tests/support/ssh/client_fixture.h"
#include "tests/support/ssh/pipe_client.h"

extern char **environ;

static const struct {
	const char *name;
	ssh_connect_fn *connect;
	bool is_apart;       // the stderr of its processes
	bool has_no_session; // a process
} clients[] = {{"pipe", pipe_client_connect, false, false},
	{"openssh", ssh_openssh_connect, false, false},
	{"libssh2", ssh_libssh2_connect, false, false},
	{"libssh2-apart", ssh_libssh2_connect, true, false},
	{"pipe-grouped", pipe_client_connect, false, true}};

static ssh_connect_fn *chosen;
static bool is_apart;
static struct client_world world;

bool real_stage_is_real(void)
{
	return chosen != pipe_client_connect;
}

bool real_stage_is_apart(void)
{
	return is_apart;
}

struct sshd *real_stage_sshd(void)
{
	return &world.sshd;
}

bool real_stage_begin(const char *client)
{
	struct error err;
	signal(SIGPIPE, SIG_IGN); // as the broker does
	for (size_t i = 0; i < ARRAY_LENGTH(clients); i++) {
		if (strcmp(clients[i].name, client) == 0) {
			chosen = clients[i].connect;
			is_apart = clients[i].is_apart;
			pipe_client_options.has_no_session = clients[i].has_no_session;
		}
	}
	if (!chosen) {
		fprintf(stderr, "there is no client \"%s\"\n", client);
		return false;
	}
	if (!real_stage_is_real()) {
		return true;
	}
	world.context.spawner = spawner_create(&err);
	if (!world.context.spawner) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	world.loop = ev_loop_new(EVFLAG_AUTO);
	world.context.loop = world.loop;
	spawner_attach(world.context.spawner, world.loop);
	world.context.pool = pool_create(world.loop);
	world.context.environment = (const char *const *)environ;
	return true;
}

void real_stage_end(void)
{
	if (real_stage_is_real()) {
		pool_destroy(world.context.pool);
		spawner_destroy(world.context.spawner);
		ev_loop_destroy(world.loop);
	}
}

int real_stage_set_up(void **state)
{
	if (real_stage_is_real()) {
		/* A process takes two channels then. */
		client_world_start(&world,
			&(struct sshd_spec){.config = is_apart ? "MaxSessions 200\n" : NULL});
	}
	return 0;
}

int real_stage_tear_down(void **state)
{
	if (real_stage_is_real()) {
		client_world_stop(&world);
	}
	return 0;
}

void real_stage_init(struct stage *stage)
{
	*stage = (struct stage){.loop = world.loop, .has_loop = real_stage_is_real()};
	stage_init(stage);
	stage->request.stderr_apart = is_apart;
	if (real_stage_is_real()) {
		stage->context = world.context;
		stage->request.target = &world.target;
		stage->request.connect = chosen;
	}
}
