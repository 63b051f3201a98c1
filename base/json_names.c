/* SPDX-License-Identifier: MIT */
#include "base/json_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/settings.h"

enum { QUOTED_NAME_MAX = 100 }; // bytes of a name in a message

struct name {
	struct span text; // decoded
	char *owned;      // for a name with escapes; else NULL
};

/* The state of one check. The names of all open objects lie one after another. */
struct scan {
	const struct json_name_rules *rules;
	const char *at;
	const char *end;
	struct name *names; // owned
	size_t count;
	size_t capacity;
};

/* ---- reading the text, which is known to be well-formed ---- */

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end && strchr(" \t\r\n", *scan->at)) {
		scan->at++;
	}
}

/* Skips the string that begins here; returns its inside, without the quotes. */
static struct span take_string(struct scan *scan)
{
	const char *first = scan->at + 1;
	const char *quote = first - 1;
	for (;;) {
		quote = memchr(quote + 1, '"', (size_t)(scan->end - quote - 1));
		if (!quote) {
			scan->at = scan->end;
			return (struct span){0};
		}
		const char *slash = quote;
		while (slash > first && slash[-1] == '\\') {
			slash--;
		}
		if ((quote - slash) % 2 == 0) {
			scan->at = quote + 1;
			return (struct span){first, (size_t)(quote - first)};
		}
	}
}

static void skip_value(struct scan *scan)
{
	size_t depth = 0;
	skip_space(scan);
	while (scan->at < scan->end) {
		char byte = *scan->at;
		if (byte == '"') {
			take_string(scan);
		} else if (depth == 0 && (byte == ',' || byte == '}' || byte == ']')) {
			return;
		} else {
			depth += byte == '{' || byte == '[' ? 1 : 0;
			depth -= byte == '}' || byte == ']' ? 1 : 0;
			scan->at++;
		}
		if (depth == 0 && (byte == '"' || byte == '}' || byte == ']')) {
			return;
		}
	}
}

/* ---- names ---- */

static bool is_one_of(const char *const *list, struct span name)
{
	for (; list && *list; list++) {
		if (span_is(name, *list)) {
			return true;
		}
	}
	return false;
}

/*
 * The next letter in lower case; two non-ASCII letters count as s and k (Unicode's case folding).
 */
static int next_folded(struct span *text)
{
	size_t len = 1;
	int letter = tolower((unsigned char)text->data[0]);
	if (text->len >= 2 && memcmp(text->data, "\xc5\xbf", 2) == 0) {
		len = 2;
		letter = 's';
	} else if (text->len >= 3 && memcmp(text->data, "\xe2\x84\xaa", 3) == 0) {
		len = 3;
		letter = 'k';
	}
	*text = (struct span){text->data + len, text->len - len};
	return letter;
}

static bool folds_to(struct span name, const char *known)
{
	while (name.len > 0 && *known) {
		if (next_folded(&name) != tolower((unsigned char)*known)) {
			return false;
		}
		known++;
	}
	return name.len == 0 && *known == '\0';
}

static bool refuse(struct span name, const char *why, struct error *err)
{
	char quoted[QUOTED_NAME_MAX];
	char *text = mem_strndup(name);
	setting_quote(quoted, sizeof(quoted), text);
	free(text);
	return error_set_reason(
		err, ERROR_PROTOCOL, "INVALID_PARAMS", "the member %s %s", quoted, why);
}

static bool check_name(const struct scan *scan, struct span name, struct error *err)
{
	if (name.len > 0 && memchr(name.data, '\0', name.len)) {
		return refuse(name, "has a NUL in its name", err);
	}
	for (const char *const *known = scan->rules->known; *known; known++) {
		if (folds_to(name, *known) && !span_is(name, *known)) {
			return refuse(name, "differs only in case from a known name", err);
		}
	}
	return true;
}

/* Adds the name of the next member to the list. */
static bool add_name(struct scan *scan, size_t first, struct error *err)
{
	if (scan->count - first == JSON_NAMES_MAX) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"more than %d members in one object", JSON_NAMES_MAX);
	}
	if (scan->count == scan->capacity) {
		scan->capacity = scan->capacity > 0 ? 2 * scan->capacity : 16;
		scan->names = mem_realloc(scan->names, scan->capacity * sizeof(scan->names[0]));
	}
	struct name *name = &scan->names[scan->count++];
	struct span inside = take_string(scan);
	*name = (struct name){.text = inside};
	if (inside.len == 0 || !memchr(inside.data, '\\', inside.len)) {
		return check_name(scan, name->text, err);
	}
	struct buf decoded;
	buf_init(&decoded, inside.len + 2);
	bool ok = json_decode_string((struct span){inside.data - 1, inside.len + 2}, &decoded, err);
	name->owned = mem_strndup(buf_span(&decoded)); // copies all bytes, including NULs
	name->text = (struct span){name->owned, decoded.len};
	buf_finish(&decoded);
	return ok && check_name(scan, name->text, err);
}

static int compare_names(const void *a, const void *b)
{
	const struct span *one = &((const struct name *)a)->text;
	const struct span *other = &((const struct name *)b)->text;
	if (one->len != other->len) {
		return one->len < other->len ? -1 : 1;
	}
	return one->len > 0 ? memcmp(one->data, other->data, one->len) : 0;
}

/* At the end of an object: compares its names, from `first` on, and drops them. */
static bool close_object(struct scan *scan, size_t first, struct error *err)
{
	bool ok = true;
	struct name *names = scan->names + first;
	size_t count = scan->count - first;
	if (count > 1) {
		qsort(names, count, sizeof(names[0]), compare_names);
	}
	for (size_t i = 0; i < count; i++) {
		if (ok && i > 0 && compare_names(&names[i - 1], &names[i]) == 0) {
			ok = refuse(names[i].text, "occurs twice in one object", err);
		}
	}
	while (scan->count > first) {
		free(scan->names[--scan->count].owned);
	}
	return ok;
}

/* ---- containers; JSON_DEPTH_MAX limits the recursion ---- */

static bool scan_value(struct scan *scan, struct error *err);

static bool scan_members(struct scan *scan, size_t first, struct error *err)
{
	skip_space(scan);
	while (scan->at < scan->end && *scan->at == '"') {
		if (!add_name(scan, first, err)) {
			return false;
		}
		bool is_opaque = scan->rules->is_flat ||
		                 is_one_of(scan->rules->opaque, scan->names[scan->count - 1].text);
		skip_space(scan);
		scan->at++; // the colon
		if (is_opaque) {
			skip_value(scan);
		} else if (!scan_value(scan, err)) {
			return false;
		}
		skip_space(scan);
		scan->at += scan->at < scan->end && *scan->at == ',' ? 1 : 0;
		skip_space(scan);
	}
	return true;
}

static bool scan_object(struct scan *scan, struct error *err)
{
	size_t first = scan->count;
	scan->at++;
	bool ok = scan_members(scan, first, err);
	scan->at++;
	return close_object(scan, first, ok ? err : NULL) && ok;
}

static bool scan_array(struct scan *scan, struct error *err)
{
	scan->at++;
	skip_space(scan);
	while (scan->at < scan->end && *scan->at != ']') {
		if (!scan_value(scan, err)) {
			return false;
		}
		skip_space(scan);
		scan->at += scan->at < scan->end && *scan->at == ',' ? 1 : 0;
		skip_space(scan);
	}
	scan->at++;
	return true;
}

static bool scan_value(struct scan *scan, struct error *err)
{
	skip_space(scan);
	char byte = scan->at < scan->end ? *scan->at : '\0';
	if (byte == '{') {
		return scan_object(scan, err);
	}
	if (byte == '[') {
		return scan_array(scan, err);
	}
	skip_value(scan);
	return true;
}

bool json_names_check(struct span text, const struct json_name_rules *rules, struct error *err)
{
	struct scan scan = {.rules = rules, .at = text.data, .end = text.data + text.len};
	bool ok = text.len == 0 || scan_value(&scan, err);
	free(scan.names);
	return ok;
}
