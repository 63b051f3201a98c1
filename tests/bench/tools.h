/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_TOOLS_H
#define TESTS_BENCH_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/bench/ask.h"

/*
 * Measures the cost of asking the client for files and commands: does the same operation in turns
 * over ACP and by system calls in this process.
 *
 * Measures "OPERATION SIZE COUNT WHO": read, write, run or output; bytes; how often each; "both",
 * or "plain" without asking anybody. Writes {"plain_us": MEDIAN, "asked_us": MEDIAN} to out.
 * Compares each answer with the expected one; on a difference reports it on stderr and returns
 * false.
 */
bool tools_measure(struct asker *asker, const char *what, char *out, size_t out_size);

/* Writes this many bytes of text to stdout: the command that "output" runs. */
bool tools_write_text(unsigned long long bytes);

#endif
