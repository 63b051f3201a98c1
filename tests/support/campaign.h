/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CAMPAIGN_H
#define TESTS_SUPPORT_CAMPAIGN_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * How much work tests do that make random choices, or try every system call. Usually they do a
 * fixed part, the same every day and for everybody. With ACP_WHOLE=1 they do all of it, with
 * another seed each time.
 */
static inline bool campaign_is_whole(void)
{
	const char *whole = getenv("ACP_WHOLE");
	return whole && strcmp(whole, "1") == 0;
}

static inline int campaign_count(int part, int whole)
{
	return campaign_is_whole() ? whole : part;
}

/* The step from one moment that a test tries to the next. */
static inline int campaign_step(int step)
{
	return campaign_is_whole() ? 1 : step;
}

/* The seed in this environment variable, which a failed test prints; else the default one. */
static inline unsigned long long campaign_seed(const char *variable)
{
	const char *text = getenv(variable);
	if (text && *text) {
		return strtoull(text, NULL, 10);
	}
	return campaign_is_whole() ? (unsigned long long)time(NULL) : 4711;
}

#endif
