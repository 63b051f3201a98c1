/* SPDX-License-Identifier: MIT */
#ifndef BASE_TIMESTAMP_H
#define BASE_TIMESTAMP_H

enum { TIMESTAMP_SIZE = 40 }; // bytes of "2026-01-31T12:00:00.000Z", with room

/* The time in UTC as RFC 3339 has it, with milliseconds. Returns text. */
const char *timestamp_now(char text[TIMESTAMP_SIZE]);

#endif
