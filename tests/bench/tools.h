/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_TOOLS_H
#define TESTS_BENCH_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/bench/ask.h"

/*
 * Files and commands, asked for over ACP and done by the same calls of the
 * system right here, in turns: what the way over the client costs.
 *
 * Measures "OPERATION SIZE COUNT WHO": read, write, run or output; bytes; how
 * often each; "both", or "plain" without asking anybody. Writes
 * {"plain_us": MEDIAN, "asked_us": MEDIAN} to out. What is answered is compared
 * with what must be; a difference is said on stderr, and false.
 */
bool tools_measure(struct asker *asker, const char *what, char *out, size_t out_size);

/* Writes so many bytes of text to stdout: the command that "output" runs. */
bool tools_write_text(unsigned long long bytes);

#endif
