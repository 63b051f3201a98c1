/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RANDOM_FIXTURE_H
#define TESTS_UNIT_RANDOM_FIXTURE_H

/* Somebody who works in a folder, the same from the same state (which is not 0). */
struct random_worker {
	unsigned long long state;
	unsigned writes; // so that no two texts are the same
};

unsigned random_pick(struct random_worker *worker, unsigned below);

/* Writes, edits, deletes, renames, links, and changes modes, `count` times. */
void random_work(struct random_worker *worker, const char *root, unsigned count);

/* Replaces a line of a text that is there by a new one. */
void random_edit(struct random_worker *worker, const char *path);

#endif
