/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_NAIVE_GLOB_H
#define TESTS_FUZZ_NAIVE_GLOB_H

#include <stdbool.h>

/*
 * Matches globs in the simplest way: tries every way to divide the text among the stars, each pair
 * of positions once. It shares no code with base/glob, and the fuzz target compares the two. For
 * patterns that glob_check accepts.
 */
enum { NAIVE_MAX = 256 }; // bytes of a pattern, and of a text

bool naive_glob(const char *pattern, const char *path);
bool naive_glob_anywhere(const char *pattern, const char *path);
bool naive_glob_flat(const char *pattern, const char *text);

#endif
