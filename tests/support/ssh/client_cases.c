/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/client_cases.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

enum { CASES_MAX = 96 };

static struct client_world world;
extern char **environ;

static int tear_down(void **state)
{
	client_world_stop(&world);
	client_run_for(&world, 1);
	return 0;
}

static void run_case(void **state)
{
	const struct client_case *one = *state;
	one->run(&world);
}

static size_t add(struct CMUnitTest *tests, size_t count, const struct client_table *table,
	const char *wanted)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct client_case *one = &table->cases[i];
		if (!wanted || strstr(one->name, wanted)) {
			assert_true(count < CASES_MAX);
			tests[count++] = (struct CMUnitTest){.name = one->name,
				.test_func = run_case,
				.teardown_func = tear_down,
				.initial_state = (void *)one};
		}
	}
	return count;
}

int client_cases_run(int argc, char **argv, const char *name, client_connect_fn *connect,
	const struct client_table *const *tables)
{
	struct error err;
	struct spawner *spawner = spawner_create(&err);
	if (!spawner) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN); // as the broker does
	// ssh runs a proxy with it, and bash reads the user's .bashrc when its input is a socket.
	setenv("SHELL", "/bin/sh", 1);
	world.name = name;
	world.connect = connect;
	world.loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(spawner, world.loop);
	world.context = (struct provider_context){.loop = world.loop,
		.spawner = spawner,
		.pool = pool_create(world.loop),
		.environment = (const char *const *)environ};

	const char *wanted = argc > 1 ? argv[1] : NULL;
	struct CMUnitTest tests[CASES_MAX];
	size_t count = 0;
	for (; *tables; tables++) {
		count = add(tests, count, *tables, wanted);
	}
	int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
	pool_destroy(world.context.pool);
	spawner_destroy(spawner);
	ev_loop_destroy(world.loop);
	return failed;
}
