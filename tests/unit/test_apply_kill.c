/* SPDX-License-Identifier: MIT */
#include "sync/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/conflicts.h"
#include "tests/support/campaign.h"
#include "tests/unit/moment_fixture.h"

/*
 * Applies in a child that is killed before call number `at`; false if it has ended before that
 * call.
 */
static bool apply_until_killed(struct moment *moment, int at)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		calls_begin(at);
		calls.before = moment_be_killed;
		bool applied = moment_apply(moment, &moment->from, &moment->to, NULL);
		store_close(&moment->place->store);
		_exit(applied ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void test_killed_anywhere_the_same_again_finishes(void **state)
{
	struct moment moment;
	struct error err;
	int at = 0;
	bool was_killed = true;
	while (was_killed) {
		moment_reset(&moment, *state);
		at += campaign_step(5);
		was_killed = apply_until_killed(&moment, at);
		if (!moment_apply(&moment, &moment.from, &moment.to, &err)) {
			fail_msg("after a kill at call %d: %s", at, err.text);
		}
		moment_assert_finished(&moment);
	}
	assert_true(at > 100);
}

/* The broker does the same: it takes another snapshot and merges, without knowing of the kill. */
static void test_killed_anywhere_another_merge_finishes(void **state)
{
	struct moment moment;
	struct error err;
	struct store *store = &((struct place *)*state)->store;
	int at = 0;
	bool was_killed = true;
	while (was_killed) {
		moment_reset(&moment, *state);
		at += campaign_step(5);
		was_killed = apply_until_killed(&moment, at);
		struct merge merge;
		struct merge_trees trees = {.base = moment.from,
			.local = tree_of_folder(store, moment.place->root),
			.runtime = moment.to};
		assert_true(merge_run(&merge, store, &trees, &err));
		assert_int_equal(merge.conflict_count, 0);
		assert_true(tree_equal(&merge.merged, &moment.to));
		if (!moment_apply(&moment, &trees.local, &merge.merged, &err)) {
			fail_msg("after a kill at call %d: %s", at, err.text);
		}
		merge_finish(&merge);
		moment_assert_finished(&moment);
	}
}

static bool park(struct place *place, const struct merge_trees *trees)
{
	struct error err;
	struct merge merge;
	bool parked = merge_run(&merge, &place->store, trees, &err) &&
	              conflicts_park(&place->store, &merge, "20260131T101502", &err);
	merge_finish(&merge);
	return parked;
}

static bool park_until_killed(struct place *place, const struct merge_trees *trees, int at)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		calls_begin(at);
		calls.before = moment_be_killed;
		bool parked = park(place, trees);
		store_close(&place->store);
		_exit(parked ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void test_what_a_killed_parking_left_out_the_next_one_does(void **state)
{
	struct place *place = *state;
	const char *const local[] = {"d/a=local", NULL};
	struct merge_trees trees = {TREE(&place->store, "d/a=base"),
		TREE(&place->store, "d/a=local"), TREE(&place->store, "d/a=runtime")};
	int at = 0;
	bool was_killed = true;
	tree_write(place->root, local);
	while (was_killed) {
		place_run(place, "cd ../state/store; rm -rf parked refs/acp-broker/conflicts");
		was_killed = park_until_killed(place, &trees, ++at);
		assert_true(park(place, &trees));
		char *parked = place_ask(place, "cat ../state/store/parked/*/*/runtime/*");
		assert_string_equal(parked, "runtime");
		free(parked);
	}
	assert_true(at > 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_killed_anywhere_the_same_again_finishes),
		TEST(test_killed_anywhere_another_merge_finishes),
		TEST(test_what_a_killed_parking_left_out_the_next_one_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
