/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_HELD_FIXTURE_H
#define TESTS_UNIT_HELD_FIXTURE_H

#include "sync/guard_paths.h"
#include "tests/unit/workspace_fixture.h"

/* A workspace with guarded files, and the user's answers. */

static inline void reopen(struct fixture *fixture, const struct guard_paths *guard)
{
	workspace_destroy(fixture->workspace);
	fixture->request.guard_paths = guard;
	fixture->workspace = workspace_create(&fixture->request);
}

/* Both sides have "a" and a .envrc of one line; the default is guarded. */
static inline void begin_guarded(struct fixture *fixture)
{
	struct error err;
	struct guard_paths *guard = guard_paths_create(NULL, &err);
	assert_non_null(guard);
	reopen(fixture, guard);
	guard_paths_destroy(guard); // it was copied
	run(fixture, "echo a > a; echo old > .envrc");
	sync_once(fixture);
	expect_same(fixture);
}

static inline void sync_held(struct fixture *fixture, size_t count, bool is_news)
{
	sync_once(fixture);
	assert_int_equal(fixture->result.held_count, count);
	assert_int_equal(fixture->result.is_held_news, is_news);
	assert_int_equal(fixture->result.conflict_count, 0);
}

static inline void answer(struct fixture *fixture, enum held_answer what)
{
	static char path[] = ".envrc";
	char *paths[] = {path, NULL};
	workspace_answer_held(fixture->workspace, &fixture->result.held_tree, paths, what);
}

#endif
