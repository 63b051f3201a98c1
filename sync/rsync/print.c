/* SPDX-License-Identifier: MIT */
#include "sync/rsync/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { SUM_LENGTH = 64, WORDS = 6 };

#define SECONDS_MAX 1000000000000000LL

static const char hexadecimal[] = "0123456789abcdef";

static bool is_sum(const char *text)
{
	return strlen(text) == SUM_LENGTH && strspn(text, hexadecimal) == SUM_LENGTH;
}

static bool is_boot(const char *text)
{
	return *text && strlen(text) < sizeof(((struct print *)NULL)->boot) &&
	       strspn(text, "0123456789abcdef-") == strlen(text);
}

/* Reads seconds; limited so that their differences do not overflow. */
static bool read_number(long long *out, const char *text)
{
	char *end;
	*out = strtoll(text, &end, 10);
	return end > text && !*end && *out >= 0 && *out <= SECONDS_MAX;
}

/* A fraction of zeros means, or may mean, a clock with whole seconds. */
static bool has_fraction(const char *time)
{
	const char *fraction = strchr(time, '.');
	return fraction && fraction[1 + strspn(fraction + 1, "0")];
}

bool print_read(struct print *print, struct span answer, struct span *out_more)
{
	static const char end[] = "\0end";
	const char *words[WORDS];
	size_t count = 0, at = 0;
	if (!span_ends_with(answer, (struct span){end, sizeof(end)})) {
		return false;
	}
	for (; count < WORDS && at < answer.len; at += strlen(answer.data + at) + 1) {
		words[count++] = answer.data + at;
	}
	size_t last = answer.len - sizeof(end) + 1; // the NUL before it must end another word
	if (count != WORDS || at > last || !is_sum(words[0]) || !is_boot(words[1])) {
		return false;
	}
	*out_more = (struct span){answer.data + at, last - at};
	*print = (struct print){.is_fine = has_fraction(words[3])};
	text_whole(print->sum, sizeof(print->sum), "%s", words[0]);
	text_whole(print->boot, sizeof(print->boot), "%s", words[1]);
	return read_number(&print->newest, words[2]) && read_number(&print->now, words[4]) &&
	       read_number(&print->since_boot, words[5]);
}

bool print_is_settled(const struct print *print)
{
	return print->is_fine && print->newest + PRINT_SETTLED_S <= print->now;
}

bool print_is_comparable(const struct print *before, const struct print *after)
{
	/* After the clock was set, a time may occur a second time. */
	long long drift = (after->now - after->since_boot) - (before->now - before->since_boot);
	return strcmp(before->boot, after->boot) == 0 && llabs(drift) <= PRINT_CLOCK_S &&
	       after->now >= before->now;
}

bool print_is_same(const struct print *before, const struct print *after)
{
	return strcmp(before->sum, after->sum) == 0 && print_is_comparable(before, after);
}

void print_format(const struct print *print, char text[PRINT_TEXT_MAX])
{
	text_whole(text, PRINT_TEXT_MAX, "%s %s %lld %lld %lld", print->sum, print->boot,
		print->newest, print->now, print->since_boot);
}

bool print_parse(struct print *print, const char *text)
{
	int end = 0;
	*print = (struct print){.is_fine = true};
	return sscanf(text, "%64s %40s %lld %lld %lld%n", print->sum, print->boot, &print->newest,
		       &print->now, &print->since_boot, &end) == 5 &&
	       !text[end] && is_sum(print->sum) && is_boot(print->boot);
}
