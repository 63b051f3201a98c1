/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_PLAIN_H
#define TESTS_BENCH_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* The calls of the system that an agent would make itself. False where one fails, which is said. */

/* Reads a file of at most size bytes; false also where it has another length. */
bool plain_read(const char *path, char *out, size_t size);

/* A temporary file beside it, written, synchronised and renamed. */
bool plain_write(const char *path, const char *data, size_t len);

/* Runs argv (argv[0] is looked up in PATH) until it has ended with status 0. */
bool plain_run(const char *const *argv);

#endif
