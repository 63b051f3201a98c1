/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ROOTS_FIXTURE_H
#define TESTS_UNIT_ROOTS_FIXTURE_H

#include "tests/unit/relay_fixture.h"

/* A sandbox whose roots have other paths, below /runtime. */
int set_up_roots(void **state);

/*
 * Opens a session in a directory, at an agent whose next id is `id`, and expects that the editor
 * gets the answer.
 */
void open_session(struct fixture *fixture, int index, int id, const char *cwd, const char *session);

/* Expects that an agent that was started later gets the same greeting as the first one. */
void greet_further(struct fixture *fixture, int index);

/* Two agents, each with a session that it calls "s"; their next id is 2. */
void begin_with_two(struct fixture *fixture);

#define ROOTS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_roots, tear_down)

#endif
