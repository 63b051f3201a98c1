/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/launch.h"
#include "tests/unit/process_record.h"
#include "tests/support/facts.h"

static bool is_under_valgrind;
static char folder[] = "/tmp/test-process-XXXXXX";

static void write_file(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	struct error err;
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(content), &err));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void path_in_folder(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* ---- running ---- */

static void test_exit_code_is_reported(void **state)
{
	struct record record = {0};
	char text[64];
	run_shell(&record, "echo hello; exit 7", text, sizeof(text));
	assert_string_equal(text, "hello\n");
	assert_int_equal(record.status.code, 7);
	assert_int_equal(record.status.signal, 0);
}

static void test_signal_is_reported_apart_from_the_code(void **state)
{
	struct record record = {0};
	char text[64];
	run_shell(&record, "kill -SEGV $$", text, sizeof(text));
	assert_int_equal(record.status.signal, SIGSEGV);
	assert_int_equal(record.status.code, 0);
}

static void test_process_leads_its_own_session_and_group(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "sleep 60");
	run_until(&record, "s");
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *process = tree_find(&tree, record.pid);
	assert_non_null(process);
	assert_int_equal(process->group, record.pid);
	assert_int_equal(process->session, record.pid);
	tree_finish(&tree);
	close(out);
	process_destroy(record.process);
}

static void test_environment_is_exactly_what_was_asked(void **state)
{
	struct record record = {0};
	const char *argv[] = {"/usr/bin/env", "-0", NULL};
	const char *env[] = {"A=1", "TWO=line one\nline two", "EMPTY=", NULL};
	int out = start(&record, argv, env, NULL);
	run_until(&record, "sxe");
	char text[256];
	size_t len = read_all(out, text, sizeof(text));
	static const char expected[] = "A=1\0TWO=line one\nline two\0EMPTY=";
	assert_int_equal(len, sizeof(expected));
	assert_memory_equal(text, expected, sizeof(expected));
	process_destroy(record.process);
}

static void test_no_descriptor_leaks_into_the_process(void **state)
{
	int leak = open("/dev/null", O_RDONLY); // without CLOEXEC, on purpose
	struct record record = {0};
	const char *argv[] = {"ls", "/proc/self/fd", NULL};
	int out = start(&record, argv, NULL, NULL);
	run_until(&record, "sxe");
	char text[256];
	read_all(out, text, sizeof(text));
	close(leak);
	assert_string_equal(text, "0\n1\n2\n3\n"); // 3 is the folder being read
	process_destroy(record.process);
}

/* The spawner was forked while all of them were ignored and blocked: see run_with_spawner. */
static void test_no_signal_is_ignored_or_blocked(void **state)
{
	struct sigaction before;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	struct record record = {0};
	char text[256];
	run_shell(&record, "grep -E '^Sig(Blk|Ign)' /proc/self/status", text, sizeof(text));
	assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
	assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void test_guard_holds_none_of_the_three_descriptors(void **state)
{
	struct record record = {0};
	int out = start_shell(&record, "exec >&-; sleep 60");
	run_until(&record, "s");
	char text[16];
	assert_int_equal(read_all(out, text, sizeof(text)), 0); // ends while the process runs
	process_destroy(record.process);
	assert_ends(record.pid);
}

static void test_large_arguments_and_environment_arrive(void **state)
{
	enum { SIZE = 100000 };
	char *value = mem_alloc(SIZE + 3);
	memset(value, 'x', SIZE + 2);
	memcpy(value, "V=", 2);
	value[SIZE + 2] = '\0';
	const char *argv[] = {"sh", "-c", "echo ${#V} ${#1}", "sh", value + 2, NULL};
	const char *env[] = {plain_env[0], value, NULL};
	struct record record = {0};
	int out = start(&record, argv, env, NULL);
	run_until(&record, "sxe");
	char text[64];
	read_all(out, text, sizeof(text));
	assert_string_equal(text, "100000 100000\n");
	process_destroy(record.process);
	free(value);
}

static void test_hundred_processes_at_once(void **state)
{
	enum { COUNT = 100 };
	struct record *records = mem_alloc_zero(COUNT * sizeof(*records));
	int outs[COUNT];
	for (int i = 0; i < COUNT; i++) {
		outs[i] = start_shell(&records[i], "echo $$; exit 5");
	}
	for (int i = 0; i < COUNT; i++) {
		run_until(&records[i], "sxe");
		assert_int_equal(records[i].status.code, 5);
		assert_int_equal(read_pid(outs[i]), records[i].pid);
		close(outs[i]);
		process_destroy(records[i].process);
	}
	free(records);
}

static void test_script_without_interpreter_line_is_run_by_the_shell(void **state)
{
	char path[PATH_MAX];
	path_in_folder(path, "plain-script");
	write_file(path, "echo \"got $1\"\n", 0755);
	const char *argv[] = {path, "it", NULL};
	struct record record = {0};
	int out = start(&record, argv, NULL, NULL);
	run_until(&record, "sxe");
	char text[64];
	read_all(out, text, sizeof(text));
	assert_string_equal(text, "got it\n");
	process_destroy(record.process);
}

static void test_relative_command_is_looked_up_in_the_cwd(void **state)
{
	char path[PATH_MAX];
	path_in_folder(path, "here");
	write_file(path, "#!/bin/sh\npwd\n", 0755);
	const char *argv[] = {"./here", NULL};
	struct record record = {0};
	int out = start(&record, argv, NULL, folder);
	run_until(&record, "sxe");
	char text[PATH_MAX];
	read_all(out, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	assert_string_equal(text, folder);
	process_destroy(record.process);
}

/* ---- failing to start ---- */

static void expect_failure(const char *const *argv, const char *const *env, const char *cwd,
	enum error_code code, const char *facts)
{
	struct record record = {0};
	int out = start(&record, argv, env, cwd);
	run_until(&record, "f");
	char text[8];
	assert_int_equal(read_all(out, text, sizeof(text)), 0);
	assert_int_equal(record.err.code, code);
	assert_names(record.err.text, facts);
	run_for(20);
	assert_string_equal(record.events, "f");
	process_destroy(record.process);
}

/* Returns an empty memory file that is locked; *out_program is another opening of it. */
static int make_program(int *out_program)
{
	char path[64];
	int own = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(flock(own, LOCK_EX | LOCK_NB), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", own);
	*out_program = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*out_program >= 0);
	return own;
}

static void start_program(struct record *record, int program)
{
	static const char *const argv[] = {"called so", "-c", "exit 5", NULL};
	struct error err;
	const struct process_spec spec = {.argv = argv,
		.env = plain_env,
		.cwd = "/",
		.in = -1,
		.out = -1,
		.err = -1,
		.has_program = true,
		.program = program};
	record->process = process_start(spawner, &spec, &listener, record, &err);
	assert_non_null(record->process);
	close(program);
}

/* Writes a program into it; only its first half, if it is not `whole`. */
static void fill_program(int own, bool whole)
{
	struct stat status;
	int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(shell, &status), 0);
	size_t size = (size_t)status.st_size / (whole ? 1 : 2);
	assert_int_equal(sendfile(own, shell, NULL, size), size);
	close(shell);
}

static void seal_program(int own)
{
	assert_int_equal(fcntl(own, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_FUTURE_WRITE), 0);
}

/* Whether somebody waits for the file's lock: proc_locks(5) marks the line with "->". */
static bool is_awaited(int own)
{
	char line[256], number[32];
	struct stat status;
	bool is_found = false;
	FILE *locks = fopen("/proc/locks", "re");
	assert_non_null(locks);
	assert_int_equal(fstat(own, &status), 0);
	snprintf(number, sizeof(number), ":%llu ", (unsigned long long)status.st_ino);
	while (fgets(line, sizeof(line), locks)) {
		is_found = is_found || (strstr(line, "-> FLOCK") && strstr(line, number));
	}
	fclose(locks);
	return is_found;
}

/* Turns the loop until the process waits for the program. */
static void await_waiting(const struct record *record, int own)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!is_awaited(own) && clock_now_ms() < deadline_ms) {
		run_for(5);
	}
	assert_true(is_awaited(own));
	assert_string_equal(record->events, "");
}

static void test_an_open_program_is_executed_when_it_is_sealed(void **state)
{
	struct record record = {0};
	int program, own = make_program(&program);
	if (is_under_valgrind) { // knows no execveat
		close(program);
		close(own);
		skip();
	}
	start_program(&record, program);
	await_waiting(&record, own);
	fill_program(own, true);
	seal_program(own);
	close(own);
	run_until(&record, "sxe");
	assert_int_equal(record.status.code, 5);
	process_destroy(record.process);
}

static void test_an_open_program_that_is_not_sealed_is_not_executed(void **state)
{
	struct record record = {0};
	int program, own = make_program(&program);
	start_program(&record, program);
	close(own);
	run_until(&record, "f");
	assert_non_null(strstr(record.err.text, "starting \"called so\""));
	process_destroy(record.process);
}

/* As when the broker is killed while it writes the program. */
static void test_a_part_of_a_program_is_not_executed(void **state)
{
	struct record record = {0};
	int program, own = make_program(&program);
	start_program(&record, program);
	await_waiting(&record, own);
	fill_program(own, false);
	assert_string_equal(record.events, "");
	close(own);
	run_until(&record, "f");
	assert_non_null(strstr(record.err.text, "starting \"called so\""));
	process_destroy(record.process);
}

/* Its own stdout must not take the program's place. */
static void test_an_open_program_may_have_a_low_number(void **state)
{
	static const char *const argv[] = {"called so", "-c", "exit 5", NULL};
	const struct process_spec spec = {
		.argv = argv, .env = plain_env, .cwd = "/", .in = -1, .out = -1, .err = -1};
	struct launch launch = {.group_fd = -1, .fds = {-1, -1, -1}};
	struct launch_failure failure;
	struct error err;
	int program, status_fds[2], status, own = make_program(&program);
	if (is_under_valgrind) { // knows no execveat
		close(program);
		close(own);
		skip();
	}
	fill_program(own, true);
	seal_program(own);
	close(own);
	int memory = launch_pack(&spec, &err);
	assert_true(memory >= 0 && launch_unpack(&launch, memory, &err));
	assert_true(fd_pipe(status_fds, &err));
	pid_t pid = fork();
	if (pid == 0) {
		dup2(program, 1);
		launch.program = 1;
		launch.has_program = true;
		launch_run(&launch, status_fds[1]);
	}
	close(status_fds[1]);
	close(memory);
	close(program);
	assert_int_equal(read(status_fds[0], &failure, sizeof(failure)), 0);
	close(status_fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
	launch_finish(&launch);
}

static void test_missing_command_names_the_path_searched(void **state)
{
	const char *argv[] = {"no-such-agent", NULL};
	const char *env[] = {"PATH=/nowhere:/usr/bin", NULL};
	expect_failure(
		argv, env, NULL, ERROR_NOT_FOUND, "\"no-such-agent\" | PATH /nowhere:/usr/bin");
}

static void test_missing_file_is_not_found(void **state)
{
	const char *argv[] = {"/nowhere/agent", NULL};
	expect_failure(argv, NULL, NULL, ERROR_NOT_FOUND, "\"/nowhere/agent\": no such file");
}

static void test_empty_command_is_not_found(void **state)
{
	const char *argv[] = {"", NULL};
	expect_failure(argv, NULL, NULL, ERROR_NOT_FOUND, "no such command");
}

static void test_file_without_execute_bit_is_denied_and_named(void **state)
{
	char path[PATH_MAX];
	char env_path[PATH_MAX + 8];
	path_in_folder(path, "not-executable");
	write_file(path, "#!/bin/sh\n", 0644);
	snprintf(env_path, sizeof(env_path), "PATH=%s", folder);
	const char *argv[] = {"not-executable", NULL};
	const char *env[] = {env_path, NULL};
	char words[PATH_MAX + 64];
	snprintf(words, sizeof(words), "%s may not be executed: Permission denied", path);
	expect_failure(argv, env, NULL, ERROR_DENIED, words);
	const char *relative[] = {"./not-executable", NULL};
	expect_failure(relative, NULL, folder, ERROR_DENIED, "may not be executed");
}

static void test_missing_interpreter_is_denied_and_named(void **state)
{
	if (is_under_valgrind) {
		skip(); // it executes programs in its own way, and has its own command line
	}
	char path[PATH_MAX];
	path_in_folder(path, "bad-interpreter");
	write_file(path, "#! /nowhere/node --flag\n", 0755);
	const char *argv[] = {"./bad-interpreter", NULL};
	expect_failure(argv, NULL, folder, ERROR_DENIED,
		"its interpreter \"/nowhere/node\" does not exist");
}

static void test_directory_is_denied(void **state)
{
	const char *argv[] = {"/usr", NULL};
	expect_failure(argv, NULL, NULL, ERROR_DENIED, "/usr is a directory");
}

static void test_foreign_binary_is_denied(void **state)
{
	char path[PATH_MAX];
	path_in_folder(path, "foreign");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	static const char bytes[] = "\x7f"
				    "ELF\0\0\0\0garbage";
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
	const char *argv[] = {path, NULL};
	expect_failure(argv, NULL, NULL, ERROR_DENIED, "may not be executed: Exec format error");
}

static void test_bad_cwd_is_named(void **state)
{
	const char *argv[] = {"true", NULL};
	expect_failure(argv, NULL, "/nowhere/at/all", ERROR_NOT_FOUND,
		"changing to directory /nowhere/at/all: No such file or directory");
}

static int set_up(void **state)
{
	return mkdtemp(folder) ? set_up_loop() : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = {
		"plain-script", "here", "not-executable", "bad-interpreter", "foreign"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char path[PATH_MAX];
		path_in_folder(path, names[i]);
		unlink(path);
	}
	rmdir(folder);
	return tear_down_loop();
}

int main(void)
{
	const char *preload = getenv("LD_PRELOAD");
	is_under_valgrind = preload && strstr(preload, "vgpreload");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_code_is_reported),
		cmocka_unit_test(test_signal_is_reported_apart_from_the_code),
		cmocka_unit_test(test_process_leads_its_own_session_and_group),
		cmocka_unit_test(test_environment_is_exactly_what_was_asked),
		cmocka_unit_test(test_no_descriptor_leaks_into_the_process),
		cmocka_unit_test(test_no_signal_is_ignored_or_blocked),
		cmocka_unit_test(test_guard_holds_none_of_the_three_descriptors),
		cmocka_unit_test(test_large_arguments_and_environment_arrive),
		cmocka_unit_test(test_hundred_processes_at_once),
		cmocka_unit_test(test_script_without_interpreter_line_is_run_by_the_shell),
		cmocka_unit_test(test_relative_command_is_looked_up_in_the_cwd),
		cmocka_unit_test(test_an_open_program_is_executed_when_it_is_sealed),
		cmocka_unit_test(test_an_open_program_that_is_not_sealed_is_not_executed),
		cmocka_unit_test(test_a_part_of_a_program_is_not_executed),
		cmocka_unit_test(test_an_open_program_may_have_a_low_number),
		cmocka_unit_test(test_missing_command_names_the_path_searched),
		cmocka_unit_test(test_missing_file_is_not_found),
		cmocka_unit_test(test_empty_command_is_not_found),
		cmocka_unit_test(test_file_without_execute_bit_is_denied_and_named),
		cmocka_unit_test(test_missing_interpreter_is_denied_and_named),
		cmocka_unit_test(test_directory_is_denied),
		cmocka_unit_test(test_foreign_binary_is_denied),
		cmocka_unit_test(test_bad_cwd_is_named),
	};
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
