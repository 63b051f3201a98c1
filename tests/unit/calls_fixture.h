/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CALLS_FIXTURE_H
#define TESTS_UNIT_CALLS_FIXTURE_H

#include <stdbool.h>

/*
 * Counts the system calls by which sync/ looks at and changes files; the linker puts this file's
 * functions before libc's. A test can run code before a chosen call, or make that call fail. Calls
 * of that code are not counted.
 */
struct calls {
	bool is_on;
	int count;                  // so far
	int at;                     // the chosen one, from 1
	void (*before)(void *data); // may be NULL
	void *data;
	int fail_with;   // errno; 0: it is made
	bool has_failed; // the chosen call is one that can be made to fail
};

extern struct calls calls;

/* The file system knows neither hard links nor the flags of renameat2(2), as exFAT in FUSE. */
extern bool calls_are_of_a_plain_disk;

void calls_begin(int at); // counts from 0, with nothing happening
void calls_end(void);

#endif
