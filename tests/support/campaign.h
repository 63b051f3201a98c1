/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CAMPAIGN_H
#define TESTS_SUPPORT_CAMPAIGN_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * How much is made of what is random, or is tried at every system call: a part, the same every day
 * and for everybody; all of it, with another seed each time, where ACP_WHOLE=1.
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

/* From one moment to the next that is tried. */
static inline int campaign_step(int step)
{
	return campaign_is_whole() ? 1 : step;
}

/* As the variable of the environment says, which a failed test has printed. */
static inline unsigned long long campaign_seed(const char *variable)
{
	const char *text = getenv(variable);
	if (text && *text) {
		return strtoull(text, NULL, 10);
	}
	return campaign_is_whole() ? (unsigned long long)time(NULL) : 4711;
}

#endif
