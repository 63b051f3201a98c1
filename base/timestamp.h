/* SPDX-License-Identifier: MIT */
#ifndef BASE_TIMESTAMP_H
#define BASE_TIMESTAMP_H

#include <stdbool.h>
#include <time.h>

enum { TIMESTAMP_SIZE = 40 }; // bytes of "2026-01-31T12:00:00.000Z", with room

/* The time in UTC in the format of RFC 3339, with milliseconds. Returns text. Takes no lock. */
const char *timestamp_now(char text[TIMESTAMP_SIZE]);
const char *timestamp_text(char text[TIMESTAMP_SIZE], const struct timespec *time); // of any time

static inline bool timespec_equals(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

#endif
