/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_SAMPLES_H
#define TESTS_BENCH_SAMPLES_H

#include <stdint.h>
#include <time.h>

/* Times in nanoseconds: of any clock, and of one that nobody sets. */
uint64_t clock_ns(clockid_t clock);
uint64_t now_ns(void);

void samples_sort(uint64_t *ns, unsigned count);

/* Of sorted ones, at least one. */
double samples_percentile_us(const uint64_t *sorted, unsigned count, unsigned percent);

#endif
