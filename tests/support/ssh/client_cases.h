/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_CLIENT_CASES_H
#define TESTS_SSH_CLIENT_CASES_H

#include "tests/support/ssh/client_fixture.h"

/*
 * What every client of providers/ssh/client.h has to do, on a real sshd: cases that are run for
 * each. A test program adds those that are its own client's.
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
 * Runs the tables (NULL-terminated), the program's argument choosing cases by a part of their
 * names; the exit status. First thing in main: it forks a spawner.
 */
int client_cases_run(int argc, char **argv, const char *name, client_connect_fn *connect,
	const struct client_table *const *tables);

#endif
