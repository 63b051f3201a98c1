/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/host_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/host_impl.h"
#include "tests/support/ssh/pipe_client.h"

enum { TICK_MS = 2, ENVIRON_MAX = 1 << 18 };

/* ---- the loop ---- */

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}

static void run(struct stage *stage, const bool *flag, int ms)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, TICK_MS / 1000., TICK_MS / 1000.);
	ev_timer_start(stage->loop, &tick);
	long long deadline_ms = clock_now_ms() + ms;
	while (!(flag && *flag) && clock_now_ms() < deadline_ms) {
		ev_run(stage->loop, EVRUN_ONCE);
	}
	ev_timer_stop(stage->loop, &tick);
}

void stage_run_until(struct stage *stage, const bool *flag)
{
	run(stage, flag, STAGE_DEADLINE_MS);
	if (!*flag && stage->has_failed) {
		fail_msg("%s", stage->err.text);
	}
	assert_true(*flag);
}

void stage_run_for(struct stage *stage, int ms)
{
	run(stage, NULL, ms);
}

/* ---- the host ---- */

static void on_progress(void *data, const char *text)
{
	struct stage *stage = data;
	size_t len = strlen(stage->progress);
	snprintf(stage->progress + len, sizeof(stage->progress) - len, "%s\n", text);
	if (strstr(text, "did not answer within")) {
		stage->host->request.login_timeout_ms = STAGE_DEADLINE_MS; // the next one has time
	}
}

static void on_ready(void *data)
{
	((struct stage *)data)->is_ready = true;
}

static void on_link_lost(void *data, const struct error *why)
{
	((struct stage *)data)->losses++;
}

static void on_link_back(void *data)
{
	((struct stage *)data)->returns++;
}

static void on_host_failed(void *data, const struct error *err)
{
	struct stage *stage = data;
	stage->has_failed = true;
	stage->err = *err;
}

static const struct ssh_host_listener host_listener = {.on_progress = on_progress,
	.on_ready = on_ready,
	.on_link_lost = on_link_lost,
	.on_link_back = on_link_back,
	.on_failed = on_host_failed};

void stage_init(struct stage *stage)
{
	struct ev_loop *loop = stage->has_loop ? stage->loop : ev_loop_new(0);
	*stage = (struct stage){.loop = loop, .has_loop = stage->has_loop};
	stage->context.loop = stage->loop;
	stage->target = (struct ssh_target){.alias = (char *)"box", .host = (char *)"127.0.0.1"};
	stage->request = (struct ssh_host_request){
		.context = &stage->context,
		.target = &stage->target,
		.connect = pipe_client_connect,
		.grace_ms = 60000,
		.channel_timeout_ms = 20000,
		.login_timeout_ms = 20000,
		.max_connections = 4,
		.warm_channels = 1,
	};
}

void stage_start(struct stage *stage)
{
	struct error err;
	stage->host = ssh_host_open(&stage->request, &host_listener, stage, &err);
	if (!stage->host) {
		fail_msg("%s", err.text);
	}
	assert_false(stage->is_ready || stage->has_failed);
}

void stage_open(struct stage *stage)
{
	stage_start(stage);
	stage_run_until(stage, &stage->is_ready);
}

void stage_finish(struct stage *stage)
{
	ssh_host_close(stage->host);
	stage->host = NULL;
	stage_run_for(stage, 10);
	if (!stage->has_loop) {
		ev_loop_destroy(stage->loop);
	}
}

/* ---- processes on the host ---- */

static void tell(struct heard *heard, char event)
{
	size_t len = strlen(heard->told);
	assert_in_range(len, 0, sizeof(heard->told) - 2);
	heard->told[len] = event;
}

static void on_started(void *data)
{
	tell(data, 's');
}

static void on_failed(void *data, const struct error *err)
{
	((struct heard *)data)->err = *err;
	tell(data, 'f');
}

static void on_exited(void *data, struct process_status status)
{
	((struct heard *)data)->status = status;
	tell(data, 'x');
}

static void on_emptied(void *data)
{
	tell(data, 'e');
}

static void on_lost(void *data, const struct error *err)
{
	((struct heard *)data)->err = *err;
	tell(data, 'l');
}

static const struct exec_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
};

static void on_output(struct heard *heard, int which)
{
	struct error err;
	char *piece = buf_reserve(&heard->bytes[which], 65536, &err);
	assert_non_null(piece);
	ssize_t count = read(heard->fds[which], piece, 65536);
	if (count > 0) {
		buf_commit(&heard->bytes[which], (size_t)count);
	} else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
		ev_io_stop(heard->stage->loop, &heard->io[which]);
		fd_close(&heard->fds[which]);
		heard->is_at_end[which] = true;
	}
}

static void on_out(struct ev_loop *loop, ev_io *io, int events)
{
	on_output(CONTAINER_OF(io, struct heard, io[0]), 0);
}

static void on_err(struct ev_loop *loop, ev_io *io, int events)
{
	on_output(CONTAINER_OF(io, struct heard, io[1]), 1);
}

void heard_start(struct heard *heard, struct stage *stage, const struct exec_spec *spec)
{
	struct error err;
	struct exec_spec full = *spec;
	full.env = spec->env ? spec->env : ssh_host_facts(stage->host)->environment;
	full.cwd = spec->cwd ? spec->cwd : "/tmp";
	memset(heard, 0, sizeof(*heard));
	heard->stage = stage;
	heard->exec = ssh_host_exec(stage->host, &full, &listener, heard, &err);
	if (!heard->exec) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(heard->told, "");
	heard->in = exec_take_stdin(heard->exec);
	heard->fds[0] = exec_take_stdout(heard->exec);
	heard->fds[1] = exec_take_stderr(heard->exec);
	for (int i = 0; i < 2; i++) {
		buf_init(&heard->bytes[i], HEARD_MAX);
		heard->is_at_end[i] = heard->fds[i] < 0;
		ev_io_init(&heard->io[i], i == 0 ? on_out : on_err, heard->fds[i], EV_READ);
		if (heard->fds[i] >= 0) {
			ev_io_start(stage->loop, &heard->io[i]);
		}
	}
}

void heard_start_shell(struct heard *heard, struct stage *stage, const char *script)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	heard_start(heard, stage, &(struct exec_spec){.argv = argv});
}

void heard_wait(struct heard *heard, const char *told)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (strcmp(heard->told, told) != 0 && clock_now_ms() < deadline_ms) {
		stage_run_for(heard->stage, TICK_MS);
	}
	if (strcmp(heard->told, told) != 0) {
		fail_msg("told \"%s\", expected \"%s\": %s", heard->told, told, heard->err.text);
	}
}

void heard_wait_output(struct heard *heard)
{
	stage_run_until(heard->stage, &heard->is_at_end[0]);
	stage_run_until(heard->stage, &heard->is_at_end[1]);
}

const char *heard_text(struct heard *heard, int which)
{
	struct error err;
	char *end = buf_reserve(&heard->bytes[which], 1, &err);
	assert_non_null(end);
	*end = '\0';
	return buf_span(&heard->bytes[which]).data;
}

void heard_wait_text(struct heard *heard, const char *text)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (!strstr(heard_text(heard, 0), text) && clock_now_ms() < deadline_ms) {
		stage_run_for(heard->stage, TICK_MS);
	}
	assert_non_null(strstr(heard_text(heard, 0), text));
}

void heard_finish(struct heard *heard)
{
	exec_destroy(heard->exec);
	heard->exec = NULL;
	fd_close(&heard->in);
	for (int i = 0; i < 2; i++) {
		ev_io_stop(heard->stage->loop, &heard->io[i]);
		fd_close(&heard->fds[i]);
		buf_finish(&heard->bytes[i]);
	}
}

const char *stage_shell(struct stage *stage, const char *script)
{
	static char text[65536];
	struct heard heard;
	heard_start_shell(&heard, stage, script);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	snprintf(text, sizeof(text), "%s", heard_text(&heard, 0));
	text[strcspn(text, "\n")] = '\0';
	heard_finish(&heard);
	return text;
}

/* ---- processes that are left over ---- */

static bool has_mark(const char *pid, const char *token)
{
	char path[300];
	static char text[ENVIRON_MAX];
	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text));
	fd_close(&fd);
	return count > 0 && memmem(text, (size_t)count, token, strlen(token));
}

size_t stage_count_left(const char *token)
{
	DIR *folder = opendir("/proc");
	size_t count = 0;
	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		         has_mark(entry->d_name, token);
	}
	closedir(folder);
	return count;
}

void stage_expect_none_left(const char *token)
{
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (stage_count_left(token) > 0 && clock_now_ms() < deadline_ms) {
		usleep(20000);
	}
	assert_int_equal(stage_count_left(token), 0);
}
