/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_SHELLS_FIXTURE_H
#define TESTS_SSH_SHELLS_FIXTURE_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/ssh/real_stage.h"

/* The shells that run our scripts there; every test runs with each of them. */
static const char *const shells[] = {"/bin/dash", "/bin/bash", "/usr/bin/busybox"};
static struct stage stage;
static char folder[] = "/tmp/ssh-exec-XXXXXX";
static char sh[64]; // a link to one of them, since busybox goes by its name

static int set_up(void **state)
{
	real_stage_init(&stage);
	unlink(sh);
	assert_int_equal(symlink(*state, sh), 0);
	stage.request.sh = sh;
	stage_open(&stage);
	return 0;
}

static int tear_down(void **state)
{
	stage_finish(&stage);
	return unlink(sh);
}

#define EACH_SHELL(test)                                                                           \
	cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, (void *)shells[0]),      \
		cmocka_unit_test_prestate_setup_teardown(                                          \
			test, set_up, tear_down, (void *)shells[1]),                               \
		cmocka_unit_test_prestate_setup_teardown(                                          \
			test, set_up, tear_down, (void *)shells[2])

/*
 * Runs all tests with all shells. With stderr apart, whose scripts differ in only a few lines from
 * shell to shell, runs each test with one of the shells, in turn.
 */
static inline int shells_run(const struct CMUnitTest *tests, size_t count)
{
	struct CMUnitTest chosen[128];
	size_t length = 0, turn = 0;
	assert_in_range(count, 1, ARRAY_LENGTH(chosen));
	for (size_t i = 0; i < count; i++) {
		bool is_new = i == 0 || strcmp(tests[i].name, tests[i - 1].name) != 0;
		bool is_alone =
			is_new && (i + 1 == count || strcmp(tests[i].name, tests[i + 1].name) != 0);
		turn += is_new;
		if (is_alone || !real_stage_is_apart() ||
			tests[i].initial_state == (void *)shells[turn % ARRAY_LENGTH(shells)]) {
			chosen[length++] = tests[i];
		}
	}
	return _cmocka_run_group_tests(
		"tests", chosen, length, real_stage_set_up, real_stage_tear_down);
}

/* Call it first in main. The argument names the client; without an argument it is "pipe". */
static inline bool shells_init(int argc, char **argv)
{
	if (!real_stage_begin(argc > 1 ? argv[1] : "pipe") || !mkdtemp(folder)) {
		return false;
	}
	snprintf(sh, sizeof(sh), "%s/sh", folder);
	return true;
}

/* Call it last in main; returns the exit status. */
static inline int shells_finish(int failed)
{
	rmdir(folder);
	real_stage_end();
	return failed;
}

#endif
