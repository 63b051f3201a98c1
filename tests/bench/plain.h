/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_PLAIN_H
#define TESTS_BENCH_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The system calls that an agent would make itself. If one fails, the functions report it on stderr
 * and return false.
 */

/* Reads the first `size` bytes of a file; false also if it has fewer. */
bool plain_read(const char *path, char *out, size_t size);

/* Replaces a file: writes a temporary file beside it, syncs it and renames it. */
bool plain_write(const char *path, const char *data, size_t len);

/* Runs argv (argv[0] is looked up in PATH) until it has ended with status 0. */
bool plain_run(const char *const *argv);

#endif
