/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <signal.h>

#include "tests/unit/process_record.h"

static void test_signal_reaches_the_group(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "sleep 60 & echo $!; wait");
	run_until(&record, "s");
	pid_t child = read_pid(out);
	process_signal(record.process, SIGTERM);
	run_until(&record, "sxe");
	assert_int_equal(record.status.signal, SIGTERM);
	assert_false(is_alive(child));
	close(out);
	process_destroy(record.process);
}

static void test_signal_before_started_is_not_lost(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "sleep 60");
	process_signal(record.process, SIGKILL);
	run_until(&record, "sxe");
	assert_int_equal(record.status.signal, SIGKILL);
	close(out);
	process_destroy(record.process);
}

static void test_emptied_waits_for_the_last_descendant(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "(setsid sh -c 'echo $$; exec sleep 60' &) ; exit 3");
	run_until(&record, "sx");
	pid_t daemon = read_pid(out);
	run_for(50);
	assert_string_equal(record.events, "sx");
	assert_true(is_alive(daemon));
	process_kill_tree(record.process);
	process_kill_tree(record.process);
	run_until(&record, "sxe");
	assert_false(is_alive(daemon));
	assert_int_equal(record.status.code, 3);
	close(out);
	process_destroy(record.process);
}

static void test_kill_tree_ends_what_ignores_signals(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; "
				       "echo $$; sleep 60; sleep 60' & "
				       "sleep 60; sleep 60");
	run_until(&record, "s");
	pid_t other = read_pid(out);
	process_kill_tree(record.process);
	run_until(&record, "sxe");
	assert_int_equal(record.status.signal, SIGKILL);
	assert_false(is_alive(other));
	close(out);
	process_destroy(record.process);
}

static void test_kill_tree_ends_stopped_processes(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "sleep 60 & echo $!; kill -STOP $!; kill -STOP $$");
	run_until(&record, "s");
	pid_t child = read_pid(out);
	process_kill_tree(record.process);
	run_until(&record, "sxe");
	assert_false(is_alive(child));
	close(out);
	process_destroy(record.process);
}

static void test_destroy_ends_the_tree_silently(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "setsid sleep 60 & echo $!; sleep 60");
	run_until(&record, "s");
	pid_t child = read_pid(out);
	process_destroy(record.process);
	assert_ends(record.pid);
	assert_ends(child);
	assert_string_equal(record.events, "s");
	close(out);
}

static void test_destroy_before_started_ends_it_too(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "sleep 60");
	process_destroy(record.process);
	char text[8];
	assert_int_equal(read_all(out, text, sizeof(text)), 0); // ends when its holder has ended
	run_for(20);
	assert_string_equal(record.events, "");
}

static void test_process_may_be_destroyed_in_its_handlers(void **state)
{
	struct record starting = {.destroy_at_start = true};
	int out = start_shell(&starting, "exit 0");
	run_until(&starting, "s");
	run_for(50);
	assert_string_equal(starting.events, "s");
	close(out);
	struct record exiting = {.destroy_at_exit = true};
	out = start_shell(&exiting, "exit 0");
	run_until(&exiting, "sx");
	run_for(50);
	assert_string_equal(exiting.events, "sx");
	close(out);
	process_destroy(NULL);
}

static void test_status_text_names_the_signal(void **state)
{
	char text[64];
	assert_string_equal(
		process_status_text((struct process_status){.code = 3}, text, sizeof(text)),
		"exited with status 3");
	assert_string_equal(
		process_status_text((struct process_status){.signal = SIGSEGV}, text, sizeof(text)),
		"was killed by SIGSEGV");
}

/* ---- processes that try to escape ---- */

/*
 * A process that keeps moving on to another one, in another session: its child goes on, and it
 * ends.
 */
static int run_away(void)
{
	enum { GENERATIONS_MAX = 1000000 }; // a minute or more, should nobody catch it
	for (int i = 0; i < GENERATIONS_MAX; i++) {
		pid_t pid = fork();
		if (pid != 0) {
			_exit(pid < 0);
		}
		setsid();
	}
	return 0;
}

static void start_runner(struct record *record)
{
	static char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(len > 0);
	self[len] = '\0';
	const char *argv[] = {self, "run-away", NULL};
	close(start(record, argv, NULL, NULL));
	run_until(record, "sx");
}

static void test_kill_tree_catches_a_runner(void **state)
{
	struct record record = {0};
	start_runner(&record);
	process_kill_tree(record.process);
	run_until(&record, "sxe");
	process_destroy(record.process);
}

static void test_destroy_catches_runners(void **state)
{
	struct record records[3] = {0};
	for (int i = 0; i < 3; i++) {
		start_runner(&records[i]);
	}
	for (int i = 0; i < 3; i++) {
		process_destroy(records[i].process);
	}
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	size_t left = 1;
	while (left > 0 && clock_now_ms() < deadline_ms) {
		struct tree tree = {0};
		assert_true(tree_scan(&tree, NULL));
		left = tree_mark_below(&tree, getpid(), NULL, 0) - 1; // less the spawner
		tree_finish(&tree);
		run_for(10);
	}
	assert_int_equal(left, 0);
}

static void test_kill_tree_ends_a_fork_bomb(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "b() { if [ $1 -gt 0 ]; then b $(($1 - 1)) & "
				       "b $(($1 - 1)) & fi; echo $1; exec sleep 600; }; b 8");
	run_until(&record, "s");
	char text[64];
	assert_true(read(out, text, sizeof(text)) > 0); // it has begun
	process_kill_tree(record.process);
	run_until(&record, "sxe");
	close(out);
	process_destroy(record.process);
}

static int set_up(void **state)
{
	return set_up_loop();
}

static int tear_down(void **state)
{
	return tear_down_loop();
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "run-away") == 0) {
		return run_away();
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signal_reaches_the_group),
		cmocka_unit_test(test_signal_before_started_is_not_lost),
		cmocka_unit_test(test_emptied_waits_for_the_last_descendant),
		cmocka_unit_test(test_kill_tree_ends_what_ignores_signals),
		cmocka_unit_test(test_kill_tree_ends_stopped_processes),
		cmocka_unit_test(test_destroy_ends_the_tree_silently),
		cmocka_unit_test(test_destroy_before_started_ends_it_too),
		cmocka_unit_test(test_process_may_be_destroyed_in_its_handlers),
		cmocka_unit_test(test_status_text_names_the_signal),
		cmocka_unit_test(test_kill_tree_catches_a_runner),
		cmocka_unit_test(test_destroy_catches_runners),
		cmocka_unit_test(test_kill_tree_ends_a_fork_bomb),
	};
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
