/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_NAIVE_GLOB_H
#define TESTS_FUZZ_NAIVE_GLOB_H

#include <stdbool.h>

/*
 * Globs matched in the plainest way: every way to divide the text among the
 * stars is tried, each pair of places once. It shares no code with base/glob
 * and is what that is compared to. For patterns that glob_check passes.
 */
enum { NAIVE_MAX = 256 }; // bytes of a pattern, and of a text

bool naive_glob(const char *pattern, const char *path);
bool naive_glob_anywhere(const char *pattern, const char *path);
bool naive_glob_flat(const char *pattern, const char *text);

#endif
