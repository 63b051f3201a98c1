/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "tests/conformance/world.h"

/* Waits for the first line of output: a process id. */
static long read_pid(const struct world *world, struct run *run)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!memchr(sink_text(&run->out), '\n', run->out.text.len) &&
		clock_now_ms() < deadline_ms) {
		world_run_for(world, 2);
	}
	long pid = strtol(sink_text(&run->out), NULL, 10);
	assert_true(pid > 1);
	return pid;
}

/* A child that forked twice and made its own session; its pid is the first line of output. */
#define DAEMON "(setsid sh -c 'echo $$; trap \"\" HUP TERM INT; sleep 600; sleep 600' &); "

static void signal_reaches_the_group(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, "sleep 600 & echo $!; wait");
	long child = read_pid(world, &run);
	exec_signal_group(run.exec, SIGTERM);
	run_expect(&run, "sxe");
	assert_int_equal(run.status.signal, SIGTERM);
	world_expect_gone(world, child);
	run_destroy(&run);
}

static void signal_can_be_handled(struct world *world)
{
	struct run run;
	run_start_shell(&run, world,
		"trap 'echo caught; exit 4' INT; echo $$; while :; do sleep 0.05; done");
	read_pid(world, &run);
	exec_signal_group(run.exec, SIGINT);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_non_null(strstr(sink_text(&run.out), "caught\n"));
	assert_int_equal(run.status.code, 4);
	run_destroy(&run);
}

/* The program itself ignores some signals at its start: see main. */
static void no_signal_is_ignored_or_blocked(struct world *world)
{
	assert_string_equal(world_shell(world, "grep -E '^Sig(Blk|Ign)' /proc/self/status"),
		"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000");
}

static void tree_dies_with_daemons(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, DAEMON "trap '' TERM; sleep 600; sleep 600");
	long daemon = read_pid(world, &run);
	exec_kill_tree(run.exec);
	exec_kill_tree(run.exec);
	run_expect(&run, "sxe");
	assert_int_equal(run.status.signal, SIGKILL);
	world_expect_gone(world, daemon);
	run_destroy(&run);
}

static void exit_does_not_wait_for_daemons(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, DAEMON "exit 3");
	long daemon = read_pid(world, &run);
	run_expect(&run, "sx");
	assert_int_equal(run.status.code, 3);
	world_run_for(world, 50);
	assert_string_equal(run.told, "sx");
	assert_true(world_is_alive(world, daemon));
	exec_kill_tree(run.exec);
	run_expect(&run, "sxe");
	world_expect_gone(world, daemon);
	run_destroy(&run);
}

static void child_may_hold_the_output(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, "sleep 600 & echo $!; exit 0");
	long child = read_pid(world, &run);
	run_expect(&run, "sx");
	world_run_for(world, 50);
	assert_false(run.out.at_end);
	exec_kill_tree(run.exec);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	world_expect_gone(world, child);
	run_destroy(&run);
}

static void destroy_kills_silently(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, DAEMON "sleep 600");
	long daemon = read_pid(world, &run);
	run_expect(&run, "s"); // its output may be read before
	exec_destroy(run.exec);
	run.exec = NULL;
	world_expect_gone(world, daemon);
	assert_string_equal(run.told, "s");
	run_destroy(&run);
}

static void destroy_at_every_moment(struct world *world)
{
	static const struct {
		char event; // the event in whose handler it is destroyed; 0: before the first
		const char *told;
	} moments[] = {{0, ""}, {'s', "s"}, {'x', "sx"}, {'e', "sxe"}};
	for (size_t i = 0; i < ARRAY_LENGTH(moments); i++) {
		struct run run;
		run_start_shell(&run, world, "exit 0");
		run.destroy_at = moments[i].event;
		if (!run.destroy_at) {
			exec_destroy(run.exec);
			run.exec = NULL;
		}
		run_expect(&run, moments[i].told);
		world_run_for(world, 50);
		assert_string_equal(run.told, moments[i].told);
		assert_null(run.exec);
		run_destroy(&run);
	}
}

static void destroy_in_failed_is_safe(struct world *world)
{
	const char *argv[] = {"/nowhere/command", NULL};
	struct run run;
	run_start(&run, world, &(struct exec_spec){.argv = argv});
	run.destroy_at = 'f';
	run_expect(&run, "f");
	assert_null(run.exec);
	run_destroy(&run);
}

static void signals_after_the_end_are_harmless(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, "exit 0");
	run_expect(&run, "sxe");
	exec_signal_group(run.exec, SIGKILL);
	exec_kill_tree(run.exec);
	world_run_for(world, 20);
	assert_string_equal(run.told, "sxe");
	run_destroy(&run);
}

static const struct world_case cases[] = {
	{"a signal reaches the group", signal_reaches_the_group},
	{"a signal can be handled", signal_can_be_handled},
	{"no signal is ignored or blocked", no_signal_is_ignored_or_blocked},
	{"the tree dies, with daemons in their own session", tree_dies_with_daemons},
	{"the exit does not wait for daemons", exit_does_not_wait_for_daemons},
	{"a child may hold the output after the exit", child_may_hold_the_output},
	{"destroying kills silently", destroy_kills_silently},
	{"destroying is safe at every moment", destroy_at_every_moment},
	{"destroying is safe when it failed", destroy_in_failed_is_safe},
	{"signals after the end are harmless", signals_after_the_end_are_harmless},
};
const struct world_table kill_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
