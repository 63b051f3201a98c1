/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/campaign.h"
#include "tests/unit/moment_fixture.h"

/* A prune that is cut off by a kill or by its deadline. */

enum { GRACE_S = 1000, OBJECTS = 12, TIME_MAX_MS = 3600 * 1000, SAMPLES = 4 };

/*
 * The linker puts this clock in the place of the one in base/: time passes only when the test says
 * so.
 */
static long long now_ms = 1000;
static long long look_ms; // time that passes at each look

long long __wrap_clock_now_ms(void);
long long __wrap_clock_now_ms(void)
{
	now_ms += look_ms;
	return now_ms;
}

/* Objects that are in use, and objects that nobody needs any more; all of them are old. */
static git_oid fill(struct place *place)
{
	struct error err;
	struct snapshot snapshot;
	git_oid commit;
	struct snapshot_request request = {.root = place->root};
	place_run(place, "rm -rf * ; mkdir d; for i in 1 2 3 4; do echo $i > d/$i; done");
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_true(store_keep(
		&place->store, "checkpoints/1", &snapshot.tree, NULL, "x", &commit, &err));
	git_oid kept = snapshot.tree;
	place_run(place, "for i in 0 1 2 3 4 5 6 7 8 9; do echo garbage $i > d/g$i; done");
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	place_run(place, "find ../state/store/objects -type f -exec touch -d '-1 hour' {} +");
	return kept;
}

static bool prune(
	struct place *place, int time_max_ms, struct store_pruned *out_pruned, struct error *err)
{
	*out_pruned = (struct store_pruned){0};
	return store_prune(&place->store, GRACE_S, time_max_ms, out_pruned, err);
}

static void assert_whole(struct place *place, const git_oid *tree)
{
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), tree);
	snprintf(script, sizeof(script),
		"cd ../state/store; git fsck --strict --full; git archive %s >/dev/null", hex);
	place_run(place, script);
}

/* The number of calls of a prune that is not killed. */
static int count_calls(struct place *place)
{
	struct error err;
	struct store_pruned pruned;
	git_oid kept = fill(place);
	calls_begin(0);
	assert_true(prune(place, 0, &pruned, &err));
	calls_end();
	assert_int_equal(pruned.objects, OBJECTS);
	assert_whole(place, &kept);
	return calls.count;
}

static void test_killed_anywhere_nothing_in_use_is_gone(void **state)
{
	struct place *place = *state;
	struct store_pruned pruned;
	struct error err;
	int count = count_calls(place);
	assert_true(count > OBJECTS);
	for (int at = 1; at <= count; at += 3 * campaign_step(5)) {
		git_oid kept = fill(place);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			calls_begin(at);
			calls.before = moment_be_killed;
			_exit(prune(place, 0, &pruned, NULL) ? 0 : 1);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_whole(place, &kept);
		assert_true(prune(place, 0, &pruned, &err)); // no lock is left behind
		assert_whole(place, &kept);
	}
}

static void be_late(void *data)
{
	now_ms += TIME_MAX_MS;
}

static void test_a_deadline_ends_it_with_the_rest_for_the_next_one(void **state)
{
	struct place *place = *state;
	int count = count_calls(place);
	bool was_partial = false;
	for (int sample = 1; sample <= SAMPLES; sample++) {
		struct error err;
		struct store_pruned first, rest;
		git_oid kept = fill(place);
		calls_begin(count * sample / (SAMPLES + 1) + 1);
		calls.before = be_late;
		bool is_known = prune(place, TIME_MAX_MS, &first, &err);
		calls_end();
		assert_true(is_known || err.code == ERROR_TIMEOUT);
		assert_true(is_known || first.objects == 0);
		assert_whole(place, &kept);
		assert_true(prune(place, 0, &rest, &err));
		assert_true(first.objects + rest.objects >= OBJECTS); // commits of before, too
		was_partial |= first.objects > 0 && rest.objects > 0;
		assert_whole(place, &kept);
	}
	assert_true(was_partial);
}

static void test_too_much_to_know_what_is_in_use_removes_nothing(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_pruned pruned;
	fill(place);
	look_ms = TIME_MAX_MS; // the time is over when the marking first looks at the clock
	assert_false(prune(place, TIME_MAX_MS, &pruned, &err));
	look_ms = 0;
	assert_int_equal(err.code, ERROR_TIMEOUT);
	assert_true(prune(place, 0, &pruned, &err));
	assert_int_equal(pruned.objects, OBJECTS);
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(test_killed_anywhere_nothing_in_use_is_gone),
		PLACE_TEST(test_a_deadline_ends_it_with_the_rest_for_the_next_one),
		PLACE_TEST(test_too_much_to_know_what_is_in_use_removes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
