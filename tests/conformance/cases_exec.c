/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/conformance/world.h"

static struct exec_spec shell_spec(const char *argv[4], const char *script)
{
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = NULL;
	return (struct exec_spec){.argv = argv};
}

static void write_stdin(const struct run *run, const char *text)
{
	assert_int_equal(write(run->in, text, strlen(text)), strlen(text));
}

static void bytes_before_started_are_kept(struct world *world)
{
	const char *argv[] = {"cat", NULL};
	struct exec_spec spec = {.argv = argv, .want_stdin = true};
	struct run run;
	run_start(&run, world, &spec);
	write_stdin(&run, "early\n");
	fd_close(&run.in);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_string_equal(sink_text(&run.out), "early\n");
	run_destroy(&run);
}

static void output_is_whole_after_exit(struct world *world)
{
	const char *argv[4];
	struct exec_spec spec = shell_spec(argv, "head -c 60000 /dev/zero; echo last");
	struct run run;
	run_start_unread(&run, world, &spec);
	run_expect(&run, "sxe");
	run_read(&run);
	world_run_until(world, &run.out.at_end);
	assert_int_equal(run.out.total, 60005);
	run_destroy(&run);
}

static void without_stdin_it_is_empty(struct world *world)
{
	const char *argv[] = {"cat", NULL};
	struct exec_spec spec = {.argv = argv};
	struct run run;
	run_start(&run, world, &spec);
	run_expect(&run, "sxe");
	assert_int_equal(run.status.code, 0);
	run_destroy(&run);
}

static void merged_stderr_is_interleaved(struct world *world)
{
	const char *argv[4];
	struct exec_spec spec = shell_spec(argv, "echo a; echo b >&2; echo c; echo d >&2");
	spec.merge_stderr = true;
	struct run run;
	run_start_unread(&run, world, &spec);
	assert_int_equal(exec_take_stderr(run.exec), -1);
	run_read(&run);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_string_equal(sink_text(&run.out), "a\nb\nc\nd\n");
	run_destroy(&run);
}

/* ---- large amounts of everything ---- */

struct source {
	struct run *run;
	unsigned long long left;
	unsigned long long sent;
	unsigned long long hash;
	ev_io io;
};

static void on_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct source *source = CONTAINER_OF(io, struct source, io);
	unsigned char bytes[65536];
	size_t want = source->left < sizeof(bytes) ? (size_t)source->left : sizeof(bytes);
	for (size_t i = 0; i < want; i++) {
		bytes[i] = (unsigned char)(((source->sent + i) * 2654435761ULL) >> 13);
	}
	ssize_t count = want > 0 ? write(source->run->in, bytes, want) : 0;
	if (count < 0) {
		assert_true(errno == EAGAIN || errno == EINTR);
		return;
	}
	for (ssize_t i = 0; i < count; i++) {
		source->hash = (source->hash ^ bytes[i]) * 0x100000001b3ULL;
	}
	source->sent += (unsigned long long)count;
	source->left -= (unsigned long long)count;
	if (source->left == 0) {
		ev_io_stop(loop, io);
		fd_close(&source->run->in);
	}
}

static void sixty_four_mebibytes_arrive_both_ways(struct world *world)
{
	enum { TOTAL = 64 << 20 };
	const char *argv[] = {"cat", NULL};
	struct exec_spec spec = {.argv = argv, .want_stdin = true};
	struct run run;
	run_start(&run, world, &spec);
	struct source source = {.run = &run, .left = TOTAL, .hash = 0xcbf29ce484222325ULL};
	ev_io_init(&source.io, on_writable, run.in, EV_WRITE);
	ev_io_start(world->loop, &source.io);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_true(run.out.total == TOTAL);
	assert_true(run.out.hash == source.hash);
	run_destroy(&run);
}

static void stderr_flows_while_stdout_is_unread(struct world *world)
{
	enum { TOTAL = 3 << 20 };
	const char *argv[4];
	struct exec_spec spec = shell_spec(argv, "head -c 3145728 /dev/zero >&2; echo done");
	struct run run;
	run_start_unread(&run, world, &spec);
	sink_open(&run.errors, world->loop, exec_take_stderr(run.exec));
	world_run_until(world, &run.errors.at_end);
	assert_int_equal(run.errors.total, TOTAL);
	sink_open(&run.out, world->loop, exec_take_stdout(run.exec));
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_string_equal(sink_text(&run.out), "done\n");
	run_destroy(&run);
}

static void stderr_comes_while_it_runs(struct world *world)
{
	struct run run;
	run_start_shell(&run, world, "echo err >&2; sleep 600");
	while (!strchr(sink_text(&run.errors), '\n')) {
		world_run_for(world, 10);
	}
	assert_string_equal(sink_text(&run.errors), "err\n");
	world_run_until(world, &run.has_started); // events may come by another way than output
	assert_string_equal(run.told, "s");
	run_destroy(&run);
}

static void unread_output_blocks_and_is_not_lost(struct world *world)
{
	const char *argv[4];
	struct exec_spec spec = shell_spec(argv, "head -c 67108864 /dev/zero");
	struct run run;
	run_start_unread(&run, world, &spec);
	run_expect(&run, "s");
	world_run_for(world, 200);
	assert_string_equal(run.told, "s");
	run_read(&run);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_int_equal(run.out.total, 67108864);
	run_destroy(&run);
}

static void closed_output_ends_the_writer(struct world *world)
{
	const char *argv[] = {"yes", NULL};
	struct exec_spec spec = {.argv = argv};
	struct run run;
	run_start_unread(&run, world, &spec);
	run_expect(&run, "s");
	int out = exec_take_stdout(run.exec);
	fd_close(&out);
	run_expect(&run, "sxe");
	assert_true(run.status.signal == SIGPIPE || run.status.code != 0);
	run_destroy(&run);
}

static void hundred_processes_at_once(struct world *world)
{
	enum { COUNT = 100 };
	struct run *runs = mem_alloc_zero(COUNT * sizeof(*runs));
	char script[64];
	for (int i = 0; i < COUNT; i++) {
		snprintf(script, sizeof(script), "cat; echo %d; exit %d", i, i);
		const char *argv[4];
		struct exec_spec spec = shell_spec(argv, script);
		spec.want_stdin = true;
		run_start(&runs[i], world, &spec);
	}
	for (int i = 0; i < COUNT; i++) {
		run_expect(&runs[i], "s");
		fd_close(&runs[i].in);
	}
	for (int i = 0; i < COUNT; i++) {
		run_expect(&runs[i], "sxe");
		world_run_until(world, &runs[i].out.at_end);
		assert_int_equal(runs[i].status.code, i);
		assert_int_equal(strtol(sink_text(&runs[i].out), NULL, 10), i);
		run_destroy(&runs[i]);
	}
	free(runs);
}

static void environment_is_exactly_what_was_asked(struct world *world)
{
	const char *argv[] = {"env", "-0", NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", "NEWLINE=line one\nline two\n",
		"EMPTY=", "QUOTE='\"$x`", NULL};
	struct exec_spec spec = {.argv = argv, .env = env};
	struct run run;
	run_start(&run, world, &spec);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	size_t expected = 0;
	struct span told = buf_span(&run.out.text);
	for (size_t i = 0; env[i]; i++) {
		assert_non_null(memmem(told.data, told.len, env[i], strlen(env[i]) + 1));
		expected += strlen(env[i]) + 1;
	}
	const char *mark = memmem(told.data, told.len, "ACP_BROKER_RUN=", 15);
	if (world->subject->is_marked) {
		assert_non_null(mark);
		expected += strlen(mark) + 1;
	}
	const char *folder = memmem(told.data, told.len, "PWD=", 4);
	if (world->subject->tells_folder) {
		assert_non_null(folder);
		assert_string_equal(folder + strlen("PWD="), sandbox_home(world->sandbox));
		expected += strlen(folder) + 1;
	}
	assert_int_equal(told.len, expected);
	run_destroy(&run);
}

static void environment_of_the_sandbox_is_the_default(struct world *world)
{
	const char *const *env = sandbox_environment(world->sandbox);
	bool has_path = false;
	for (; *env; env++) {
		has_path = has_path || strncmp(*env, "PATH=", 5) == 0;
	}
	assert_true(has_path);
	const char *argv[] = {"env", NULL};
	struct exec_spec spec = {.argv = argv};
	struct run run;
	run_start(&run, world, &spec);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_non_null(strstr(sink_text(&run.out), "PATH="));
	run_destroy(&run);
}

/* ---- processes that fail to start ---- */

static void expect_failed(const struct world *world, const struct exec_spec *spec,
	enum error_code code, const char *words)
{
	struct run run;
	run_start(&run, world, spec);
	run_expect(&run, "f");
	world_run_until(world, &run.out.at_end);
	world_run_until(world, &run.errors.at_end);
	if (run.err.code != code || !strstr(run.err.text, words)) {
		fail_msg("error %d: %s", (int)run.err.code, run.err.text);
	}
	world_run_for(world, 20);
	assert_string_equal(run.told, "f");
	run_destroy(&run);
}

static void missing_interpreter_is_denied(struct world *world)
{
	if (world->is_under_valgrind) {
		return; // it executes programs in its own way
	}
	world_shell(world, "echo '#!/nowhere/interpreter' > script && chmod 755 script");
	const char *argv[] = {"./script", NULL};
	struct exec_spec spec = {.argv = argv, .cwd = world->root};
	expect_failed(world, &spec, ERROR_DENIED, "/nowhere/interpreter");
}

/* The resolved folder may have been replaced since. */
static void a_link_behind_the_root_is_refused(struct world *world)
{
	const char *argv[] = {"sh", "-c", "cat mark", NULL};
	char cwd[PATH_MAX];
	world_shell(
		world, "mkdir -p a/b && echo inside > a/b/mark && ln -s a/b out && ln -s a way");
	struct exec_spec spec = {.argv = argv, .cwd = cwd, .cwd_root = strlen(world->root)};
	snprintf(cwd, sizeof(cwd), "%.4000s/a/b", world->root);
	struct run run;
	run_start(&run, world, &spec);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_string_equal(sink_text(&run.out), "inside\n");
	run_destroy(&run);
	static const char *const swapped[] = {"out", "way/b"};
	for (size_t i = 0; i < ARRAY_LENGTH(swapped); i++) {
		snprintf(cwd, sizeof(cwd), "%.4000s/%s", world->root, swapped[i]);
		expect_failed(world, &spec, ERROR_DENIED, cwd);
	}
}

static const struct world_case cases[] = {
	{"bytes written before started are kept", bytes_before_started_are_kept},
	{"output can be read whole after the exit", output_is_whole_after_exit},
	{"without stdin it is empty", without_stdin_it_is_empty},
	{"merged stderr is interleaved as written", merged_stderr_is_interleaved},
	{"64 MiB arrive intact both ways", sixty_four_mebibytes_arrive_both_ways},
	{"3 MiB of stderr flow while stdout is unread", stderr_flows_while_stdout_is_unread},
	{"stderr comes while it runs", stderr_comes_while_it_runs},
	{"unread output blocks the writer and is not lost", unread_output_blocks_and_is_not_lost},
	{"closed output ends the writer", closed_output_ends_the_writer},
	{"a hundred processes run at once", hundred_processes_at_once},
	{"the environment is exactly what was asked", environment_is_exactly_what_was_asked},
	{"the sandbox's environment is the default", environment_of_the_sandbox_is_the_default},
	{"a missing interpreter is denied", missing_interpreter_is_denied},
	{"a link behind the root of the directory is refused", a_link_behind_the_root_is_refused},
};
const struct world_table exec_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
