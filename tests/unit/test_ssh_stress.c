/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/host_impl.h"
#include "tests/support/ssh/host_fixture.h"
#include "tests/support/ssh/real_stage.h"
#include "tests/support/ssh/sshd.h"

/*
 * Many short processes, each with an input of some size: ssh_stress CLIENT [COUNT]. Each has to
 * send its input back and to end as it was told; nothing is left open or running.
 */
enum { COUNT = 60, JOBS_MAX = 30, INPUT_MAX = 300 * 1024, STALL_MS = 60000 };

static int count = COUNT;
static char input[INPUT_MAX];

struct job {
	struct heard heard;
	size_t size;
	size_t sent;
	int code;
	bool is_used;
};

static struct stage stage;
static struct job jobs[JOBS_MAX];
static unsigned dice = 1;

static unsigned roll(unsigned sides)
{
	dice = dice * 1103515245U + 12345U;
	return (dice >> 8) % sides;
}

/* Mostly small, often empty, sometimes larger than any buffer on the way. */
static size_t roll_size(void)
{
	switch (roll(4)) {
	case 0:
		return 0;
	case 1:
		return roll(INPUT_MAX);
	default:
		return roll(5000);
	}
}

static void job_start(struct job *job)
{
	char script[64];
	memset(job, 0, sizeof(*job));
	job->is_used = true;
	job->size = roll_size();
	job->code = (int)roll(100);
	snprintf(script, sizeof(script), "cat; exit %d", job->code);
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	heard_start(&job->heard, &stage, &(struct exec_spec){.argv = argv, .want_stdin = true});
}

static void job_send(struct job *job)
{
	while (job->heard.in >= 0 && job->sent < job->size) {
		ssize_t sent = write(job->heard.in, input + job->sent, job->size - job->sent);
		if (sent < 0) {
			assert_int_equal(errno, EAGAIN);
			return;
		}
		job->sent += (size_t)sent;
	}
	fd_close(&job->heard.in);
}

/* Returns true when the job has ended as it should. */
static bool job_step(struct job *job)
{
	struct heard *heard = &job->heard;
	job_send(job);
	if (strpbrk(heard->told, "fl")) {
		fail_msg("told \"%s\": %s", heard->told, heard->err.text);
	}
	if (strcmp(heard->told, "sxe") != 0 || !heard->is_at_end[0] || !heard->is_at_end[1]) {
		return false;
	}
	assert_int_equal(heard->status.code, job->code);
	assert_int_equal(heard->bytes[0].len, job->size);
	if (job->size > 0) {
		assert_memory_equal(buf_span(&heard->bytes[0]).data, input, job->size);
	}
	heard_finish(heard);
	job->is_used = false;
	return true;
}

static void fail_stalled(int done)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		const struct job *job = &jobs[i];
		if (job->is_used) {
			print_error("told \"%s\", %zu of %zu bytes sent, %zu came back\n",
				job->heard.told, job->sent, job->size, job->heard.bytes[0].len);
		}
	}
	fail_msg("nothing has ended for %d ms, after %d of %d", STALL_MS, done, count);
}

static void run_all(int at_once)
{
	int started = 0, done = 0;
	long long moved_ms = clock_now_ms();
	while (done < count) {
		for (int i = 0; i < at_once; i++) {
			if (jobs[i].is_used && job_step(&jobs[i])) {
				done++;
				moved_ms = clock_now_ms();
			}
			if (!jobs[i].is_used && started < count) {
				job_start(&jobs[i]);
				started++;
			}
		}
		stage_run_for(&stage, 1);
		if (clock_now_ms() - moved_ms > STALL_MS) {
			fail_stalled(done);
		}
	}
}

static int count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int found = 0;
	assert_non_null(folder);
	while (readdir(folder)) {
		found++;
	}
	closedir(folder);
	return found;
}

static void run_and_look(int at_once)
{
	char token[64];
	int fds = count_fds();
	long long start_ms = clock_now_ms();
	real_stage_init(&stage);
	stage.request.channel_timeout_ms = STALL_MS;
	stage_open(&stage);
	snprintf(token, sizeof(token), "%s", stage.host->token);
	int fds_ready = count_fds();
	run_all(at_once);
	stage_run_for(&stage, 200); // channels are closed, another one is made for the next
	print_message("%d at once: %lld ms, %zu connections, %d descriptors before and %d after\n",
		at_once, clock_now_ms() - start_ms, ssh_link_count(stage.host), fds_ready,
		count_fds());
	assert_true(list_is_empty(&stage.host->processes));
	stage_finish(&stage);
	stage_expect_none_left(token);
	long long deadline_ms = clock_now_ms() + STALL_MS;
	while (sshd_count_connections(real_stage_sshd()) > 0 && clock_now_ms() < deadline_ms) {
		usleep(10000);
	}
	assert_int_equal(sshd_count_connections(real_stage_sshd()), 0);
	assert_int_equal(count_fds(), fds);
}

static void test_one_after_the_other(void **state)
{
	run_and_look(1);
}

static void test_five_at_once(void **state)
{
	run_and_look(5);
}

/* More than one connection takes. */
static void test_thirty_at_once(void **state)
{
	run_and_look(JOBS_MAX);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !real_stage_begin(argv[1])) {
		return 1;
	}
	count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : COUNT;
	if (argc > 3) {
		cmocka_set_test_filter(argv[3]);
	}
	for (size_t i = 0; i < sizeof(input); i++) {
		input[i] = (char)roll(256);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thirty_at_once),
		cmocka_unit_test(test_five_at_once),
		cmocka_unit_test(test_one_after_the_other),
	};
	int failed = cmocka_run_group_tests(tests, real_stage_set_up, real_stage_tear_down);
	real_stage_end();
	return failed;
}
