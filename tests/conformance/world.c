/* SPDX-License-Identifier: MIT */
#include "tests/conformance/world.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { TICK_MS = 2, REMOVAL_MS = 60 * 1000 };

int world_many(const struct world *world, int count)
{
	enum { FEWER = 4 };
	return world->subject->is_marked ? count / FEWER : count;
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}

static void run_while(const struct world *world, const bool *flag, int ms)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, TICK_MS / 1000., TICK_MS / 1000.);
	ev_timer_start(world->loop, &tick);
	long long deadline_ms = clock_now_ms() + ms;
	while (!(flag && *flag) && clock_now_ms() < deadline_ms) {
		ev_run(world->loop, EVRUN_ONCE);
	}
	ev_timer_stop(world->loop, &tick);
}

void world_run_until(const struct world *world, const bool *flag)
{
	run_while(world, flag, DEADLINE_MS);
	assert_true(*flag);
}

void world_run_for(const struct world *world, int ms)
{
	run_while(world, NULL, ms);
}

const char *world_path(const struct world *world, const char *name)
{
	static char paths[4][PATH_MAX];
	static int next;
	char *path = paths[next++ % 4];
	snprintf(path, PATH_MAX, "%s/%s", world->root, name);
	return path;
}

/* ---- before and after each case ---- */

static int count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;
	assert_non_null(folder);
	while (readdir(folder)) {
		count++;
	}
	closedir(folder);
	return count;
}

static void on_ready(void *data)
{
	*(bool *)data = true;
}

static void on_failed(void *data, const struct error *err)
{
	fail_msg("preparing the sandbox: %s", err->text);
}

static const struct sandbox_listener listener = {.on_ready = on_ready, .on_failed = on_failed};

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* The runner of a sandbox that was closed may be removing its own folder there. */
static bool remove_world(const struct world *world)
{
	long long deadline_ms = clock_now_ms() + REMOVAL_MS;
	while (nftw(world->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 &&
		clock_now_ms() < deadline_ms) {
		world_run_for(world, 10);
	}
	return access(world->folder, F_OK) != 0;
}

int world_set_up(void **state)
{
	struct world *world = *state;
	world->fd_count = count_fds();
	snprintf(world->folder, sizeof(world->folder), "/tmp/conformance-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->local_root, PATH_MAX, "%.4000s/workspace", world->folder);
	assert_int_equal(mkdir(world->local_root, 0755), 0);
	world->context.state_folder = world->folder;
	world->provider = world->subject->create(&world->context, world->folder);
	settings_init(&world->settings);
	if (world->subject->isolation) {
		settings_add(&world->settings, "isolation", world->subject->isolation, "test");
	}

	struct sandbox_request request = {.profile = "test", .settings = &world->settings};
	struct error err;
	bool is_ready = false;
	world->sandbox = sandbox_prepare(world->provider, &request, &listener, &is_ready, &err);
	assert_non_null(world->sandbox);
	world_run_until(world, &is_ready);
	/* A subject with a runner must not pass without it. */
	char *remark = sandbox_take_remark(world->sandbox);
	if (remark && strstr(remark, "the runner")) {
		fail_msg("%s", remark);
	}
	free(remark);
	struct outcome added = {0};
	sandbox_add_root(world->sandbox, world->local_root, outcome_on_done, &added);
	world_run_until(world, &added.is_done);
	assert_true(added.is_ok);
	world->root = sandbox_root_at(world->sandbox, 0)->runtime;
	return 0;
}

int world_tear_down(void **state)
{
	struct world *world = *state;
	sandbox_close(world->sandbox);
	world->sandbox = NULL;
	provider_destroy(world->provider);
	world->provider = NULL;
	settings_finish(&world->settings);
	bool is_removed = remove_world(world);
	world_run_for(world, 10);
	return is_removed && count_fds() == world->fd_count ? 0 : -1;
}

/* ---- file operations ---- */

void outcome_finish(struct outcome *outcome)
{
	buf_finish(&outcome->content);
	*outcome = (struct outcome){0};
}

void outcome_on_done(void *data, const struct error *err)
{
	struct outcome *outcome = data;
	assert_false(outcome->is_done);
	outcome->is_done = true;
	outcome->is_ok = err == NULL;
	if (err) {
		outcome->err = *err;
	}
}

void outcome_on_read(void *data, struct buf *content, const struct error *err)
{
	struct outcome *outcome = data;
	outcome_on_done(data, err);
	buf_init(&outcome->content, SIZE_MAX / 2);
	if (!err) {
		buf_move(&outcome->content, content);
	}
}

static void on_stat(void *data, const struct stat *status, const struct error *err)
{
	struct outcome *outcome = data;
	outcome_on_done(data, err);
	if (!err) {
		outcome->status = *status;
	}
}

static void on_resolve(void *data, const char *path, const struct error *err)
{
	struct outcome *outcome = data;
	outcome_on_done(data, err);
	if (!err) {
		snprintf(outcome->path, sizeof(outcome->path), "%s", path);
	}
}

static void wait_outcome(const struct world *world, const struct outcome *outcome)
{
	assert_false(outcome->is_done); // no event comes from inside the call
	world_run_until(world, &outcome->is_done);
}

void file_read_wait(
	const struct world *world, const char *path, size_t max_bytes, struct outcome *out)
{
	*out = (struct outcome){0};
	assert_non_null(sandbox_read_file(world->sandbox, path, max_bytes, outcome_on_read, out));
	wait_outcome(world, out);
}

void file_write_wait(
	const struct world *world, const char *path, struct span content, struct outcome *out)
{
	*out = (struct outcome){0};
	assert_non_null(sandbox_write_file(world->sandbox, path, content, outcome_on_done, out));
	wait_outcome(world, out);
}

void file_stat_wait(const struct world *world, const char *path, struct outcome *out)
{
	*out = (struct outcome){0};
	assert_non_null(sandbox_stat_file(world->sandbox, path, on_stat, out));
	wait_outcome(world, out);
}

void file_resolve_wait(const struct world *world, const char *path, struct outcome *out)
{
	*out = (struct outcome){0};
	assert_non_null(sandbox_resolve_path(world->sandbox, path, on_resolve, out));
	wait_outcome(world, out);
}

void expect_content(const struct world *world, const char *path, const char *content)
{
	struct outcome read;
	file_read_wait(world, path, SINK_TEXT_MAX, &read);
	if (!read.is_ok) {
		fail_msg("%s", read.err.text);
	}
	assert_int_equal(read.content.len, strlen(content));
	if (read.content.len > 0) {
		assert_memory_equal(buf_span(&read.content).data, content, read.content.len);
	}
	outcome_finish(&read);
}

void expect_written(const struct world *world, const char *path, const char *content)
{
	struct outcome written;
	file_write_wait(world, path, span_of(content), &written);
	if (!written.is_ok) {
		fail_msg("%s", written.err.text);
	}
}

void expect_error(const struct outcome *outcome, enum error_code code, const char *words)
{
	assert_true(outcome->is_done);
	assert_false(outcome->is_ok);
	if (outcome->err.code != code || !strstr(outcome->err.text, words)) {
		fail_msg("error %d \"%s\", expected %d with \"%s\"", (int)outcome->err.code,
			outcome->err.text, (int)code, words);
	}
}

void expect_refused(const struct outcome *outcome, const char *words)
{
	expect_error(outcome, ERROR_DENIED, words);
	assert_non_null(outcome->err.reason);
	assert_string_equal(outcome->err.reason, "SECURITY_VIOLATION");
}
