/* SPDX-License-Identifier: MIT */
#include "tests/support/fake/fake.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { DEADLINE_MS = 60000 };

static struct ev_loop *loop;
static struct provider_context context;
static struct provider *provider;
static struct settings settings;
static char folder[] = "/tmp/test-fake-XXXXXX";

/* What was raised: r(eady), F(ailed) of the sandbox; s, f, x, e, l of a process; d(one). */
struct record {
	char events[16];
	struct error err;
};

static void note(struct record *record, char event, const struct error *err)
{
	size_t len = strlen(record->events);
	assert_true(len + 1 < sizeof(record->events));
	record->events[len] = event;
	if (err) {
		record->err = *err;
	}
}

static void on_ready(void *data)
{
	note(data, 'r', NULL);
}

static void on_failed(void *data, const struct error *err)
{
	note(data, 'F', err);
}

static const struct sandbox_listener sandbox_listener = {
	.on_ready = on_ready, .on_failed = on_failed};

static void on_started(void *data)
{
	note(data, 's', NULL);
}

static void on_exec_failed(void *data, const struct error *err)
{
	note(data, 'f', err);
}

static void on_exited(void *data, struct process_status status)
{
	note(data, 'x', NULL);
}

static void on_emptied(void *data)
{
	note(data, 'e', NULL);
}

static void on_lost(void *data, const struct error *err)
{
	note(data, 'l', err);
}

static const struct exec_listener exec_listener = {
	.on_started = on_started,
	.on_failed = on_exec_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
};

static void on_done(void *data, const struct error *err)
{
	note(data, err ? 'f' : 'd', err);
}

static void on_read(void *data, struct buf *content, const struct error *err)
{
	note(data, err ? 'f' : 'd', err);
}

static void on_tick(struct ev_loop *ticking_loop, ev_timer *timer, int events)
{
}

static void run_until(const struct record *record, const char *events)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.002, 0.002);
	ev_timer_start(loop, &tick);
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (strcmp(record->events, events) != 0 && clock_now_ms() < deadline_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_string_equal(record->events, events);
}

static struct sandbox *prepare(struct record *record)
{
	struct sandbox_request request = {.profile = "test", .settings = &settings};
	struct error err;
	struct sandbox *sandbox =
		sandbox_prepare(provider, &request, &sandbox_listener, record, &err);
	assert_non_null(sandbox);
	return sandbox;
}

static int set_up(void **state)
{
	provider = fake_provider_create(&context);
	settings_init(&settings);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(fake_sandbox_count(provider), 0);
	provider_destroy(provider);
	settings_finish(&settings);
	return 0;
}

static void test_outcomes_come_late(void **state)
{
	fake_behaviour(provider)->delay_ms = 60;
	struct record record = {0};
	ev_now_update(loop); // a timer counts from the loop's time
	long long start_ms = clock_now_ms();
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "r");
	assert_true(clock_now_ms() - start_ms >= 50);
	assert_int_equal(fake_sandbox_count(provider), 1);
	sandbox_close(sandbox);
}

static void test_prepare_fails_on_demand(void **state)
{
	fake_behaviour(provider)->failures[FAKE_PREPARE] = 1;
	error_set_reason(&fake_behaviour(provider)->failure[FAKE_PREPARE], ERROR_TIMEOUT, "SLOW",
		"too slow");
	struct record record = {0};
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "F");
	assert_int_equal(record.err.code, ERROR_TIMEOUT);
	assert_string_equal(record.err.reason, "SLOW");
	sandbox_close(sandbox);
	struct record again = {0};
	sandbox = prepare(&again); // one failure was asked for
	run_until(&again, "r");
	sandbox_close(sandbox);
}

static void test_processes_fail_on_demand(void **state)
{
	struct record record = {0};
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "r");
	fake_behaviour(provider)->failures[FAKE_EXEC] = 1;
	fake_behaviour(provider)->failures[FAKE_START] = 1;
	const char *argv[] = {"true", NULL};
	struct exec_spec spec = {.argv = argv};
	struct error err;
	struct record run = {0};
	assert_null(sandbox_exec(sandbox, &spec, &exec_listener, &run, &err));
	assert_string_equal(err.text, "fake: exec fails");
	struct exec *exec = sandbox_exec(sandbox, &spec, &exec_listener, &run, &err);
	assert_non_null(exec);
	run_until(&run, "f");
	assert_string_equal(run.err.text, "fake: start fails");
	exec_destroy(exec);
	struct record works = {0};
	exec = sandbox_exec(sandbox, &spec, &exec_listener, &works, &err);
	assert_non_null(exec);
	run_until(&works, "sxe");
	exec_destroy(exec);
	sandbox_close(sandbox);
}

static void test_file_operations_fail_on_demand_and_stay_in_order(void **state)
{
	struct record record = {0};
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "r");
	struct record root = {0};
	sandbox_add_root(sandbox, folder, on_done, &root);
	run_until(&root, "d");
	fake_behaviour(provider)->delay_ms = 5;
	fake_behaviour(provider)->failures[FAKE_WRITE] = 1;
	char path[64];
	snprintf(path, sizeof(path), "%s/file", folder);
	struct record writes = {0};
	for (int i = 0; i < 4; i++) {
		sandbox_write_file(sandbox, path, SPAN_LITERAL("x"), on_done, &writes);
	}
	run_until(&writes, "fddd");
	assert_string_equal(writes.err.text, "fake: write fails");
	fake_behaviour(provider)->failures[FAKE_READ] = 1;
	struct record reads = {0};
	struct file_op *cancelled = sandbox_read_file(sandbox, path, 10, on_read, &reads);
	sandbox_read_file(sandbox, path, 10, on_read, &reads);
	file_op_cancel(cancelled);
	run_until(&reads, "d");
	sandbox_close(sandbox);
	unlink(path);
}

static void test_a_lost_link_is_told_to_all(void **state)
{
	struct record record = {0};
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "r");
	const char *argv[] = {"sleep", "600", NULL};
	struct exec_spec spec = {.argv = argv};
	struct error err;
	struct record run = {0};
	struct exec *exec = sandbox_exec(sandbox, &spec, &exec_listener, &run, &err);
	assert_non_null(exec);
	run_until(&run, "s");
	fake_lose(provider, "link down");
	assert_string_equal(run.events, "s");
	run_until(&run, "sl");
	run_until(&record, "rF");
	assert_string_equal(run.err.text, "link down");
	assert_string_equal(record.err.text, "link down");
	exec_kill_tree(exec);
	exec_destroy(exec);
	sandbox_close(sandbox);
}

static void test_keys_of_a_profile_win(void **state)
{
	char runtime[64];
	snprintf(runtime, sizeof(runtime), "%s/runtime", folder);
	settings_add(&settings, "runtime-root", runtime, "test");
	settings_add(&settings, "roots-max", "1", "test");
	settings_add(&settings, "fail", "read", "test");
	fake_behaviour(provider)->roots_max = 5;
	struct record record = {0};
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "r");
	assert_true(sandbox_capabilities(sandbox)->isolated);
	assert_true(sandbox_capabilities(sandbox)->maps_paths);
	assert_false(sandbox_capabilities(sandbox)->shares_loopback);
	assert_false(sandbox_capabilities(sandbox)->many_roots);
	assert_string_equal(sandbox_home(sandbox), runtime);
	struct record roots = {0};
	sandbox_add_root(sandbox, folder, on_done, &roots);
	run_until(&roots, "d");
	sandbox_add_root(sandbox, "/tmp", on_done, &roots);
	run_until(&roots, "df");
	assert_int_equal(roots.err.code, ERROR_UNAVAILABLE);
	char inside[80];
	snprintf(inside, sizeof(inside), "%s/0", runtime);
	assert_string_equal(sandbox_root_at(sandbox, 0)->runtime, inside);
	struct record reads = {0};
	sandbox_read_file(sandbox, inside, 10, on_read, &reads);
	run_until(&reads, "f");
	assert_string_equal(reads.err.text, "fake: read fails");
	sandbox_close(sandbox);
	rmdir(inside);
	rmdir(runtime);
}

static void test_reads_are_short(void **state)
{
	fake_behaviour(provider)->read_chunk = 100;
	struct record record = {0};
	struct sandbox *sandbox = prepare(&record);
	run_until(&record, "r");
	const char *argv[] = {"head", "-c", "3000", "/dev/zero", NULL};
	struct exec_spec spec = {.argv = argv};
	struct error err;
	struct record run = {0};
	struct exec *exec = sandbox_exec(sandbox, &spec, &exec_listener, &run, &err);
	assert_non_null(exec);
	run_until(&run, "sxe");
	int out = exec_take_stdout(exec);
	size_t total = 0;
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	for (ssize_t count = -1; count != 0 && clock_now_ms() < deadline_ms;) {
		char bytes[4096];
		count = read(out, bytes, sizeof(bytes));
		assert_true(count <= 100);
		total += count > 0 ? (size_t)count : 0;
		ev_run(loop, EVRUN_NOWAIT);
	}
	assert_int_equal(total, 3000);
	close(out);
	exec_destroy(exec);
	sandbox_close(sandbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_outcomes_come_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_prepare_fails_on_demand, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_processes_fail_on_demand, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_file_operations_fail_on_demand_and_stay_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_lost_link_is_told_to_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keys_of_a_profile_win, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reads_are_short, set_up, tear_down),
	};
	static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	struct error err;
	signal(SIGPIPE, SIG_IGN);
	struct spawner *spawner = spawner_create(&err);
	if (!spawner || !mkdtemp(folder)) {
		return 1;
	}
	loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(spawner, loop);
	context = (struct provider_context){.loop = loop,
		.spawner = spawner,
		.pool = pool_create(loop),
		.environment = environment};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	pool_destroy(context.pool);
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	rmdir(folder);
	return failed;
}
