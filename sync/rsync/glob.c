/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>

#include "sync/rsync/rules.h"

/* The agent may write the patterns: after this many tries of stars, nothing matches. */
enum { TRIES_MAX = 100000 };

static const struct {
	const char *name;
	int (*is)(int byte);
} classes[] = {
	{"alnum", isalnum},
	{"alpha", isalpha},
	{"blank", isblank},
	{"cntrl", iscntrl},
	{"digit", isdigit},
	{"graph", isgraph},
	{"lower", islower},
	{"print", isprint},
	{"punct", ispunct},
	{"space", isspace},
	{"upper", isupper},
	{"xdigit", isxdigit},
};

static bool in_class(const char *name, size_t length, unsigned char byte)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strlen(classes[i].name) == length &&
			memcmp(classes[i].name, name, length) == 0) {
			return classes[i].is(byte) != 0;
		}
	}
	return false;
}

/* One item of a bracket at *at: a byte, a range or a class. Moves *at behind it. */
static bool item_has(const char **at, unsigned char byte)
{
	const char *p = *at;
	const char *end = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;
	if (end) {
		*at = end + 2;
		return in_class(p + 2, (size_t)(end - p - 2), byte);
	}
	p += p[0] == '\\' && p[1];
	unsigned char from = (unsigned char)*p++;
	unsigned char to = from;
	if (p[0] == '-' && p[1] && p[1] != ']') {
		p++;
		p += p[0] == '\\' && p[1];
		to = (unsigned char)*p++;
	}
	*at = p;
	return from <= byte && byte <= to;
}

/* Whether the bracket at *at, behind its "[", has the byte; moves *at behind the bracket. */
static bool bracket_has(const char **at, unsigned char byte)
{
	const char *p = *at;
	bool is_negated = *p == '!' || *p == '^';
	bool has = false;
	p += is_negated;
	do {
		if (!*p) {
			return false;
		}
		has |= item_has(&p, byte);
	} while (*p != ']');
	*at = p + 1;
	return has != is_negated && byte != '/';
}

static bool match(const char *p, const char *t, int *tries);

static bool match_star(const char *p, const char *t, int *tries)
{
	bool takes_slash = p[1] == '*';
	while (*p == '*') {
		p++;
	}
	for (;; t++) {
		if (--*tries < 0) {
			return false;
		}
		if (match(p, t, tries)) {
			return true;
		}
		if (!*t || (*t == '/' && !takes_slash)) {
			return false;
		}
	}
}

static bool match(const char *p, const char *t, int *tries)
{
	for (; *p; t++) {
		if (*p == '*') {
			return match_star(p, t, tries);
		}
		if (!*t) {
			return false;
		}
		if (*p == '?') {
			p++;
			if (*t == '/') {
				return false;
			}
		} else if (*p == '[') {
			p++;
			if (!bracket_has(&p, (unsigned char)*t)) {
				return false;
			}
		} else {
			p += p[0] == '\\' && p[1];
			if (*p++ != *t) {
				return false;
			}
		}
	}
	return !*t;
}

bool rules_glob(const char *pattern, const char *text)
{
	int tries = TRIES_MAX;
	return match(pattern, text, &tries);
}
