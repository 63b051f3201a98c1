/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "tests/unit/runner_fixture.h"

/* What the runner does by itself where no shell can: its start, and the folders of workspaces. */

enum { TEXT_MAX = 16384, WAIT_MS = 60000 };

static char base[64]; // of a case

/* The program with its words; all that it has printed. */
struct program {
	pid_t pid;
	int in, out;
	char text[TEXT_MAX];
	size_t len;
};

static const char *in(const char *folder, const char *name)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void start(struct program *program, const char *const *argv)
{
	char temporary[128];
	int to[2], from[2];
	struct error err;
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", base);
	const char *const env[] = {
		temporary, "HOME=/h", "TWO=a\nb", "ACP_BROKER_OTHER=1", "LAST=x y", NULL};
	*program = (struct program){.in = -1, .out = -1};
	assert_true(fd_pipe(to, &err) && fd_pipe(from, &err));
	program->pid = fork();
	assert_true(program->pid >= 0);
	if (program->pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execve(RUNNER_PROGRAM, (char *const *)argv, (char *const *)env);
		_exit(99);
	}
	close(to[0]);
	close(from[1]);
	program->in = to[1];
	program->out = from[0];
}

/* Reads until this text has come; NULL: to the end. */
static void read_until(struct program *program, const char *wanted)
{
	while (!wanted || !strstr(program->text, wanted)) {
		struct pollfd readable = {.fd = program->out, .events = POLLIN};
		assert_int_equal(poll(&readable, 1, WAIT_MS), 1);
		assert_true(program->len < TEXT_MAX - 1);
		ssize_t count = read(
			program->out, program->text + program->len, TEXT_MAX - 1 - program->len);
		assert_true(count >= 0);
		program->len += (size_t)count;
		if (count == 0) {
			assert_null(wanted);
			return;
		}
	}
}

/* Closes its channel; returns its exit status. */
static int finish(struct program *program)
{
	int status;
	fd_close(&program->in);
	fd_close(&program->out);
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void begin(struct program *program, const char *token, const char *orders)
{
	const char *const argv[] = {"acp-runner", "begin", token, NULL};
	start(program, argv);
	assert_int_equal(write(program->in, orders, strlen(orders)), strlen(orders));
}

/* The folder of its run, from its answers. */
static const char *run_of(const struct program *program, char out[512])
{
	const char *line = strstr(program->text, "\nrun ");
	assert_non_null(line);
	snprintf(out, 512, "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
	return out;
}

static bool is_held(const char *folder)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(in(folder, "held"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0;
}

static int set_up(void **state)
{
	snprintf(base, sizeof(base), "/tmp/runner-begin-XXXXXX");
	return mkdtemp(base) ? 0 : 1;
}

static int tear_down(void **state)
{
	char line[128];
	snprintf(line, sizeof(line), "rm -r %s", base);
	return system(line); // NOLINT(cert-env33-c)
}

/* ---- the start ---- */

static void test_the_answers_are_those_of_the_script(void **state)
{
	struct program program;
	char run[512], expected[128];
	begin(&program, "c0ffee", "begin\n");
	read_until(&program, "acp-runner link\n");
	assert_memory_equal(program.text, "@acp-broker:begins-here;", 24);
	assert_non_null(strstr(program.text, "env HOME=/h\n"));
	assert_non_null(strstr(program.text, "env LAST=x y\n"));
	assert_null(strstr(program.text, "TWO"));
	assert_null(strstr(program.text, "ACP_BROKER_OTHER"));
	assert_non_null(strstr(program.text, "\nnode "));
	snprintf(expected, sizeof(expected), "%s/alive.c0ffee.%d.", base, (int)program.pid);
	assert_memory_equal(run_of(&program, run), expected, strlen(expected));
	assert_non_null(strstr(program.text, "\nrunner /\n"));
	assert_true(is_held(run));
	(void)finish(&program);
	assert_false(is_held(run));
}

static void test_a_broker_that_ends_at_once_starts_nothing(void **state)
{
	struct program program;
	begin(&program, "c0ffee", "on n\nearlier lost /nowhere/alive.a.1.b.2\nbeg");
	fd_close(&program.in);
	read_until(&program, NULL);
	assert_null(strstr(program.text, "run "));
	assert_int_equal(finish(&program), 1);
}

/* A process with this variable in its environment. */
static pid_t start_marked(const char *mark)
{
	char path[64], environment[256];
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execle("/bin/sleep", "sleep", "1000", NULL, (const char *const[]){mark, NULL});
		_exit(99);
	}
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	for (int i = 0; i < WAIT_MS; i++) { // until it is another program
		ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t count = read(fd, environment, sizeof(environment) - 1);
		environment[count > 0 ? count : 0] = '\0';
		if (strcmp(environment, mark) == 0) {
			return pid;
		}
		poll(NULL, 0, 1);
	}
	fail_msg("%s was not started", mark);
	return pid;
}

/* "BOOT.NAMESPACE" of this process. */
static const char *here(void)
{
	static char text[128];
	char boot[64] = "", space[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	assert_non_null(file);
	assert_non_null(fgets(boot, sizeof(boot), file));
	fclose(file);
	assert_true(readlink("/proc/self/ns/pid", space, sizeof(space) - 1) > 6);
	snprintf(text, sizeof(text), "%.*s.%.*s", (int)strcspn(boot, "-"), boot,
		(int)strcspn(space + 5, "]"), space + 5);
	return text;
}

static const char *node(void)
{
	static struct utsname system;
	assert_return_code(uname(&system), 0);
	return system.nodename;
}

/* Makes the folder of a run with this token, which nobody holds. */
static const char *make_run(char out[256], const char *token, const char *place)
{
	snprintf(out, 256, "%s/alive.%s.1.%s", base, token, place);
	assert_return_code(mkdir(out, 0700), 0);
	assert_return_code(mkfifo(in(out, "alive"), 0600), 0);
	assert_return_code(mkfifo(in(out, "held"), 0600), 0);
	return out;
}

/* What stands for a runner; it answers as a runner does (alive.c). */
enum fake { DEAF, UNUSED, USED };

static void serve(enum fake fake, int orders, int held)
{
	char line[256] = "";
	size_t len = 0;
	while (read(orders, &line[len], 1) == 1) {
		if (line[len] != '\n') {
			len += len < sizeof(line) - 1;
			continue;
		}
		line[len] = '\0';
		len = 0;
		bool is_question = strncmp(line, "orphan ", 7) == 0;
		if (fake != DEAF &&
			(strcmp(line, "over") == 0 || (is_question && fake == UNUSED))) {
			_exit(0);
		}
		if (fake == USED && is_question) {
			dprintf(held, "used another\nused %s\n", line + 7);
		}
	}
}

static pid_t hold(const char *folder, enum fake fake)
{
	int ready[2];
	char byte;
	assert_return_code(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int held = open(in(folder, "held"), O_RDWR);
		int orders = open(in(folder, "alive"), O_RDWR);
		(void)!write(ready[1], "", 1);
		serve(fake, orders, held);
		_exit(99);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static bool is_running(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool exists(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0;
}

/* Begins with these earlier runs. True: the new run has begun. */
static bool begins(struct program *program, const char *format, ...) ATTR_PRINTF(2, 3);
static bool begins(struct program *program, const char *format, ...)
{
	char orders[2048];
	va_list values;
	va_start(values, format);
	int len = vsnprintf(orders, sizeof(orders) / 2, format, values);
	va_end(values);
	snprintf(orders + len, sizeof(orders) / 2, "begin\n");
	begin(program, "bbbb", orders);
	fd_close(&program->in);
	read_until(program, NULL);
	bool has_begun = strstr(program->text, "\nrunner /\n") != NULL;
	(void)finish(program);
	return has_begun;
}

static void test_an_earlier_run_ends_and_what_has_lost_its_runner(void **state)
{
	struct program earlier, later;
	char run[512];
	int how;
	begin(&earlier, "aaaa", "begin\n");
	read_until(&earlier, "acp-runner link\n");
	run_of(&earlier, run);
	pid_t lost = start_marked("ACP_BROKER_RUN=aaaa.7.");
	assert_true(begins(&later, "on %s\nearlier dead %s\n", node(), run));
	assert_int_equal(waitpid(lost, &how, 0), lost);
	assert_true(WIFSIGNALED(how));
	assert_non_null(strstr(later.text, "ended 1\n"));
	(void)finish(&earlier);
	assert_false(exists(run));
}

static void test_an_orphan_that_a_broker_uses_is_left_alone(void **state)
{
	struct program earlier, later;
	char run[512];
	begin(&earlier, "aaaa", "begin\n");
	read_until(&earlier, "acp-runner link\n");
	run_of(&earlier, run);
	pid_t used = start_marked("ACP_BROKER_RUN=aaaa.7.");
	assert_true(begins(&later, "on %s\nearlier orphan %s\n", node(), run));
	assert_non_null(strstr(later.text, "kept aaaa used\n"));
	assert_null(strstr(later.text, "ended "));
	assert_true(is_running(used));
	assert_true(is_held(run));
	assert_false(exists(in(run, "asking")));
	stop(used);
	(void)finish(&earlier);
}

static void test_an_orphan_that_nobody_uses_ends_wherever_it_is(void **state)
{
	const char *const places[] = {here(), "0.1"};
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		struct program later;
		char run[256];
		pid_t runner = hold(make_run(run, "aaaa", places[i]), UNUSED);
		assert_true(begins(&later, "on %s\nearlier orphan %s\n", node(), run));
		assert_null(strstr(later.text, "kept "));
		assert_int_equal(waitpid(runner, NULL, 0), runner);
		assert_false(exists(run));
	}
}

static void test_an_orphan_elsewhere_that_a_broker_uses_is_left_alone(void **state)
{
	struct program later;
	char run[256];
	pid_t runner = hold(make_run(run, "aaaa", "0.1"), USED);
	assert_true(begins(&later, "on other\nearlier orphan %s\n", run));
	assert_non_null(strstr(later.text, "kept aaaa used\n"));
	assert_true(is_running(runner));
	stop(runner);
}

/* Its folder is gone, or its runner, so nobody can be asked. */
static void test_the_processes_of_an_orphan_are_not_killed_without_an_answer(void **state)
{
	struct program later;
	char run[256];
	pid_t lost = start_marked("ACP_BROKER_RUN=aaaa.7.");
	make_run(run, "aaaa", here());
	assert_true(begins(&later, "on %s\nearlier orphan %s\n", node(), run));
	assert_non_null(strstr(later.text, "kept aaaa unseen\n"));
	assert_null(strstr(later.text, "ended "));
	assert_true(
		begins(&later, "on %s\nearlier orphan /acp-broker.aaaa.1.%s\n", node(), here()));
	assert_non_null(strstr(later.text, "kept aaaa unseen\n"));
	assert_true(is_running(lost));
	stop(lost);
}

/* It shows no process with the mark: they may have cleared their environment. */
static void test_an_orphan_whose_runner_does_not_answer_keeps_its_folder(void **state)
{
	struct program later;
	char run[256];
	pid_t runner = hold(make_run(run, "aaaa", here()), DEAF);
	assert_true(begins(&later, "wait 100\non %s\nearlier orphan %s\n", node(), run));
	assert_non_null(strstr(later.text, "kept aaaa unseen\n"));
	assert_true(is_running(runner));
	assert_true(is_held(run));
	stop(runner);
}

static void test_a_run_of_another_namespace_of_this_machine_has_ended(void **state)
{
	static const char *const words[] = {"lost", "idle", "over", "dead", "orphan"};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		struct program program;
		char run[256];
		make_run(run, "aaaa", "deadbeef.1");
		assert_true(begins(&program, "on %s\nearlier %s %s\n", node(), words[i], run));
		assert_null(strstr(program.text, "ended "));
		assert_null(strstr(program.text, "kept "));
		assert_false(exists(run));
	}
}

/* The name leads to another container now. */
static void test_a_run_of_another_machine_has_not_ended(void **state)
{
	static const struct {
		const char *word;
		bool has_begun;
		const char *said;
	} rows[] = {{"lost", false, "left it runs on other"}, {"idle", false, "left "},
		{"over", true, "runner /"}, {"dead", true, "kept aaaa elsewhere\n"},
		{"orphan", true, "kept aaaa elsewhere\n"}};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		struct program program;
		assert_int_equal(begins(&program, "on other\nearlier %s /t/alive.aaaa.1.0.1\n",
					 rows[i].word),
			rows[i].has_begun);
		assert_non_null(strstr(program.text, rows[i].said));
	}
}

/* One deadline for all of them, and each is named. */
static void test_runs_that_do_not_end_are_left(void **state)
{
	struct program program;
	char one[256], two[256], ends[256];
	const pid_t deaf[] = {hold(make_run(one, "aaaa", here()), DEAF),
		hold(make_run(two, "cccc", "0.1"), DEAF)};
	pid_t ending = hold(make_run(ends, "dddd", "0.1"), UNUSED);
	assert_false(begins(&program,
		"wait 5000\non %s\nearlier lost %s\nearlier dead %s\nearlier lost %s\n", node(),
		one, two, ends));
	assert_non_null(strstr(program.text, "ended 1\n"));
	assert_false(exists(ends));
	const char *left = strstr(program.text, "left ");
	assert_non_null(left);
	assert_non_null(strchr(left, ';'));
	assert_null(strchr(strchr(left, ';') + 1, ';'));
	assert_true(exists(one) && exists(two));
	stop(deaf[0]);
	stop(deaf[1]);
	waitpid(ending, NULL, 0);
}

static void test_an_order_that_is_not_known_starts_nothing(void **state)
{
	static const char *const orders[] = {"earlier /t/alive.aaaa.1.0.1\n",
		"earlier odd /t/alive.aaaa.1.0.1\n", "wait x\n", "other\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(orders); i++) {
		struct program program;
		assert_false(begins(&program, "%s", orders[i]));
		assert_non_null(strstr(program.text, "scripts "));
	}
}

/* ---- folders of workspaces ---- */

/* The two words of the answer, with a blank between them; valid until the next call. */
static const char *root(const char *which, const char *place)
{
	static struct program program;
	const char *const argv[] = {
		"acp-runner", "root", base, "name-1", "name", which, place, NULL};
	start(&program, argv);
	fd_close(&program.in);
	read_until(&program, NULL);
	assert_int_equal(finish(&program), 0);
	size_t first = strlen(program.text);
	size_t second = strlen(program.text + first + 1);
	assert_string_equal(program.text + first + 1 + second + 1, "end");
	program.text[first] = ' ';
	return program.text;
}

static void assert_root(const char *answer, const char *path)
{
	char expected[512];
	struct stat status;
	snprintf(expected, sizeof(expected), "root %s/workspaces/name-1/%s", base, path);
	assert_string_equal(answer, expected);
	assert_int_equal(stat(expected + 5, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
}

static void test_the_folder_of_a_workspace_is_private_and_found_again(void **state)
{
	assert_memory_equal(root("there", ""), "gone ", 5);
	assert_root(root("any", ""), "name");
	assert_root(root("there", ""), "name");
}

static void test_a_place_is_recorded(void **state)
{
	assert_root(root("any", "repo/way to/part"), "repo/way to/part");
	assert_root(root("any", ""), "repo/way to/part");
	assert_root(root("any", "repo/other"), "repo/way to/part");
}

static void test_a_place_that_leads_elsewhere_is_refused(void **state)
{
	char path[256];
	assert_root(root("any", ""), "name");
	snprintf(path, sizeof(path), "%s/workspaces/name-1/.place", base);
	static const char *const places[] = {"../up\n", "/abs\n", "a//b\n", "a/\n", "\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		assert_true(fputs(places[i], file) >= 0);
		fclose(file);
		assert_memory_equal(root("any", ""), "failed ", 7);
	}
}

static void test_a_link_in_the_way_is_refused(void **state)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/workspaces", base);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/workspaces/name-1", base);
	assert_int_equal(symlink(base, path), 0);
	const char *answer = root("any", "");
	assert_memory_equal(answer, "failed ", 7);
	assert_non_null(strstr(answer, "leads elsewhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_answers_are_those_of_the_script, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_broker_that_ends_at_once_starts_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_earlier_run_ends_and_what_has_lost_its_runner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_orphan_that_a_broker_uses_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_orphan_that_nobody_uses_ends_wherever_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_orphan_elsewhere_that_a_broker_uses_is_left_alone, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_processes_of_an_orphan_are_not_killed_without_an_answer, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_orphan_whose_runner_does_not_answer_keeps_its_folder, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_run_of_another_namespace_of_this_machine_has_ended, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_run_of_another_machine_has_not_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_runs_that_do_not_end_are_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_order_that_is_not_known_starts_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_folder_of_a_workspace_is_private_and_found_again, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_a_place_is_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_place_that_leads_elsewhere_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_link_in_the_way_is_refused, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
