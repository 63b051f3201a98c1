/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json_check.h"
#include "base/json_fast.h"
#include "base/json_doc.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/json_utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reference.h"

/*
 * The input is a document. However it is cut into pieces, the checker's verdict, hits and kept
 * places must be those of the reference, and jsmn must find the hits as values, too. The input is
 * also a text, which is copied into a string and out of it.
 */
enum { ID, METHOD, PARAMS, CWD, PATH, CELL, NAME, ROOT };

static const struct json_place table[] = {
	{ID, "id", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{METHOD, "method", JSON_PLACE_KEEP},
	{PARAMS, "params", JSON_PLACE_ONCE},
	{CWD, "params.cwd", 0},
	{PATH, "params.update.locations[].path", 0},
	{CELL, "params[][].x", 0},
	{NAME, "\xc3\xa9\xf0\x9f\x98\x80", 0},
	{ROOT, "", 0},
};

static struct json_places *places;

/* Feeds pieces that end at the end of their memory; `piece` says how they are cut. */
static bool feed(struct json_check *check, const uint8_t *data, size_t size,
	struct fuzz_random *random, size_t piece, struct error *err)
{
	json_check_reset(check);
	for (size_t at = 0; at < size;) {
		size_t len = random ? 1 + fuzz_random_below(random, piece) : piece;
		len = len < size - at ? len : size - at;
		char *copy = mem_alloc(len);
		memcpy(copy, data + at, len);
		bool ok = json_check_feed(check, (struct span){copy, len}, err);
		free(copy);
		if (!ok) {
			return false;
		}
		at += len;
	}
	return json_check_end(check, err);
}

static bool hits_are_equal(const struct json_hit *a, const struct json_hit *b)
{
	return a->start == b->start && a->end == b->end && a->place == b->place &&
	       a->depth == b->depth;
}

static void compare_kept(
	const struct json_check *check, const struct reference *reference, const uint8_t *data)
{
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		const struct json_hit *first = NULL;
		for (size_t j = 0; j < json_check_hit_count(check) && !first; j++) {
			if ((int)reference->hits[j].place == table[i].id) {
				first = &reference->hits[j];
			}
		}
		const struct json_hit *found = json_check_find(check, table[i].id);
		FUZZ_CHECK(!found == !first && (!first || hits_are_equal(found, first)));
		bool is_kept = first && (table[i].flags & JSON_PLACE_KEEP) &&
		               first->end - first->start <= JSON_KEEP_MAX;
		struct span kept;
		FUZZ_CHECK(json_check_kept(check, table[i].id, &kept) == is_kept);
		if (is_kept) {
			struct span bytes = {
				(const char *)data + first->start, first->end - first->start};
			FUZZ_CHECK(span_equals(kept, bytes));
		}
	}
}

static void compare(const struct json_check *check, bool ok, const struct reference *reference,
	const uint8_t *data)
{
	FUZZ_CHECK(ok == reference->ok);
	/* The reference also counts a number that ends with a refused byte. */
	size_t count = json_check_hit_count(check);
	FUZZ_CHECK(count == reference->hit_count || (!ok && count + 1 == reference->hit_count));
	for (size_t i = 0; i < count; i++) {
		FUZZ_CHECK(hits_are_equal(&json_check_hits(check)[i], &reference->hits[i]));
	}
	compare_kept(check, reference, data);
}

/* Marks the hits that are the node or lie in it; returns the number of values in it. */
static size_t walk(const struct json_doc *doc, json_node node, uint32_t depth, const char *text,
	const struct reference *reference, bool *marks)
{
	struct span raw = json_raw(doc, node);
	size_t start = (size_t)(raw.data - text);
	for (size_t i = 0; i < reference->hit_count; i++) {
		const struct json_hit *hit = &reference->hits[i];
		if (hit->start == start && hit->end == start + raw.len && hit->depth == depth) {
			marks[i] = true;
		}
	}
	size_t children = 0;
	size_t values = 1;
	for (json_node child = json_first(doc, node); child != JSON_NODE_NONE;
		child = json_next(doc, child)) {
		children++;
		values += walk(doc, child, depth + 1, text, reference, marks);
	}
	FUZZ_CHECK(children == json_count(doc, node));
	return values;
}

static void compare_to_jsmn(const struct reference *reference, const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	struct error err;
	struct json_doc *doc = json_doc_parse(text, &err);
	if (!doc && err.code == ERROR_LIMIT) {
		FUZZ_CHECK(reference->value_count > JSON_DOC_TOKENS_MAX / 2);
		return;
	}
	FUZZ_CHECK(doc);
	bool *marks = mem_alloc_zero(reference->hit_count);
	FUZZ_CHECK(walk(doc, 0, 0, text.data, reference, marks) == reference->value_count);
	for (size_t i = 0; i < reference->hit_count; i++) {
		FUZZ_CHECK(marks[i]);
	}
	free(marks);
	json_doc_destroy(doc);
}

static bool is_same_error(const struct error *a, const struct error *b)
{
	return a->code == b->code && strcmp(a->text, b->text) == 0;
}

/* Checks one kind of instructions; it takes whole blocks only in the longer pieces. */
static void check_with(const struct json_fast *fast, const struct reference *reference,
	const uint8_t *data, size_t size, struct error *out_err)
{
	static const size_t pieces[] = {1, 7, 60, 200, 700};
	struct json_check *check = json_check_create(places);
	check->fast = fast;
	struct fuzz_random random = fuzz_random_from(data, size);
	compare(check, feed(check, data, size, NULL, size + 1, out_err), reference, data);
	for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
		struct error err = {0};
		bool ok = feed(check, data, size, i > 0 ? &random : NULL, pieces[i], &err);
		compare(check, ok, reference, data);
		FUZZ_CHECK(is_same_error(&err, out_err));
	}
	json_check_destroy(check);
}

/* The input becomes the inside of a string, as far as it is UTF-8, and text again. */
static void check_copying(const struct json_fast *fast, const uint8_t *data, size_t size)
{
	size_t room = JSON_ESCAPED_MAX * size + JSON_FAST_BLOCK;
	uint8_t *plain = mem_alloc(room);
	uint8_t *escaped = mem_alloc(room);
	uint8_t *plain_end = plain;
	uint8_t *end = escaped;
	size_t valid = (size_t)(fast->escape(data, data + size, &end) - data);
	(void)json_fast_plain.escape(data, data + size, &plain_end);
	size_t len = (size_t)(end - escaped);
	FUZZ_CHECK(valid == utf8_valid_length((const char *)data, size));
	FUZZ_CHECK(len == (size_t)(plain_end - plain) && memcmp(escaped, plain, len) == 0);
	uint8_t *inside = mem_alloc(len);
	uint8_t *text = mem_alloc(len);
	memcpy(inside, escaped, len);
	FUZZ_CHECK((size_t)(fast->decode(inside, inside + len, text) - text) == valid);
	FUZZ_CHECK(memcmp(text, data, valid) == 0);
	free(plain);
	free(escaped);
	free(inside);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!places) {
		places = json_places_create(table, ARRAY_LENGTH(table));
	}
	struct reference reference;
	reference_check(&reference, table, ARRAY_LENGTH(table), data, size);
	struct error whole = {0};
	const struct json_fast *fast[JSON_FAST_MAX];
	size_t fast_count = json_fast_list(fast);
	for (size_t i = 0; i < fast_count; i++) {
		struct error err = {0};
		check_with(fast[i], &reference, data, size, &err);
		check_copying(fast[i], data, size);
		FUZZ_CHECK(i == 0 || is_same_error(&err, &whole));
		whole = err;
	}
	if (reference.ok) {
		compare_to_jsmn(&reference, data, size);
	}
	reference_finish(&reference);
	return 0;
}
