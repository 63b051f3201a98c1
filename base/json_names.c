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
	char *owned;      // of a name with escapes; or NULL
};

/* One look at a text. The names of all objects that are open lie behind each other. */
struct look {
	const struct json_name_rules *rules;
	const char *at;
	const char *end;
	struct name *names; // owned
	size_t count;
	size_t capacity;
};

/* ---- over the text, which is known to be well formed ---- */

static void skip_space(struct look *look)
{
	while (look->at < look->end && strchr(" \t\r\n", *look->at)) {
		look->at++;
	}
}

/* Past the string that begins here; its inside, without the quotes. */
static struct span take_string(struct look *look)
{
	const char *first = look->at + 1;
	const char *quote = first - 1;
	for (;;) {
		quote = memchr(quote + 1, '"', (size_t)(look->end - quote - 1));
		if (!quote) {
			look->at = look->end;
			return (struct span){0};
		}
		const char *slash = quote;
		while (slash > first && slash[-1] == '\\') {
			slash--;
		}
		if ((quote - slash) % 2 == 0) {
			look->at = quote + 1;
			return (struct span){first, (size_t)(quote - first)};
		}
	}
}

static void skip_value(struct look *look)
{
	size_t depth = 0;
	skip_space(look);
	while (look->at < look->end) {
		char byte = *look->at;
		if (byte == '"') {
			take_string(look);
		} else if (depth == 0 && (byte == ',' || byte == '}' || byte == ']')) {
			return;
		} else {
			depth += byte == '{' || byte == '[' ? 1 : 0;
			depth -= byte == '}' || byte == ']' ? 1 : 0;
			look->at++;
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

/* The next letter in lower case; two letters beyond ASCII count as s and k (Unicode's folding). */
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

static bool check_name(const struct look *look, struct span name, struct error *err)
{
	if (name.len > 0 && memchr(name.data, '\0', name.len)) {
		return refuse(name, "has a NUL in its name", err);
	}
	for (const char *const *known = look->rules->known; *known; known++) {
		if (folds_to(name, *known) && !span_is(name, *known)) {
			return refuse(
				name, "differs from a name that has a meaning only in case", err);
		}
	}
	return true;
}

/* Takes the name of the next member into the list. */
static bool add_name(struct look *look, size_t first, struct error *err)
{
	if (look->count - first == JSON_NAMES_MAX) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"more than %d members in one object", JSON_NAMES_MAX);
	}
	if (look->count == look->capacity) {
		look->capacity = look->capacity > 0 ? 2 * look->capacity : 16;
		look->names = mem_realloc(look->names, look->capacity * sizeof(look->names[0]));
	}
	struct name *name = &look->names[look->count++];
	struct span inside = take_string(look);
	*name = (struct name){.text = inside};
	if (inside.len == 0 || !memchr(inside.data, '\\', inside.len)) {
		return check_name(look, name->text, err);
	}
	struct buf decoded;
	buf_init(&decoded, inside.len + 2);
	bool ok = json_decode_string((struct span){inside.data - 1, inside.len + 2}, &decoded, err);
	name->owned = mem_strndup(buf_span(&decoded)); // a copy of all bytes, NULs as well
	name->text = (struct span){name->owned, decoded.len};
	buf_finish(&decoded);
	return ok && check_name(look, name->text, err);
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

/* An object has ended: its names, from `first` on, are compared and forgotten. */
static bool close_object(struct look *look, size_t first, struct error *err)
{
	bool ok = true;
	struct name *names = look->names + first;
	size_t count = look->count - first;
	if (count > 1) {
		qsort(names, count, sizeof(names[0]), compare_names);
	}
	for (size_t i = 0; i < count; i++) {
		if (ok && i > 0 && compare_names(&names[i - 1], &names[i]) == 0) {
			ok = refuse(names[i].text, "stands twice in one object", err);
		}
	}
	while (look->count > first) {
		free(look->names[--look->count].owned);
	}
	return ok;
}

/* ---- containers; recursion ends with JSON_DEPTH_MAX ---- */

static bool look_at_value(struct look *look, struct error *err);

static bool look_at_members(struct look *look, size_t first, struct error *err)
{
	skip_space(look);
	while (look->at < look->end && *look->at == '"') {
		if (!add_name(look, first, err)) {
			return false;
		}
		bool is_opaque = look->rules->is_flat ||
		                 is_one_of(look->rules->opaque, look->names[look->count - 1].text);
		skip_space(look);
		look->at++; // the colon
		if (is_opaque) {
			skip_value(look);
		} else if (!look_at_value(look, err)) {
			return false;
		}
		skip_space(look);
		look->at += look->at < look->end && *look->at == ',' ? 1 : 0;
		skip_space(look);
	}
	return true;
}

static bool look_at_object(struct look *look, struct error *err)
{
	size_t first = look->count;
	look->at++;
	bool ok = look_at_members(look, first, err);
	look->at++;
	return close_object(look, first, ok ? err : NULL) && ok;
}

static bool look_at_array(struct look *look, struct error *err)
{
	look->at++;
	skip_space(look);
	while (look->at < look->end && *look->at != ']') {
		if (!look_at_value(look, err)) {
			return false;
		}
		skip_space(look);
		look->at += look->at < look->end && *look->at == ',' ? 1 : 0;
		skip_space(look);
	}
	look->at++;
	return true;
}

static bool look_at_value(struct look *look, struct error *err)
{
	skip_space(look);
	char byte = look->at < look->end ? *look->at : '\0';
	if (byte == '{') {
		return look_at_object(look, err);
	}
	if (byte == '[') {
		return look_at_array(look, err);
	}
	skip_value(look);
	return true;
}

bool json_names_check(struct span text, const struct json_name_rules *rules, struct error *err)
{
	struct look look = {.rules = rules, .at = text.data, .end = text.data + text.len};
	bool ok = text.len == 0 || look_at_value(&look, err);
	free(look.names);
	return ok;
}
