/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "tests/conformance/world.h"

/* A folder beside the root, containing a secret. */
static void make_outside(const struct world *world)
{
	world_shell(world, "mkdir -p ../outside && echo secret > ../outside/secret");
}

static void expect_all_refused(const struct world *world, const char *path)
{
	struct outcome outcome;
	file_read_wait(world, path, 100, &outcome);
	expect_refused(&outcome, path);
	outcome_finish(&outcome);
	file_write_wait(world, path, SPAN_LITERAL("overwritten"), &outcome);
	expect_refused(&outcome, path);
	file_stat_wait(world, path, &outcome);
	expect_refused(&outcome, path);
	file_resolve_wait(world, path, &outcome);
	expect_refused(&outcome, path);
}

static void expect_secret_untouched(const struct world *world)
{
	assert_string_equal(
		world_shell(world, "cat ../outside/secret; ls ../outside | wc -l"), "secret\n1");
}

static void names_out_of_the_root_are_refused(struct world *world)
{
	make_outside(world);
	world_shell(world, "mkdir folder");
	static const char *const names[] = {"../outside/secret", "folder/../../outside/secret",
		"..", "../", "folder/../..", "../../../../../../../../etc/passwd"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_all_refused(world, world_path(world, names[i]));
	}
	static const char *const paths[] = {
		"/etc/passwd", "/", "/dev/null", "/proc/self/environ", "/nowhere/at/all", "/.."};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		expect_all_refused(world, paths[i]);
	}
	expect_secret_untouched(world);
}

static void a_longer_name_is_another_folder(struct world *world)
{
	char path[PATH_MAX];
	world_shell(world, "d=$(pwd); mkdir \"$d-other\" && echo x > \"$d-other/file\"");
	snprintf(path, sizeof(path), "%.4000s-other/file", world->root);
	expect_all_refused(world, path);
	world_shell(world, "d=$(pwd); rm -r \"$d-other\"");
}

static void links_out_are_refused(struct world *world)
{
	make_outside(world);
	world_shell(world, "mkdir a; d=$(cd ../outside && pwd); ln -s ../outside/secret relative; "
			   "ln -s \"$d/secret\" absolute; ln -s \"$d\" folder; "
			   "ln -s ../folder a/through; ln -s /proc/self/root proc; "
			   "ln -s /proc/self/cwd cwd; ln -s / all; ln -s \"$d/new\" dangling");
	static const char *const names[] = {"relative", "absolute", "folder/secret", "folder/new",
		"a/through/secret", "proc/etc/passwd", "cwd", "all/etc/passwd", "all", "dangling",
		"folder/sub/new"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_all_refused(world, world_path(world, names[i]));
	}
	expect_secret_untouched(world);
}

/* ---- races ---- */

static void swapped_links_lead_nowhere(struct world *world)
{
	make_outside(world);
	world_shell(world, "mkdir real; echo inside > real/secret");
	struct run run;
	run_swapper(&run, world, "../outside");
	int refused = 0;
	int read_inside = 0;
	long long end_ms = clock_now_ms() + 2000;
	for (int i = 0; i < 4000 && clock_now_ms() < end_ms; i++) {
		struct outcome outcome;
		file_read_wait(world, world_path(world, "swap/secret"), 100, &outcome);
		if (outcome.is_ok) {
			assert_int_equal(outcome.content.len, strlen("inside\n"));
			assert_memory_equal(buf_span(&outcome.content).data, "inside\n", 7);
			read_inside++;
		} else {
			refused += outcome.err.code == ERROR_DENIED;
		}
		outcome_finish(&outcome);
	}
	end_ms = clock_now_ms() + 1000;
	for (int i = 0; i < 300 && clock_now_ms() < end_ms; i++) {
		struct outcome outcome;
		file_write_wait(world, world_path(world, "swap/secret"), SPAN_LITERAL("inside\n"),
			&outcome);
	}
	exec_kill_tree(run.exec);
	run_expect(&run, "sxe");
	run_destroy(&run);
	assert_true(refused + read_inside > 0);
	expect_secret_untouched(world);
	/* The result of each attempt once the race has ended. */
	struct outcome still;
	world_shell(world, "rm -rf swap; ln -s ../outside swap");
	file_read_wait(world, world_path(world, "swap/secret"), 100, &still);
	expect_refused(&still, "");
	world_shell(world, "rm swap; mkdir swap; echo inside > swap/secret");
	expect_content(world, world_path(world, "swap/secret"), "inside\n");
}

static const struct world_case cases[] = {
	{"names out of the root are refused", names_out_of_the_root_are_refused},
	{"a longer name is another folder", a_longer_name_is_another_folder},
	{"links out of the root are refused", links_out_are_refused},
	{"links swapped meanwhile lead nowhere", swapped_links_lead_nowhere},
};
const struct world_table confine_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
