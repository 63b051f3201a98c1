/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/conformance/world.h"

static void expect_neither_read_nor_written(const struct world *world, const char *name)
{
	struct outcome outcome;
	file_read_wait(world, world_path(world, name), 10, &outcome);
	expect_refused(&outcome, "not a regular file");
	outcome_finish(&outcome);
	file_write_wait(world, world_path(world, name), SPAN_LITERAL("x"), &outcome);
	expect_refused(&outcome, "not a regular file");
}

/* Users who may make devices are refused; others have none to read. */
static void devices_and_sockets_are_not_read(struct world *world)
{
	world_shell(world, "python3 -c 'import socket; socket.socket(socket.AF_UNIX)"
			   ".bind(\"socket\")' 2>/dev/null || mkfifo socket");
	expect_neither_read_nor_written(world, "socket");
	if (strcmp(world_shell(world, "mknod zero c 1 5 2>/dev/null && echo made || echo no"),
		    "made") == 0) {
		expect_neither_read_nor_written(world, "zero");
	}
}

/* ---- writing ---- */

static void writes_new_files_and_their_folders(struct world *world)
{
	expect_written(world, world_path(world, "new"), "content");
	expect_content(world, world_path(world, "new"), "content");
	expect_written(world, world_path(world, "a/b/c/new"), "deep");
	assert_string_equal(world_shell(world, "cat a/b/c/new"), "deep");
	expect_written(world, world_path(world, "empty"), "");
	assert_string_equal(world_shell(world, "stat -c %%s empty"), "0");
	assert_string_equal(world_shell(world, "ls -A . a a/b a/b/c | grep -c tmp || true"), "0");
}

static void new_files_get_the_usual_mode(struct world *world)
{
	world_shell(world, "umask > mask; : > usual");
	expect_written(world, world_path(world, "new"), "x");
	struct outcome usual;
	struct outcome made;
	file_stat_wait(world, world_path(world, "usual"), &usual);
	file_stat_wait(world, world_path(world, "new"), &made);
	assert_int_equal(made.status.st_mode, usual.status.st_mode);
}

static void writes_of_one_path_are_in_order(struct world *world)
{
	enum { COUNT = 30 };
	int count = world_many(world, COUNT);
	struct outcome outcomes[COUNT] = {0};
	char text[16];
	for (int i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%d", i);
		assert_non_null(sandbox_write_file(world->sandbox, world_path(world, "file"),
			span_of(text), outcome_on_done, &outcomes[i]));
	}
	for (int i = 0; i < count; i++) {
		world_run_until(world, &outcomes[i].is_done);
		assert_true(outcomes[i].is_ok);
		for (int k = i + 1; k < count && !outcomes[i + 1].is_done; k++) {
			assert_false(outcomes[k].is_done);
		}
	}
	expect_content(world, world_path(world, "file"), text);
}

static void a_cancelled_write_lets_the_next_go_on(struct world *world)
{
	enum { COUNT = 10 };
	struct outcome outcomes[COUNT] = {0};
	struct file_op *ops[COUNT];
	char text[16];
	for (int i = 0; i < COUNT; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ops[i] = sandbox_write_file(world->sandbox, world_path(world, "file"),
			span_of(text), outcome_on_done, &outcomes[i]);
	}
	for (int i = 0; i + 1 < COUNT; i++) {
		file_op_cancel(ops[i]);
	}
	world_run_until(world, &outcomes[COUNT - 1].is_done);
	world_run_for(world, 20);
	for (int i = 0; i + 1 < COUNT; i++) {
		assert_false(outcomes[i].is_done);
	}
	expect_content(world, world_path(world, "file"), "9");
}

static void writes_large_files(struct world *world)
{
	enum { SIZE = 8 << 20 };
	char *content = mem_alloc(SIZE);
	memset(content, 'z', SIZE);
	struct outcome outcome;
	file_write_wait(world, world_path(world, "large"), (struct span){content, SIZE}, &outcome);
	assert_true(outcome.is_ok);
	assert_string_equal(
		world_shell(world, "tr -d z < large | wc -c; stat -c %%s large"), "0\n8388608");
	file_read_wait(world, world_path(world, "large"), SIZE, &outcome);
	assert_true(outcome.is_ok);
	assert_int_equal(outcome.content.len, SIZE);
	assert_memory_equal(buf_span(&outcome.content).data, content, SIZE);
	outcome_finish(&outcome);
	free(content);
}

static void readers_never_see_half_a_write(struct world *world)
{
	world_shell(world, "head -c 400000 /dev/zero | tr '\\0' a > file");
	struct run run;
	run_start_shell(&run, world,
		"for i in $(seq 150); do c=$(head -c 1 file); n=$(tr -d b < file | wc -c); "
		"m=$(stat -c %s file); [ $m = 400000 ] || echo short $m; "
		"[ $n = 0 ] || [ $n = 400000 ] || echo mixed $n; done; echo end");
	char *content = mem_alloc(400000);
	for (int i = 0; !run.has_exited; i++) {
		memset(content, i % 2 ? 'a' : 'b', 400000);
		struct outcome outcome;
		file_write_wait(
			world, world_path(world, "file"), (struct span){content, 400000}, &outcome);
		assert_true(outcome.is_ok);
	}
	free(content);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_string_equal(sink_text(&run.out), "end\n");
	run_destroy(&run);
}

static void many_operations_at_once(struct world *world)
{
	enum { COUNT = 300 };
	int count = world_many(world, COUNT);
	world_shell(world, "echo same > file");
	struct outcome *outcomes = mem_alloc_zero(COUNT * sizeof(*outcomes));
	for (int i = 0; i < count; i++) {
		assert_non_null(sandbox_read_file(world->sandbox, world_path(world, "file"), 100,
			outcome_on_read, &outcomes[i]));
	}
	for (int i = 0; i < count; i++) {
		world_run_until(world, &outcomes[i].is_done);
		assert_true(outcomes[i].is_ok);
		assert_int_equal(outcomes[i].content.len, 5);
		outcome_finish(&outcomes[i]);
	}
	free(outcomes);
}

static void cancelled_operations_are_silent(struct world *world)
{
	enum { COUNT = 40 };
	world_shell(world, "echo x > file");
	struct outcome outcomes[COUNT] = {0};
	struct file_op *ops[COUNT];
	for (int i = 0; i < COUNT; i++) {
		ops[i] = sandbox_read_file(world->sandbox, world_path(world, "file"), 100,
			outcome_on_read, &outcomes[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		file_op_cancel(ops[i]);
	}
	file_op_cancel(NULL);
	world_run_for(world, 50);
	for (int i = 0; i < COUNT; i++) {
		assert_false(outcomes[i].is_done);
	}
}

static const struct world_case cases[] = {
	{"devices and sockets are not read", devices_and_sockets_are_not_read},
	{"new files and their folders are written", writes_new_files_and_their_folders},
	{"new files get the usual mode", new_files_get_the_usual_mode},
	{"writes of one path are done in order", writes_of_one_path_are_in_order},
	{"a cancelled write lets the next go on", a_cancelled_write_lets_the_next_go_on},
	{"large files are written and read", writes_large_files},
	{"readers never see half a write", readers_never_see_half_a_write},
	{"many operations run at once", many_operations_at_once},
	{"cancelled operations are silent", cancelled_operations_are_silent},
};
const struct world_table file_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
