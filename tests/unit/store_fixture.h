/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/snapshot.h"
#include "sync/store.h"

/* Gives each test its own folder, with a store and a work tree in it. */
enum { FIXTURE_PATH_MAX = 512 };
struct place {
	char folder[FIXTURE_PATH_MAX]; // removed with all in it
	char store_path[FIXTURE_PATH_MAX];
	char root[FIXTURE_PATH_MAX];
	struct store store;
	struct snapshot last; // of place_take
};

int place_setup(void **state); // *state is a struct place
int place_teardown(void **state);

/* Runs a shell script in the work tree, with HOME in the folder; it must succeed. */
void place_run(struct place *place, const char *script);
/* Like place_run; returns the output, owned by the caller. */
char *place_ask(struct place *place, const char *script);

/* A path below the work tree, valid until the eighth call after it. */
const char *place_path(struct place *place, const char *name);
void place_write(struct place *place, const char *name, const char *content);

/*
 * Takes a snapshot of the work tree, with a stat cache, and returns its tree. `base` may be NULL.
 */
git_oid place_take(struct place *place, const git_oid *base);
/* Like place_take, but the caller fills in the request, except for root, home and cache. */
git_oid place_take_as(struct place *place, struct snapshot_request request);

/* The paths in a tree, sorted as git does, each with its mode and "\n": "100644 a/b\n". */
void assert_tree(struct place *place, const git_oid *tree, const char *expected);
/* The paths alone: "a/b\nc\n". */
void assert_paths(struct place *place, const git_oid *tree, const char *expected);

#endif
