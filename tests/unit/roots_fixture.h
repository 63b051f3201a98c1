/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ROOTS_FIXTURE_H
#define TESTS_UNIT_ROOTS_FIXTURE_H

#include "tests/unit/relay_fixture.h"

/* A sandbox with roots of its own: the test's has them under /runtime. */
int set_up_roots(void **state);

/* session/new in a directory, by an agent whose next id this is. The editor has to hear of it. */
void open_session(struct fixture *fixture, int index, int id, const char *cwd, const char *session);

/* An agent that was started later is told what the first one was. */
void greet_further(struct fixture *fixture, int index);

/* Two agents, each with a session that it calls "s"; their next id is 2. */
void begin_with_two(struct fixture *fixture);

#define ROOTS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_roots, tear_down)

#endif
