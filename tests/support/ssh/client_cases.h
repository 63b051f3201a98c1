/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_CLIENT_CASES_H
#define TESTS_SSH_CLIENT_CASES_H

#include "tests/support/ssh/client_fixture.h"

/*
 * Cases for every client of providers/ssh/client.h, on a real sshd. Each client's test program runs
 * them and adds the cases that concern only its own client.
 */
struct client_case {
	const char *name; // a sentence
	void (*run)(struct client_world *world);
};

struct client_table {
	const struct client_case *cases;
	size_t count;
};

extern const struct client_table client_channel_cases;
extern const struct client_table client_connect_cases;
extern const struct client_table client_trouble_cases;

/*
 * Runs the cases of the tables (NULL-terminated), and returns the exit status. The program's
 * argument chooses cases by a part of their names. Call it first in main, because it forks a
 * spawner.
 */
int client_cases_run(int argc, char **argv, const char *name, client_connect_fn *connect,
	const struct client_table *const *tables);

#endif
