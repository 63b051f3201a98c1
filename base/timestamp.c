/* SPDX-License-Identifier: MIT */
#include "base/timestamp.h"

#include <stdio.h>
#include <time.h>

const char *timestamp_now(char text[TIMESTAMP_SIZE])
{
	struct timespec now;
	struct tm utc;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	size_t len = strftime(text, TIMESTAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + len, TIMESTAMP_SIZE - len, ".%03ldZ", now.tv_nsec / 1000000);
	return text;
}
