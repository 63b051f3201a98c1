/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_WORKSPACE_FIXTURE_H
#define TESTS_UNIT_WORKSPACE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "sync/workspace.h"
#include "tests/unit/dir_transport.h"
#include "tests/unit/store_fixture.h"

/* A workspace whose runtime is the directory "runtime" beside it. */
struct fixture {
	struct place *place;
	struct ev_loop *loop;
	struct pool *pool;
	char runtime[FIXTURE_PATH_MAX + 16];
	struct workspace_request request;
	struct workspace *workspace;
	int told;
	bool is_ok;
	struct sync_result result;
	char conflict[64];     // the path of the first
	const char *why;       // and its
	size_t question_count; // deletions in the last sync's question
	char question_first[64];
	git_oid asked;
	char note[1024];
	struct error err;
};

static inline int set_up(void **state)
{
	void *place = NULL;
	if (place_setup(&place) != 0) {
		return -1;
	}
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->place = place;
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->runtime, sizeof(fixture->runtime), "%s/runtime", fixture->place->folder);
	assert_int_equal(mkdir(fixture->runtime, 0755), 0);
	fixture->request = (struct workspace_request){
		.loop = fixture->loop,
		.pool = fixture->pool,
		.store_folder = fixture->place->store_path,
		.name = "runtime",
		.local_root = fixture->place->root,
		.runtime_root = fixture->runtime,
		.limits = snapshot_default_limits,
		.create_transport = dir_transport_create,
		.timeout_ms = 60000,
		.lock_timeout_ms = 60000,
		.max_checkpoints = 100,
	};
	dir_transport_hooks = (struct dir_transport_hooks){0};
	fixture->workspace = workspace_create(&fixture->request);
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;
	void *place = fixture->place;
	workspace_destroy(fixture->workspace);
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	free(fixture);
	return place_teardown(&place);
}

static inline void on_synced(void *data, const struct sync_result *result, const struct error *err)
{
	struct fixture *fixture = data;
	fixture->told++;
	fixture->is_ok = err == NULL;
	fixture->conflict[0] = '\0';
	const struct deletions *question = workspace_question(fixture->workspace);
	fixture->question_count = question ? question->count : 0;
	if (question) {
		assert_non_null(err);
		snprintf(fixture->question_first, sizeof(fixture->question_first), "%s",
			question->named ? question->named[0] : "");
		fixture->asked = question->id;
	}
	if (err) {
		fixture->err = *err;
		return;
	}
	fixture->result = *result;
	struct conflict *first = LIST_FIRST(result->conflicts, struct conflict, link);
	snprintf(fixture->conflict, sizeof(fixture->conflict), "%s", first ? first->path : "");
	fixture->why = first ? first->why : NULL;
	snprintf(fixture->note, sizeof(fixture->note), "%s", result->note);
}

static inline void begin(struct fixture *fixture, const struct sync_order *order)
{
	workspace_sync(fixture->workspace, order, on_synced, fixture);
}

static inline void sync_with(struct fixture *fixture, const struct sync_order *order)
{
	int told = fixture->told;
	begin(fixture, order);
	assert_int_equal(fixture->told, told);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, told + 1);
}

static inline void sync_once(struct fixture *fixture)
{
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN, .session = "s-1"});
	if (!fixture->is_ok) {
		fail_msg("%s", fixture->err.text);
	}
}

static inline void roll_back(struct fixture *fixture, const char *checkpoint)
{
	sync_with(
		fixture, &(struct sync_order){.reason = SYNC_REASON_TURN, .rollback = checkpoint});
}

/* Runs a shell script. $L and $R are the two directories, and the parked files are below $P. */
static inline char *ask(struct fixture *fixture, const char *format)
{
	char script[4096];
	snprintf(script, sizeof(script), "L=. R='%s' P='%s/parked/*/*/runtime'; %s",
		fixture->runtime, fixture->place->store_path, format);
	return place_ask(fixture->place, script);
}

static inline void run(struct fixture *fixture, const char *script)
{
	free(ask(fixture, script));
}

static inline void expect(struct fixture *fixture, const char *script, const char *output)
{
	char *text = ask(fixture, script);
	assert_string_equal(text, output);
	free(text);
}

static inline void expect_same(struct fixture *fixture)
{
	expect(fixture, "diff -r $L $R && echo same", "same\n");
}

#define WORKSPACE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
