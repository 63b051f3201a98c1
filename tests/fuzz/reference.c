/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct step {
	bool is_element;
	size_t name; // where the decoded name begins in names
	size_t name_len;
};

struct parser {
	struct reference *reference;
	const struct json_place *places;
	size_t place_count;
	bool begun[256]; // by index of the place
	const uint8_t *text;
	size_t size;
	size_t at;
	size_t depth;
	struct step path[JSON_DEPTH_MAX];
	uint8_t *names; // of the path, one behind the other; decoded is never longer than written
	size_t names_len;
};

static bool parse_value(struct parser *parser);

static bool at_end(const struct parser *parser)
{
	return parser->at >= parser->size;
}

/* Returns 0 after the end; JSON allows 0 nowhere. */
static uint8_t peek(const struct parser *parser)
{
	return at_end(parser) ? 0 : parser->text[parser->at];
}

static bool take(struct parser *parser, uint8_t byte)
{
	if (at_end(parser) || parser->text[parser->at] != byte) {
		return false;
	}
	parser->at++;
	return true;
}

static void skip_space(struct parser *parser)
{
	while (take(parser, ' ') || take(parser, '\t') || take(parser, '\n') ||
		take(parser, '\r')) {
	}
}

/* ---- places ---- */

static bool path_is(const struct parser *parser, const char *written)
{
	for (size_t i = 0; i < parser->depth; i++) {
		const struct step *step = &parser->path[i];
		if (step->is_element) {
			if (strncmp(written, "[]", 2) != 0) {
				return false;
			}
			written += 2;
			continue;
		}
		if (i > 0) {
			if (*written != '.') {
				return false;
			}
			written++;
		}
		size_t len = strcspn(written, ".[");
		if (len == 0 || len != step->name_len ||
			memcmp(written, parser->names + step->name, len) != 0) {
			return false;
		}
		written += len;
	}
	return *written == '\0';
}

static bool place_begins(struct parser *parser)
{
	for (size_t i = 0; i < parser->place_count; i++) {
		if (path_is(parser, parser->places[i].path)) {
			if (parser->begun[i] && (parser->places[i].flags & JSON_PLACE_ONCE)) {
				return false;
			}
			parser->begun[i] = true;
		}
	}
	return true;
}

static void place_ends(struct parser *parser, size_t start)
{
	struct reference *reference = parser->reference;
	for (size_t i = 0; i < parser->place_count; i++) {
		if (path_is(parser, parser->places[i].path)) {
			reference->hits[reference->hit_count++] = (struct json_hit){
				.start = start,
				.end = parser->at,
				.place = (uint32_t)parser->places[i].id,
				.depth = (uint32_t)parser->depth,
			};
		}
	}
}

/* ---- strings ---- */

static void put(struct parser *parser, uint32_t byte)
{
	parser->names[parser->names_len++] = (uint8_t)byte;
}

/* Lone surrogates, too: in a form that equals no well-formed text. */
static void put_code_point(struct parser *parser, uint32_t code_point)
{
	if (code_point < 0x80) {
		put(parser, code_point);
	} else if (code_point < 0x800) {
		put(parser, 0xc0 + code_point / 0x40);
		put(parser, 0x80 + code_point % 0x40);
	} else if (code_point < 0x10000) {
		put(parser, 0xe0 + code_point / 0x1000);
		put(parser, 0x80 + code_point / 0x40 % 0x40);
		put(parser, 0x80 + code_point % 0x40);
	} else {
		put(parser, 0xf0 + code_point / 0x40000);
		put(parser, 0x80 + code_point / 0x1000 % 0x40);
		put(parser, 0x80 + code_point / 0x40 % 0x40);
		put(parser, 0x80 + code_point % 0x40);
	}
}

static bool parse_hex(struct parser *parser, uint32_t *out_unit)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	*out_unit = 0;
	for (int i = 0; i < 4; i++) {
		const char *digit = peek(parser) ? strchr(digits, peek(parser)) : NULL;
		if (!digit) {
			return false;
		}
		*out_unit = *out_unit * 16 + (uint32_t)(digit - digits) % 16;
		parser->at++;
	}
	return true;
}

static bool parse_escape(struct parser *parser)
{
	static const char escapes[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";
	uint8_t byte = peek(parser);
	const char *escape = byte ? strchr(escapes, byte) : NULL;
	if (escape) {
		parser->at++;
		put(parser, (uint8_t)values[escape - escapes]);
		return true;
	}
	uint32_t unit;
	if (!take(parser, 'u') || !parse_hex(parser, &unit)) {
		return false;
	}
	size_t before = parser->at;
	uint32_t low;
	if (unit >= 0xd800 && unit < 0xdc00 && take(parser, '\\') && take(parser, 'u') &&
		parse_hex(parser, &low) && low >= 0xdc00 && low < 0xe000) {
		put_code_point(parser, 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00));
		return true;
	}
	parser->at = before;
	put_code_point(parser, unit);
	return true;
}

static bool parse_utf8(struct parser *parser)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t first = peek(parser);
	size_t len = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	if (first < 0xc0 || first >= 0xf8 || parser->size - parser->at < len) {
		return false;
	}
	uint32_t code_point = first % (1u << (7 - len));
	for (size_t i = 1; i < len; i++) {
		uint32_t byte = parser->text[parser->at + i];
		if (byte < 0x80 || byte >= 0xc0) {
			return false;
		}
		code_point = code_point * 0x40 + byte % 0x40;
	}
	if (code_point < smallest[len] || code_point > 0x10ffff ||
		(code_point >= 0xd800 && code_point < 0xe000)) {
		return false;
	}
	parser->at += len;
	put_code_point(parser, code_point);
	return true;
}

/* Leaves the decoded text at the end of names. */
static bool parse_string(struct parser *parser)
{
	if (!take(parser, '"')) {
		return false;
	}
	while (!at_end(parser)) {
		uint8_t byte = peek(parser);
		bool ok = true;
		if (byte == '"') {
			parser->at++;
			return true;
		}
		if (byte < 0x20) {
			return false;
		}
		if (byte == '\\') {
			parser->at++;
			ok = parse_escape(parser);
		} else if (byte >= 0x80) {
			ok = parse_utf8(parser);
		} else {
			parser->at++;
			put(parser, byte);
		}
		if (!ok) {
			return false;
		}
	}
	return false;
}

/* ---- the rest ---- */

static bool parse_digits(struct parser *parser)
{
	size_t start = parser->at;
	while (peek(parser) >= '0' && peek(parser) <= '9') {
		parser->at++;
	}
	return parser->at > start;
}

static bool parse_number(struct parser *parser)
{
	take(parser, '-');
	if (!take(parser, '0') && !parse_digits(parser)) {
		return false;
	}
	if (take(parser, '.') && !parse_digits(parser)) {
		return false;
	}
	if (take(parser, 'e') || take(parser, 'E')) {
		if (!take(parser, '+')) {
			take(parser, '-');
		}
		return parse_digits(parser);
	}
	return true;
}

static bool parse_word(struct parser *parser, const char *word)
{
	size_t len = strlen(word);
	if (parser->size - parser->at < len || memcmp(parser->text + parser->at, word, len) != 0) {
		return false;
	}
	parser->at += len;
	return true;
}

static bool parse_member(struct parser *parser)
{
	skip_space(parser);
	size_t name = parser->names_len;
	if (!parse_string(parser)) {
		return false;
	}
	parser->path[parser->depth - 1] =
		(struct step){.name = name, .name_len = parser->names_len - name};
	skip_space(parser);
	if (!take(parser, ':')) {
		return false;
	}
	bool ok = parse_value(parser);
	parser->names_len = name;
	return ok;
}

static bool parse_element(struct parser *parser)
{
	parser->path[parser->depth - 1] = (struct step){.is_element = true};
	return parse_value(parser);
}

static bool parse_container(
	struct parser *parser, uint8_t close, bool (*parse_child)(struct parser *))
{
	if (parser->depth == JSON_DEPTH_MAX) {
		return false;
	}
	parser->depth++;
	parser->at++;
	skip_space(parser);
	if (!take(parser, close)) {
		do {
			if (!parse_child(parser)) {
				return false;
			}
			skip_space(parser);
		} while (take(parser, ','));
		if (!take(parser, close)) {
			return false;
		}
	}
	parser->depth--;
	return true;
}

static bool parse_any(struct parser *parser)
{
	size_t names_len = parser->names_len;
	switch (peek(parser)) {
	case '{':
		return parse_container(parser, '}', parse_member);
	case '[':
		return parse_container(parser, ']', parse_element);
	case '"':
		if (!parse_string(parser)) {
			return false;
		}
		parser->names_len = names_len;
		return true;
	case 't':
		return parse_word(parser, "true");
	case 'f':
		return parse_word(parser, "false");
	case 'n':
		return parse_word(parser, "null");
	default:
		return parse_number(parser);
	}
}

static bool parse_value(struct parser *parser)
{
	skip_space(parser);
	size_t start = parser->at;
	if (at_end(parser) || !place_begins(parser) || !parse_any(parser)) {
		return false;
	}
	parser->reference->value_count++;
	place_ends(parser, start);
	return true;
}

void reference_check(struct reference *reference, const struct json_place *places, size_t count,
	const uint8_t *text, size_t size)
{
	/* A value takes at least a byte and a comma; one more is for the document itself. */
	*reference = (struct reference){.hits = mem_alloc((size + 2) * sizeof(reference->hits[0]))};
	struct parser *parser = mem_alloc_zero(sizeof(*parser));
	parser->reference = reference;
	parser->places = places;
	parser->place_count = count;
	parser->text = text;
	parser->size = size;
	parser->names = mem_alloc(size);
	bool ok = parse_value(parser);
	skip_space(parser);
	reference->ok = ok && at_end(parser);
	free(parser->names);
	free(parser);
}

void reference_finish(struct reference *reference)
{
	free(reference->hits);
}
