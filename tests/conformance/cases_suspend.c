/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "tests/conformance/world.h"

/* Suspending and resuming sandboxes that can do it, and the errors of those that cannot. */

enum { STILL_MS = 200 };

/* Appends a byte to the file $1 again and again. */
#define TICK "tick() { while :; do printf . >>\"$1\"; sleep 0.02; done; }; "

static bool can_suspend(const struct world *world)
{
	return sandbox_capabilities(world->sandbox)->can_suspend;
}

static void start(struct run *run, const struct world *world, const char *script, bool suspends)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	run_start(run, world,
		&(struct exec_spec){.argv = argv, .cwd = world->root, .suspends = suspends});
	run_expect(run, "s");
}

static void suspend(const struct world *world, struct outcome *outcome)
{
	*outcome = (struct outcome){0};
	sandbox_suspend(world->sandbox, outcome_on_done, outcome);
	assert_false(outcome->is_done);
	world_run_until(world, &outcome->is_done);
}

static void expect_suspended(const struct world *world)
{
	struct outcome outcome;
	suspend(world, &outcome);
	if (!outcome.is_ok) {
		fail_msg("%s", outcome.err.text);
	}
}

static void expect_resumed(const struct world *world)
{
	struct outcome outcome = {0};
	sandbox_resume(world->sandbox, outcome_on_done, &outcome);
	assert_false(outcome.is_done);
	world_run_until(world, &outcome.is_done);
	assert_true(outcome.is_ok);
}

static long size_of(const struct world *world, const char *name)
{
	struct outcome outcome = {0};
	file_stat_wait(world, world_path(world, name), &outcome);
	return outcome.is_ok ? (long)outcome.status.st_size : 0;
}

static void expect_growth(const struct world *world, const char *name)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	long before = size_of(world, name);
	long now = before;
	while (now <= before && clock_now_ms() < deadline_ms) {
		world_run_for(world, 20);
		now = size_of(world, name);
	}
	assert_true(now > before);
}

static void expect_still(const struct world *world, const char *const *names)
{
	long before[8];
	for (size_t i = 0; names[i]; i++) {
		before[i] = size_of(world, names[i]);
	}
	world_run_for(world, STILL_MS);
	for (size_t i = 0; names[i]; i++) {
		assert_int_equal(size_of(world, names[i]), before[i]);
	}
}
#define STILL(world, ...) expect_still(world, (const char *const[]){__VA_ARGS__, NULL})

/* Makes sure that nobody writes to the folder while it is removed. */
static void end(struct run *run)
{
	exec_kill_tree(run->exec);
	run_expect(run, "sxe");
	run_destroy(run);
}

static void a_tree_stands_still_and_goes_on(struct world *world)
{
	static const char *const names[] = {"own", "child", "daemon", "forks"};
	struct run run;
	if (!can_suspend(world)) {
		return;
	}
	start(&run, world,
		TICK "tick child & (setsid sh -c '" TICK "tick daemon' &); "
		     "while :; do (printf . >>forks) & sleep 0.01; done & tick own",
		true);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_growth(world, names[i]);
	}
	expect_suspended(world);
	STILL(world, "own", "child", "daemon", "forks");
	assert_string_equal(run.told, "s");
	expect_resumed(world);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_growth(world, names[i]);
	}
	end(&run);
}

static void all_but_what_is_to_be_frozen_works_on(struct world *world)
{
	struct run frozen;
	struct run other;
	if (!can_suspend(world)) {
		return;
	}
	start(&frozen, world, TICK "tick frozen", true);
	start(&other, world, TICK "tick other", false);
	expect_growth(world, "frozen");
	expect_suspended(world);
	STILL(world, "frozen");
	expect_growth(world, "other");
	expect_written(world, world_path(world, "file"), "text");
	expect_content(world, world_path(world, "file"), "text");
	assert_string_equal(world_shell(world, "echo started"), "started");
	expect_resumed(world);
	expect_growth(world, "frozen");
	end(&frozen);
	end(&other);
}

static void what_is_frozen_can_be_killed(struct world *world)
{
	struct run run;
	if (!can_suspend(world)) {
		return;
	}
	start(&run, world, "(setsid sh -c 'echo $$; sleep 600' &); sleep 600; sleep 600", true);
	world_run_for(world, 100);
	expect_suspended(world);
	exec_kill_tree(run.exec);
	run_expect(&run, "sxe");
	assert_int_equal(run.status.signal, SIGKILL);
	run_destroy(&run);
	expect_resumed(world); // the freeze leaves nothing behind
}

static void a_signal_is_seen_once_it_goes_on(struct world *world)
{
	struct run run;
	if (!can_suspend(world)) {
		return;
	}
	start(&run, world, "trap 'exit 4' TERM; " TICK "tick ready", true);
	expect_growth(world, "ready");
	expect_suspended(world);
	exec_signal_group(run.exec, SIGTERM);
	world_run_for(world, 100);
	assert_string_equal(run.told, "s");
	expect_resumed(world);
	run_expect(&run, "sxe");
	assert_int_equal(run.status.code, 4);
	run_destroy(&run);
}

static void what_was_stopped_before_stays_so(struct world *world)
{
	struct run run;
	if (!can_suspend(world)) {
		return;
	}
	start(&run, world, "sh -c 'kill -STOP $$; echo >woken; sleep 600' & " TICK "tick beside",
		true);
	expect_growth(world, "beside");
	world_run_for(world, 100);
	expect_suspended(world);
	STILL(world, "beside");
	expect_resumed(world);
	expect_growth(world, "beside");
	world_run_for(world, 100);
	assert_int_equal(size_of(world, "woken"), 0);
	end(&run);
}

static void a_resume_takes_a_suspend_back(const struct world *world)
{
	struct outcome suspended = {0};
	struct outcome resumed = {0};
	sandbox_suspend(world->sandbox, outcome_on_done, &suspended);
	sandbox_resume(world->sandbox, outcome_on_done, &resumed);
	world_run_until(world, &suspended.is_done);
	world_run_until(world, &resumed.is_done);
	assert_true(resumed.is_ok);
	expect_error(&suspended, ERROR_UNAVAILABLE, "suspending the sandbox");
	assert_string_equal(suspended.err.reason, "PAUSE_INTERRUPTED");
}

static void each_may_come_in_any_order(struct world *world)
{
	struct run run;
	struct outcome suspended = {0};
	if (!can_suspend(world)) {
		return;
	}
	expect_resumed(world);   // running processes go on
	expect_suspended(world); // there are no processes
	expect_resumed(world);
	start(&run, world, TICK "tick own", true);
	expect_growth(world, "own");
	a_resume_takes_a_suspend_back(world);
	expect_growth(world, "own");
	expect_suspended(world);
	expect_suspended(world);
	STILL(world, "own");
	expect_resumed(world);
	expect_resumed(world);
	expect_growth(world, "own");
	sandbox_suspend(world->sandbox, outcome_on_done, &suspended);
	end(&run); // meanwhile
	world_run_until(world, &suspended.is_done);
	assert_true(suspended.is_ok);
	expect_resumed(world);
}

static void one_that_cannot_says_so(struct world *world)
{
	struct outcome outcome;
	if (can_suspend(world)) {
		return;
	}
	suspend(world, &outcome);
	expect_error(&outcome, ERROR_UNAVAILABLE, "cannot be suspended");
	assert_string_equal(outcome.err.reason, "PAUSE_UNSUPPORTED");
}

static void closing_ends_what_is_frozen(struct world *world)
{
	struct run run;
	void *state = world;
	if (!can_suspend(world)) {
		return;
	}
	start(&run, world, "(setsid sh -c 'echo $$; sleep 600' &); sleep 600; sleep 600", true);
	while (!strchr(sink_text(&run.out), '\n')) {
		world_run_for(world, 5);
	}
	long pid = strtol(sink_text(&run.out), NULL, 10);
	expect_suspended(world);
	sandbox_close(world->sandbox);
	world->sandbox = NULL;
	run_destroy(&run);
	assert_int_equal(world_tear_down(&state), 0);
	assert_int_equal(world_set_up(&state), 0); // to look from another sandbox
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (world_is_alive(world, pid) && clock_now_ms() < deadline_ms) {
		world_run_for(world, 20);
	}
	world_expect_gone(world, pid);
}

static const struct world_case cases[] = {
	{"suspend: a tree stands still and goes on", a_tree_stands_still_and_goes_on},
	{"suspend: all but what is to be frozen works on", all_but_what_is_to_be_frozen_works_on},
	{"suspend: what is frozen can be killed", what_is_frozen_can_be_killed},
	{"suspend: a signal is seen once it goes on", a_signal_is_seen_once_it_goes_on},
	{"suspend: what was stopped before stays so", what_was_stopped_before_stays_so},
	{"suspend: each may come in any order", each_may_come_in_any_order},
	{"suspend: one that cannot says so", one_that_cannot_says_so},
	{"suspend: closing ends what is frozen", closing_ends_what_is_frozen},
};
const struct world_table suspend_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
