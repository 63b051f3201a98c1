/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FACTS_H
#define TESTS_SUPPORT_FACTS_H

/*
 * Messages for people may be reworded, so tests compare only the facts in them. A fact is a path, a
 * name, a number, a setting, or up to four words that tell it from another message. One text has
 * several facts, in any order: "profile.p.network | open | \"closed\"".
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static inline bool fact_is_word(int c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether a word continues after its end: "sync" in "sync-timeout", the 2 in "2.0". */
static inline bool fact_goes_on(int end, int next, int after)
{
	bool is_joined =
		(next == '-' && fact_is_word(after)) ||
		(next == '.' && isdigit((unsigned char)end) && isdigit((unsigned char)after));
	return fact_is_word(end) && (fact_is_word(next) || is_joined);
}

/* Whether the text has the fact, and not only as a part of a longer word, name or number. */
static inline bool text_has_fact(const char *text, const char *fact, size_t len)
{
	for (const char *at = text; (at = memmem(at, strlen(at), fact, len)) != NULL; at++) {
		unsigned char before = at > text ? (unsigned char)at[-1] : 0;
		unsigned char end = (unsigned char)at[len];
		if (!fact_goes_on(*at, before, at - text > 1 ? at[-2] : 0) &&
			!fact_goes_on(at[len - 1], end, end ? at[len + 1] : 0)) {
			return true;
		}
	}
	return false;
}

/* Whether the text has each of the facts. */
static inline bool text_names(const char *text, const char *facts)
{
	for (;;) {
		const char *end = strstr(facts, " | ");
		size_t len = end ? (size_t)(end - facts) : strlen(facts);
		if (len > 0 && !text_has_fact(text, facts, len)) {
			return false;
		}
		if (!end) {
			return true;
		}
		facts = end + 3;
	}
}

static inline void assert_names_at(const char *text, const char *facts, const char *file, int line)
{
	if (!text_names(text, facts)) {
		print_error("\"%s\" does not name each of: %s\n", text, facts);
		_fail(file, line);
	}
}

#define assert_names(text, facts) assert_names_at(text, facts, __FILE__, __LINE__)

#endif
