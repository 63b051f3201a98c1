/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_MOMENT_FIXTURE_H
#define TESTS_UNIT_MOMENT_FIXTURE_H

#include "sync/apply.h"
#include "tests/unit/calls_fixture.h"
#include "tests/unit/tree_fixture.h"

/*
 * Repeats an apply, and lets something happen before its first system call, then before its second,
 * and so on, up to its last one.
 */
struct moment {
	struct place *place;
	git_oid from, to; // trees with something of every kind of change
	size_t left;      // how many paths were left as they are
	char last_left[256];
};

/* Puts the work tree back to what it was before. */
void moment_reset(struct moment *moment, struct place *place);
bool moment_apply(struct moment *moment, const git_oid *from, const git_oid *to, struct error *err);

/* The work tree is as `to` says, nothing was left, and no temporary file is there. */
void moment_assert_finished(struct moment *moment);

/* For calls.before: kills the process. */
void moment_be_killed(void *data);

#endif
