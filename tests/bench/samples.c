/* SPDX-License-Identifier: MIT */
#include "tests/bench/samples.h"

#include <stddef.h>
#include <stdlib.h>

uint64_t clock_ns(clockid_t clock)
{
	struct timespec at = {0};

	(void)clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000U + (uint64_t)at.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static int compare_ns(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a;
	const uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

void samples_sort(uint64_t *ns, unsigned count)
{
	qsort(ns, count, sizeof(*ns), compare_ns);
}

double samples_percentile_us(const uint64_t *sorted, unsigned count, unsigned percent)
{
	const size_t at = (size_t)(count - 1) * percent / 100;

	return (double)sorted[at] / 1e3;
}
