/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/process.h"

/* What the spawner starts once its broker was killed. The broker is a child of the test. */

struct scene {
	char folder[64];
	char file[96], other[96];
};

enum end { END_KILLED, END_PROPER };

/* The program makes the file, and a line of its stderr is there. */
static void leave_will(struct spawner *spawner, const char *file)
{
	struct error err;
	char log[128];
	const char *const argv[] = {"/bin/sh", "-c", ": >\"$0\"; echo done >&2", file, NULL};
	const char *const env[] = {NULL};
	snprintf(log, sizeof(log), "%s.log", file);
	ATTR_CLEANUP(fd_cleanup) int log_fd = open(log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	const struct process_spec spec = {
		.argv = argv, .env = env, .cwd = "/", .in = -1, .out = -1, .err = log_fd};
	if (log_fd < 0 || !spawner_leave_will(spawner, &spec, &err)) {
		_exit(2);
	}
}

static off_t size_of_log(const char *file)
{
	char log[128];
	struct stat status;
	snprintf(log, sizeof(log), "%s.log", file);
	assert_int_equal(stat(log, &status), 0);
	return status.st_size;
}

/* Returns once nothing of the broker is left, and neither is the program. */
static void run_broker(const char *const *files, enum end end)
{
	struct error err;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t pid = fork();
	if (pid == 0) {
		struct spawner *spawner = spawner_create(&err);
		for (; spawner && *files; files++) {
			leave_will(spawner, *files);
		}
		if (end == END_KILLED) {
			kill(getpid(), SIGKILL);
		}
		bool has_ended = spawner && spawner_end(spawner, &err);
		spawner_destroy(spawner);
		_exit(has_ended ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(end == END_KILLED ? WIFSIGNALED(status) : status == 0);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
	}
}

static int set_up(void **state)
{
	static struct scene scene;
	scene = (struct scene){.folder = "/tmp/spawner-will-XXXXXX"};
	assert_non_null(mkdtemp(scene.folder));
	snprintf(scene.file, sizeof(scene.file), "%s/one", scene.folder);
	snprintf(scene.other, sizeof(scene.other), "%s/two", scene.folder);
	*state = &scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	char line[128];
	snprintf(line, sizeof(line), "rm -r %s", scene->folder);
	return system(line); // NOLINT(cert-env33-c)
}

static void test_it_is_started_when_the_broker_was_killed(void **state)
{
	const struct scene *scene = *state;
	const char *const files[] = {scene->file, NULL};
	run_broker(files, END_KILLED);
	assert_int_equal(access(scene->file, F_OK), 0);
	assert_int_equal(size_of_log(scene->file), 5);
}

static void test_only_the_last_one_is(void **state)
{
	const struct scene *scene = *state;
	const char *const files[] = {scene->file, scene->other, NULL};
	run_broker(files, END_KILLED);
	assert_int_not_equal(access(scene->file, F_OK), 0);
	assert_int_equal(access(scene->other, F_OK), 0);
	assert_int_equal(size_of_log(scene->file), 0);
	assert_int_equal(size_of_log(scene->other), 5);
}

static void test_it_is_not_started_when_the_broker_has_ended(void **state)
{
	const struct scene *scene = *state;
	const char *const files[] = {scene->file, NULL};
	run_broker(files, END_PROPER);
	assert_int_not_equal(access(scene->file, F_OK), 0);
}

#define WILL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WILL_TEST(test_it_is_started_when_the_broker_was_killed),
		WILL_TEST(test_only_the_last_one_is),
		WILL_TEST(test_it_is_not_started_when_the_broker_has_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
