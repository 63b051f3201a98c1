/* SPDX-License-Identifier: MIT */
#include "base/timestamp.h"

#include "base/text.h"

enum {
	DAY_S = 24 * 3600,
	ERA_DAYS = 146097,   // in 400 years
	EPOCH_DAYS = 719468, // from 0000-03-01 to 1970-01-01
};

/*
 * Years begin in March here, so that a leap day is the last day of a year. We do not use gmtime_r:
 * it takes the lock of the time zones, which another thread may have held at a fork.
 */
static void date_of_day(long long day, long long *out_year, int *out_month, int *out_day)
{
	day += EPOCH_DAYS;
	long long era = (day >= 0 ? day : day - (ERA_DAYS - 1)) / ERA_DAYS;
	int of_era = (int)(day - era * ERA_DAYS);
	int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
	int of_year = of_era - (365 * year + year / 4 - year / 100);
	int month = (5 * of_year + 2) / 153; // 0: March
	*out_day = of_year - (153 * month + 2) / 5 + 1;
	*out_month = month < 10 ? month + 3 : month - 9;
	*out_year = era * 400 + year + (*out_month <= 2);
}

const char *timestamp_text(char text[TIMESTAMP_SIZE], const struct timespec *time)
{
	long long day = time->tv_sec / DAY_S;
	int second = (int)(time->tv_sec % DAY_S);
	if (second < 0) {
		day--;
		second += DAY_S;
	}
	long long year;
	int month, of_month;
	date_of_day(day, &year, &month, &of_month);
	text_format(text, TIMESTAMP_SIZE, "%04lld-%02d-%02dT%02d:%02d:%02d.%03ldZ", year, month,
		of_month, second / 3600, second / 60 % 60, second % 60, time->tv_nsec / 1000000);
	return text;
}

const char *timestamp_now(char text[TIMESTAMP_SIZE])
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return timestamp_text(text, &now);
}
