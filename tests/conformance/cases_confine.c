/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "tests/conformance/world.h"

/* A folder beside the root, with a secret in it. */
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

static void relative_paths_are_refused(struct world *world)
{
	world_shell(world, "echo x > file");
	static const char *const paths[] = {"file", "./file", "", "~/file"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		expect_all_refused(world, paths[i]);
		struct outcome outcome;
		file_read_wait(world, paths[i], 100, &outcome);
		expect_refused(&outcome, "not absolute");
		outcome_finish(&outcome);
	}
}

static void dots_inside_the_root_work(struct world *world)
{
	world_shell(world, "mkdir -p a/b; echo x > file; ln -s a/b link; echo y > a/file");
	expect_content(world, world_path(world, "a/../file"), "x\n");
	expect_content(world, world_path(world, "a/b/../../file"), "x\n");
	expect_content(world, world_path(world, "./a/./../file"), "x\n");
	expect_content(world, world_path(world, "link/../file"), "y\n"); // as the kernel reads it
	char path[PATH_MAX];
	const char *name = strrchr(world->root, '/') + 1;
	snprintf(path, sizeof(path), "%.4000s/../%s/file", world->root, name);
	expect_content(world, path, "x\n"); // out and in again
}

/* ---- links ---- */

static void links_inside_work(struct world *world)
{
	world_shell(world, "mkdir -p a/b; echo x > a/file; d=$(pwd); "
			   "ln -s a/file relative; ln -s \"$d/a/file\" absolute; "
			   "ln -s \"$d/a\" folder; ln -s ../file a/b/up; ln -s relative chain; "
			   "ln -s \"../$(basename \"$d\")/a/file\" around");
	static const char *const names[] = {
		"relative", "absolute", "folder/file", "a/b/up", "chain", "folder/b/up", "around"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_content(world, world_path(world, names[i]), "x\n");
		struct outcome outcome;
		file_resolve_wait(world, world_path(world, names[i]), &outcome);
		assert_true(outcome.is_ok);
		assert_string_equal(outcome.path, world_path(world, "a/file"));
	}
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

static void circles_are_refused(struct world *world)
{
	world_shell(world, "ln -s b a; ln -s a b; ln -s self/x self");
	struct outcome outcome;
	file_read_wait(world, world_path(world, "a"), 100, &outcome);
	expect_refused(&outcome, "too many links");
	outcome_finish(&outcome);
	file_write_wait(world, world_path(world, "self"), SPAN_LITERAL("x"), &outcome);
	assert_false(outcome.is_ok);
}

static void writes_follow_links_inside(struct world *world)
{
	world_shell(world, "mkdir a; echo old > a/file; chmod 600 a/file; d=$(pwd); "
			   "ln -s \"$d/a/file\" link; ln -s a/new dangling");
	expect_written(world, world_path(world, "link"), "new\n");
	assert_string_equal(world_shell(world, "cat a/file; stat -c %%a a/file; readlink link"),
		world_shell(world, "printf 'new\\n600\\n%%s' \"$(pwd)/a/file\""));
	expect_written(world, world_path(world, "dangling"), "made\n");
	assert_string_equal(world_shell(world, "cat a/new; readlink dangling"), "made\na/new");
}

/* ---- resolving ---- */

static void expect_resolved(const struct world *world, const char *name, const char *expected)
{
	struct outcome outcome;
	file_resolve_wait(world, world_path(world, name), &outcome);
	if (!outcome.is_ok) {
		fail_msg("%s", outcome.err.text);
	}
	assert_string_equal(outcome.path, world_path(world, expected));
}

static void resolve_keeps_what_is_missing(struct world *world)
{
	world_shell(world, "mkdir -p a/b; ln -s a link; ln -s missing dangling");
	expect_resolved(world, "a/b/../new", "a/new");
	expect_resolved(world, "link/new", "a/new");
	expect_resolved(world, "link/new/er/file", "a/new/er/file");
	expect_resolved(world, "dangling", "missing");
	expect_resolved(world, "a//b/.", "a/b");
	struct outcome outcome;
	file_resolve_wait(world, world_path(world, "missing/../../outside"), &outcome);
	assert_false(outcome.is_ok);
	file_resolve_wait(world, world->root, &outcome);
	assert_true(outcome.is_ok);
	assert_string_equal(outcome.path, world->root);
}

static void overlong_paths_are_refused(struct world *world)
{
	char path[FILE_PATH_MAX + 100];
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	struct outcome outcome;
	file_read_wait(world, path, 100, &outcome);
	expect_error(&outcome, ERROR_LIMIT, "too long");
	outcome_finish(&outcome);
	char name[300];
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	file_write_wait(world, world_path(world, name), SPAN_LITERAL("x"), &outcome);
	assert_false(outcome.is_ok);
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
	/* Each of what was raced for, once it stands still. */
	struct outcome still;
	world_shell(world, "rm -rf swap; ln -s ../outside swap");
	file_read_wait(world, world_path(world, "swap/secret"), 100, &still);
	expect_refused(&still, "");
	world_shell(world, "rm swap; mkdir swap; echo inside > swap/secret");
	expect_content(world, world_path(world, "swap/secret"), "inside\n");
}

static const struct conformance_case cases[] = {
	{"names out of the root are refused", names_out_of_the_root_are_refused},
	{"a longer name is another folder", a_longer_name_is_another_folder},
	{"relative paths are refused", relative_paths_are_refused},
	{"dots inside the root work", dots_inside_the_root_work},
	{"links inside the root work", links_inside_work},
	{"links out of the root are refused", links_out_are_refused},
	{"circles of links are refused", circles_are_refused},
	{"writes follow links inside the root", writes_follow_links_inside},
	{"resolving keeps what is missing", resolve_keeps_what_is_missing},
	{"overlong paths are refused", overlong_paths_are_refused},
	{"links swapped meanwhile lead nowhere", swapped_links_lead_nowhere},
};
const struct conformance_table confine_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
