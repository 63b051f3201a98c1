/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "tests/unit/runner_fixture.h"

/* The folder of a run: the order in it ends the run, and it shows whether the run has ended. */

struct scene {
	struct test_runner runner;
	struct test_exec exec;
	char base[64];
	char folder[96]; // of the run
	pid_t process;
};

static const char *in(const char *folder, const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static bool is_there(const char *folder, const char *name)
{
	return access(in(folder, name), F_OK) == 0;
}

static void make_folder(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkfifo(in(path, "alive"), 0600), 0);
	assert_int_equal(mkfifo(in(path, "held"), 0600), 0);
}

static bool is_held(const struct scene *scene)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(in(scene->folder, "held"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0 || errno == ENXIO);
	return fd >= 0;
}

static void start(struct scene *scene)
{
	test_runner_start_run(&scene->runner, "", scene->folder);
	test_exec_shell(&scene->runner, &scene->exec, "echo up; exec sleep 1000");
	while (scene->exec.out.bytes.len < 3) {
		test_runner_turn(&scene->runner);
	}
	scene->process =
		(pid_t)test_runner_await(&scene->runner, RUNNER_STARTED, scene->exec.id)->number;
	assert_true(is_held(scene));
}

static void put(const struct scene *scene, const char *text)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(in(scene->folder, "alive"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Closes the channel, if that is still there. When the keeper has ended, all others have. */
static void expect_end(struct scene *scene)
{
	test_exec_finish(&scene->exec);
	test_runner_close(&scene->runner);
	(void)test_runner_wait(&scene->runner);
	assert_false(test_runner_is_there(scene->process));
}

/* A broker that has lost its connection looks into the folder. */
static void expect_proof(struct scene *scene)
{
	assert_true(is_there(scene->folder, "held"));
	assert_false(is_held(scene));
	assert_false(is_there(scene->folder, "left"));
}

static int set_up(void **state)
{
	static struct scene scene;
	scene = (struct scene){.base = "/tmp/runner-alive-XXXXXX"};
	assert_non_null(mkdtemp(scene.base));
	snprintf(scene.folder, sizeof(scene.folder), "%s/alive.one", scene.base);
	make_folder(scene.folder);
	*state = &scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	char line[128];
	snprintf(line, sizeof(line), "rm -r %s", scene->base);
	return system(line); // NOLINT(cert-env33-c)
}

static void test_the_order_ends_all(void **state)
{
	struct scene *scene = *state;
	start(scene);
	put(scene, "over\n");
	while (!scene->runner.end[0]) {
		test_runner_turn(&scene->runner);
	}
	expect_end(scene);
	expect_proof(scene);
}

static void test_the_order_comes_in_pieces(void **state)
{
	struct scene *scene = *state;
	start(scene);
	put(scene, "nothing\nov");
	put(scene, "er\n");
	while (!scene->runner.end[0]) {
		test_runner_turn(&scene->runner);
	}
	expect_end(scene);
}

static void test_other_lines_end_nothing(void **state)
{
	struct scene *scene = *state;
	struct test_exec exec;
	start(scene);
	put(scene, "\nover \n over\nove\noverover\nOVER\nnot over\nover");
	test_exec_shell(&scene->runner, &exec, "exit 3");
	assert_int_equal(test_exec_await(&scene->runner, &exec)->number, 3);
	test_exec_finish(&exec);
	assert_true(test_runner_is_there(scene->process));
	assert_true(is_held(scene));
	expect_end(scene);
}

/* Its channel is in use. The second answer replaces the first, which nobody has read. */
static void test_the_order_to_an_orphan_ends_nothing_that_a_broker_uses(void **state)
{
	struct scene *scene = *state;
	char answer[16];
	start(scene);
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(in(scene->folder, "held"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	put(scene, "orphan one\norphan\norphan two\n");
	struct test_exec exec;
	test_exec_shell(&scene->runner, &exec, "exit 3"); // the runner has taken the order before
	assert_int_equal(test_exec_await(&scene->runner, &exec)->number, 3);
	test_exec_finish(&exec);
	assert_int_equal(read(fd, answer, sizeof(answer)), 9);
	assert_memory_equal(answer, "used two\n", 9);
	assert_true(test_runner_is_there(scene->process));
	expect_end(scene);
}

/* As a lost connection ends it, too: the next one wants the proof. */
static void test_the_end_of_the_channel_leaves_the_proof(void **state)
{
	struct scene *scene = *state;
	start(scene);
	expect_end(scene);
	expect_proof(scene);
}

static void test_a_requested_end_leaves_nothing(void **state)
{
	struct scene *scene = *state;
	start(scene);
	mux_end(scene->runner.mux, (struct span){0});
	while (!scene->runner.end[0]) {
		test_runner_turn(&scene->runner);
	}
	expect_end(scene);
	assert_false(is_there(scene->base, "alive.one"));
}

/* As at the usual end of a broker: it knows that nothing runs there. */
static void test_the_end_of_the_channel_of_an_idle_run_leaves_nothing(void **state)
{
	struct scene *scene = *state;
	start(scene);
	mux_acknowledge_at_once(scene->runner.mux);
	kill(scene->process, SIGKILL);
	(void)test_exec_await(&scene->runner, &scene->exec);
	(void)test_runner_await(&scene->runner, RUNNER_EMPTIED, scene->exec.id);
	mux_status(scene->runner.mux, (struct span){0}); // comes after the acknowledgements
	while (!scene->runner.status[0]) {
		test_runner_turn(&scene->runner);
	}
	expect_end(scene);
	assert_false(is_there(scene->base, "alive.one"));
}

static void test_the_keeper_holds_it_until_all_have_ended(void **state)
{
	struct scene *scene = *state;
	struct span pid;
	start(scene);
	assert_true(runner_find_line(span_of(scene->runner.hello), "pid", &pid));
	kill((pid_t)strtol(pid.data, NULL, 10), SIGKILL);
	while (is_held(scene)) {
		usleep(1000);
	}
	assert_false(test_runner_is_there(scene->process));
	expect_end(scene);
	expect_proof(scene);
}

static void test_the_runner_holds_it_without_its_keeper(void **state)
{
	struct scene *scene = *state;
	start(scene);
	kill(scene->runner.pid, SIGKILL);
	while (is_held(scene)) {
		usleep(1000);
	}
	assert_false(test_runner_is_there(scene->process));
	expect_end(scene);
	expect_proof(scene);
}

/* Or else others would think that it has ended. */
static void test_without_its_folder_it_does_not_start(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(unlink(in(scene->folder, "held")), 0);
	test_runner_start_run(&scene->runner, "", scene->folder);
	assert_int_equal(WEXITSTATUS(test_runner_wait(&scene->runner)), 1);
	test_runner_close(&scene->runner);
	test_runner_start_run(&scene->runner, "", "/nowhere");
	assert_int_equal(WEXITSTATUS(test_runner_wait(&scene->runner)), 1);
	test_runner_close(&scene->runner);
}

static void make_aged(const char *folder, const char *name, int days)
{
	char path[128];
	snprintf(path, sizeof(path), "%s", in(folder, name));
	time_t then = time(NULL) - (time_t)days * 24 * 3600 - 60;
	const struct timespec old[2] = {{.tv_sec = then}, {.tv_sec = then}};
	make_folder(path);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void test_old_folders_that_nobody_holds_are_removed(void **state)
{
	struct scene *scene = *state;
	char used[128], other[128], recent[128];
	snprintf(used, sizeof(used), "%s", in(scene->base, "alive.used"));
	snprintf(other, sizeof(other), "%s", in(scene->base, "another"));
	snprintf(recent, sizeof(recent), "%s", in(scene->base, "alive.recent"));
	make_aged(scene->base, "alive.unused", 1);
	make_aged(scene->base, "alive.used", 1);
	make_aged(scene->base, "another", 1);
	make_folder(recent);
	make_aged(scene->base, "alive.t.1.b00t.2", 29); // of another machine, or boot
	make_aged(scene->base, "alive.u.1.b00t.2", 30);
	ATTR_CLEANUP(fd_cleanup) int held = open(in(used, "held"), O_RDWR | O_CLOEXEC);
	assert_true(held >= 0);
	start(scene);
	assert_false(is_there(scene->base, "alive.unused"));
	assert_true(is_there(scene->base, "alive.t.1.b00t.2"));
	assert_false(is_there(scene->base, "alive.u.1.b00t.2"));
	assert_true(is_there(used, "held"));
	assert_true(is_there(other, "held"));
	assert_true(is_there(recent, "held"));
	expect_end(scene);
}

#define ALIVE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ALIVE_TEST(test_the_order_ends_all),
		ALIVE_TEST(test_the_order_comes_in_pieces),
		ALIVE_TEST(test_other_lines_end_nothing),
		ALIVE_TEST(test_the_order_to_an_orphan_ends_nothing_that_a_broker_uses),
		ALIVE_TEST(test_the_end_of_the_channel_leaves_the_proof),
		ALIVE_TEST(test_a_requested_end_leaves_nothing),
		ALIVE_TEST(test_the_end_of_the_channel_of_an_idle_run_leaves_nothing),
		ALIVE_TEST(test_the_keeper_holds_it_until_all_have_ended),
		ALIVE_TEST(test_the_runner_holds_it_without_its_keeper),
		ALIVE_TEST(test_without_its_folder_it_does_not_start),
		ALIVE_TEST(test_old_folders_that_nobody_holds_are_removed),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
