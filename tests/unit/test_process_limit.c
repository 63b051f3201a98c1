/* SPDX-License-Identifier: MIT */
#include "base/process_limit.h"

#include <sys/resource.h>

#include "base/text.h"
#include "tests/unit/process_record.h"

/*
 * Limits of a process by setrlimit(2): they are in force, and the broker reports which one was
 * reached.
 */

/* valgrind has its own limits for open files. */
static void skip_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");
	if (preload && strstr(preload, "vgpreload")) {
		skip();
	}
}

static void run_limited(struct record *record, const char *script,
	const struct process_limits *limits, char *text, size_t size)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	struct process_spec spec = {.argv = argv,
		.env = plain_env,
		.cwd = "/tmp",
		.in = -1,
		.out = fds[1],
		.err = -1,
		.limits = limits};
	record->process = process_start(spawner, &spec, &listener, record, &err);
	assert_non_null(record->process);
	fd_close(&fds[1]);
	run_until(record, "sxe");
	read_all(fds[0], text, size);
	process_destroy(record->process);
}

static void test_limits_are_in_force_from_the_first_instruction(void **state)
{
	struct process_limits limits = {
		.open_files = 64, .file_bytes = 512 * 1024, .cpu_seconds = 7};
	struct record record = {0};
	char text[256];
	skip_under_valgrind();
	run_limited(&record, "ulimit -n; ulimit -f; ulimit -t; ulimit -Ht", &limits, text,
		sizeof(text));
	assert_string_equal(text, "64\n1024\n7\n12\n"); // blocks of 512 bytes
	assert_int_equal(record.status.limit, LIMIT_NONE);
	assert_true(record.status.usage.is_known);
	assert_true(record.status.usage.peak_bytes > 0);
}

static void test_a_lower_limit_in_force_stays(void **state)
{
	struct rlimit before;
	struct process_limits limits = {.open_files = 1 << 20};
	struct record record = {0};
	char text[64];
	char wanted[64];
	skip_under_valgrind();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	rlim_t now = before.rlim_cur < 1 << 20 ? before.rlim_cur : 1 << 20;
	snprintf(wanted, sizeof(wanted), "%llu\n", (unsigned long long)now);
	run_limited(&record, "ulimit -n", &limits, text, sizeof(text));
	assert_string_equal(text, wanted);
}

static void test_processor_time_is_named(void **state)
{
	struct process_limits limits = {.cpu_seconds = 1};
	struct record record = {0};
	char text[64];
	run_limited(&record, "while :; do :; done", &limits, text, sizeof(text));
	assert_int_equal(record.status.signal, SIGXCPU);
	assert_int_equal(record.status.limit, LIMIT_CPU_TIME);
	assert_true(record.status.usage.cpu_ms >= 300);
}

static void test_a_file_that_grows_too_long_is_named(void **state)
{
	struct process_limits limits = {.file_bytes = 64 * 1024};
	struct record record = {0};
	char text[64];
	char script[256];
	char path[] = "/tmp/test-limit-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	text_whole(script, sizeof(script), "exec dd if=/dev/zero of=%s bs=32k count=4", path);
	run_limited(&record, script, &limits, text, sizeof(text));
	assert_int_equal(record.status.limit, LIMIT_FILE_SIZE);
	unlink(path);
}

static int wait_status(int code, int signal)
{
	return code << 8 | signal;
}

static void test_only_what_was_set_is_named(void **state)
{
	struct process_limits none = {0};
	struct process_limits time = {.cpu_seconds = 10};
	struct process_limits file = {.file_bytes = 1};
	assert_int_equal(limits_reached(&none, wait_status(0, SIGXCPU), 0, false), LIMIT_NONE);
	assert_int_equal(limits_reached(&file, wait_status(0, SIGXCPU), 0, false), LIMIT_NONE);
	assert_int_equal(limits_reached(&time, wait_status(0, SIGXFSZ), 0, false), LIMIT_NONE);
	assert_int_equal(limits_reached(&file, wait_status(0, SIGXFSZ), 0, false), LIMIT_FILE_SIZE);
	assert_int_equal(
		limits_reached(&time, wait_status(0, SIGXCPU), 8000, false), LIMIT_CPU_TIME);
	assert_int_equal(
		limits_reached(&time, wait_status(128 + SIGXCPU, 0), 8000, false), LIMIT_CPU_TIME);
	/* A signal that somebody has sent, and a program's own exit codes. */
	assert_int_equal(limits_reached(&time, wait_status(0, SIGXCPU), 0, false), LIMIT_NONE);
	assert_int_equal(
		limits_reached(&time, wait_status(128 + SIGXCPU, 0), 0, false), LIMIT_NONE);
	assert_int_equal(
		limits_reached(&file, wait_status(128 + SIGXFSZ, 0), 0, false), LIMIT_NONE);
	assert_int_equal(
		limits_reached(&time, wait_status(128 + SIGKILL, 0), 15000, false), LIMIT_NONE);
	/* Killed at the hard limit; and killed by us or by somebody else. */
	assert_int_equal(
		limits_reached(&time, wait_status(0, SIGKILL), 15000, false), LIMIT_CPU_TIME);
	assert_int_equal(limits_reached(&time, wait_status(0, SIGKILL), 15000, true), LIMIT_NONE);
	assert_int_equal(limits_reached(&time, wait_status(0, SIGKILL), 9000, false), LIMIT_NONE);
	assert_int_equal(limits_reached(&time, wait_status(1, 0), 0, false), LIMIT_NONE);
}

static void test_tasks_of_a_user_are_counted(void **state)
{
	struct record record = {0};
	uint64_t before = limits_count_tasks(getuid());
	assert_true(before >= 2); // the spawner and this program
	int out = start_shell(&record, "sleep 60");
	run_until(&record, "s");
	assert_true(limits_count_tasks(getuid()) >= 3);
	process_destroy(record.process);
	assert_ends(record.pid);
	close(out);
}

static int set_up(void **state)
{
	return set_up_loop();
}

static int tear_down(void **state)
{
	return tear_down_loop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_are_in_force_from_the_first_instruction),
		cmocka_unit_test(test_a_lower_limit_in_force_stays),
		cmocka_unit_test(test_processor_time_is_named),
		cmocka_unit_test(test_a_file_that_grows_too_long_is_named),
		cmocka_unit_test(test_only_what_was_set_is_named),
		cmocka_unit_test(test_tasks_of_a_user_are_counted),
	};
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
