/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RANDOM_FIXTURE_H
#define TESTS_UNIT_RANDOM_FIXTURE_H

/*
 * A worker that changes files in a folder at random. The same state (which is not 0) gives the same
 * changes.
 */
struct random_worker {
	unsigned long long state;
	unsigned writes; // so that no two texts are the same
};

unsigned random_pick(struct random_worker *worker, unsigned below);

/* Writes, edits, deletes, renames, links, and changes modes, `count` times. */
void random_work(struct random_worker *worker, const char *root, unsigned count);

/* Replaces one line of an existing text by a new one. */
void random_edit(struct random_worker *worker, const char *path);

#endif
