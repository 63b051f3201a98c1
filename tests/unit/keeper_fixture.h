/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_KEEPER_FIXTURE_H
#define TESTS_UNIT_KEEPER_FIXTURE_H

#include <setjmp.h>
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
#include "base/log.h"
#include "broker/ledger/keeper.h"
#include "broker/ledger/record.h"
#include "providers/impl.h"
#include "tests/unit/dir_transport.h"

/* Two workspaces, "a" and "b", and their runtime roots, "ra" and "rb", in one folder. */
struct fixture {
	struct ev_loop *loop;
	struct pool *pool;
	char folder[64];
	char state[96];
	struct sandbox sandbox;
	int destroys, rests;
	struct sync_settings settings;
	struct keeper *keeper;
	int told;
	int questions; // about deletions
	bool is_ok;
	struct error err;
	struct record record; // the last one read
	int records;
};

/* ---- a sandbox ---- */

static inline void destroy_sandbox(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	CONTAINER_OF(sandbox, struct fixture, sandbox)->destroys++;
	sandbox_raise_later(sandbox, done, data, NULL);
}

static inline void close_sandbox(struct sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->root_count; i++) {
		free((char *)sandbox->roots[i].local);
		free((char *)sandbox->roots[i].runtime);
	}
	free(sandbox->roots);
}

static const struct sandbox_impl sandbox_impl = {
	.destroy = destroy_sandbox, .close = close_sandbox};

static inline char *path_of(const struct fixture *fixture, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
	return mem_strdup(path);
}

static inline void add_root(struct fixture *fixture, const char *local, const char *runtime)
{
	struct sandbox *sandbox = &fixture->sandbox;
	sandbox->roots =
		mem_realloc(sandbox->roots, (sandbox->root_count + 1) * sizeof(*sandbox->roots));
	sandbox->roots[sandbox->root_count++] = (struct sandbox_root){
		.local = path_of(fixture, local), .runtime = path_of(fixture, runtime)};
}

/* ---- life ---- */

static inline void run(const struct fixture *fixture, const char *script)
{
	char command[1024];
	snprintf(command, sizeof(command), "cd %s && { %s; }", fixture->folder, script);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
}

static inline void on_ended(void *data, const struct keeper_event *event,
	const struct sync_result *result, const struct error *err)
{
}

static inline void on_question(
	void *data, const struct keeper_event *event, const struct deletions *deletions)
{
	struct fixture *fixture = data;
	fixture->questions++;
}

static const struct keeper_listener listener = {.on_ended = on_ended, .on_question = on_question};

static inline void begin(struct fixture *fixture)
{
	fixture->keeper = keeper_create(&(struct keeper_config){
		.loop = fixture->loop,
		.pool = fixture->pool,
		.sandbox = &fixture->sandbox,
		.settings = &fixture->settings,
		.profile = "p",
		.backend = "fake",
		.state_folder = fixture->state,
		.listener = &listener,
		.data = fixture,
	});
}

static inline int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	log_set_level(LOG_LEVEL_ERROR);
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-keeper-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	snprintf(fixture->state, sizeof(fixture->state), "%s/state", fixture->folder);
	run(fixture, "mkdir a b ra rb; echo a >a/f; echo b >b/f");
	sandbox_init(&fixture->sandbox, &sandbox_impl, fixture->loop);
	fixture->sandbox.was_ready = true;
	fixture->sandbox.capabilities.isolated = true;
	fixture->settings = (struct sync_settings){.mode = SYNC_MODE_TURN,
		.persistence = PERSISTENCE_TRANSIENT,
		.limits = snapshot_default_limits,
		.timeout_ms = 60000,
		.lock_timeout_ms = 60000,
		.max_checkpoints = 10,
		.create_transport = dir_transport_create};
	dir_transport_hooks = (struct dir_transport_hooks){0};
	add_root(fixture, "a", "ra");
	begin(fixture);
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;
	keeper_destroy(fixture->keeper);
	sandbox_close(&fixture->sandbox);
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	record_finish(&fixture->record);
	run(fixture, "rm -rf a b ra rb state link other");
	assert_int_equal(rmdir(fixture->folder), 0);
	free(fixture);
	return 0;
}

/* ---- requests to the keeper ---- */

static inline void on_done(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	fixture->told++;
	fixture->is_ok = err == NULL;
	if (err) {
		fixture->err = *err;
	}
}

static inline void wait_done(struct fixture *fixture)
{
	int told = fixture->told;
	while (fixture->told == told) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(fixture->told, told + 1);
}

static inline void open_root(struct fixture *fixture, const char *name)
{
	char *path = path_of(fixture, name);
	keeper_open(fixture->keeper, (char *[]){path, NULL}, on_done, fixture);
	free(path);
	wait_done(fixture);
}

static inline void announce(struct fixture *fixture, const char *name)
{
	char *path = path_of(fixture, name);
	assert_true(keeper_announce(fixture->keeper, (char *[]){path, NULL}, on_done, fixture));
	free(path);
	wait_done(fixture);
}

static inline void sync_root(struct fixture *fixture, const char *name)
{
	char *path = path_of(fixture, name);
	struct sync_order order = {.reason = SYNC_REASON_TURN};
	keeper_sync(fixture->keeper, (char *[]){path, NULL}, &order, on_done, fixture);
	free(path);
	wait_done(fixture);
}

static inline void close_keeper(struct fixture *fixture)
{
	keeper_close(fixture->keeper, on_done, fixture);
	wait_done(fixture);
}

static inline void renew(struct fixture *fixture)
{
	keeper_destroy(fixture->keeper);
	begin(fixture);
}

static inline void add_session(struct fixture *fixture, const char *name, const char *session)
{
	char *path = path_of(fixture, name);
	keeper_add_session(fixture->keeper, (char *[]){path, NULL}, session);
	free(path);
	ev_run(fixture->loop, 0);
}

struct reading {
	struct fixture *fixture;
	int folder_fd;
	char *local;
};

static inline void read_record(void *data, const char *id)
{
	struct reading *reading = data;
	struct record record;
	struct error err;
	reading->fixture->records++;
	assert_true(record_load(reading->folder_fd, id, &record, &err));
	if (strcmp(record.local_root, reading->local) != 0) {
		record_finish(&record);
		return;
	}
	record_finish(&reading->fixture->record);
	reading->fixture->record = record;
}

/* The last record of a workspace, as it is on the disk; valid until the next call. */
static const struct record *record_of(struct fixture *fixture, const char *local)
{
	struct error err;
	struct reading reading = {.fixture = fixture,
		.folder_fd = record_folder_open(fixture->state, &err),
		.local = path_of(fixture, local)};
	fixture->records = 0;
	assert_true(record_visit(reading.folder_fd, read_record, &reading, &err));
	fd_close(&reading.folder_fd);
	free(reading.local);
	return &fixture->record;
}

#define KEEPER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
