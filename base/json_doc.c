/* SPDX-License-Identifier: MIT */
#include "base/json_doc.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_check.h"
#include "base/json_check_impl.h"

#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#include <jsmn.h>

enum { TOKENS_FIRST = 64 };

struct json_doc {
	struct span text;  // borrowed
	jsmntok_t *tokens; // owned
	int count;
};

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static struct span trimmed(struct span text)
{
	while (text.len > 0 && is_space(text.data[text.len - 1])) {
		text.len--;
	}
	while (text.len > 0 && is_space(text.data[0])) {
		text = (struct span){text.data + 1, text.len - 1};
	}
	return text;
}

/* In strict mode jsmn refuses a number, true, false or null at the top level. */
static bool parse_literal(struct json_doc *doc)
{
	if (doc->text.len == 0) {
		return false;
	}
	char first = doc->text.data[0];
	if (first == '{' || first == '[' || first == '"') {
		return false;
	}
	doc->tokens = mem_alloc(sizeof(doc->tokens[0]));
	doc->tokens[0] = (jsmntok_t){
		.type = JSMN_PRIMITIVE,
		.end = (int)doc->text.len,
		.parent = -1,
	};
	doc->count = 1;
	return true;
}

/* jsmn continues where it stopped if it is given more tokens. */
static bool parse_tokens(struct json_doc *doc, struct error *err)
{
	unsigned int capacity = TOKENS_FIRST;
	jsmn_parser parser;
	jsmn_init(&parser);
	for (;;) {
		doc->tokens = mem_realloc(doc->tokens, capacity * sizeof(doc->tokens[0]));
		int count =
			jsmn_parse(&parser, doc->text.data, doc->text.len, doc->tokens, capacity);
		if (count > 0) {
			doc->count = (int)parser.toknext;
			return true;
		}
		if (count != JSMN_ERROR_NOMEM) {
			return error_set(err, ERROR_PROTOCOL, "not a JSON document");
		}
		if (capacity == JSON_DOC_TOKENS_MAX) {
			return error_set(err, ERROR_LIMIT, "JSON of more than %d values and names",
				(int)JSON_DOC_TOKENS_MAX);
		}
		capacity *= 2;
	}
}

struct json_doc *json_doc_parse_unchecked(struct span text, struct error *err)
{
	if (text.len > INT_MAX) {
		error_set(err, ERROR_LIMIT, "JSON of %zu bytes", text.len);
		return NULL;
	}
	struct json_doc *doc = mem_alloc_zero(sizeof(*doc));
	doc->text = trimmed(text);
	if (!parse_literal(doc) && !parse_tokens(doc, err)) {
		json_doc_destroy(doc);
		return NULL;
	}
	return doc;
}

struct json_doc *json_doc_parse(struct span text, struct error *err)
{
	struct json_check *check = json_check_create(NULL);
	bool ok = json_check_feed(check, text, err) && json_check_end(check, err);
	json_check_destroy(check);
	return ok ? json_doc_parse_unchecked(text, err) : NULL;
}

void json_doc_destroy(struct json_doc *doc)
{
	if (doc) {
		free(doc->tokens);
		free(doc);
	}
}

/* The token of a node, or NULL. */
static const jsmntok_t *token_of(const struct json_doc *doc, json_node node)
{
	return node >= 0 && node < doc->count ? &doc->tokens[node] : NULL;
}

bool json_is(const struct json_doc *doc, json_node node, enum json_type type)
{
	const jsmntok_t *token = token_of(doc, node);
	if (!token) {
		return false;
	}
	char first = doc->text.data[token->start];
	switch (type) {
	case JSON_OBJECT:
		return token->type == JSMN_OBJECT;
	case JSON_ARRAY:
		return token->type == JSMN_ARRAY;
	case JSON_STRING:
		return token->type == JSMN_STRING;
	case JSON_NULL:
		return token->type == JSMN_PRIMITIVE && first == 'n';
	case JSON_BOOL:
		return token->type == JSMN_PRIMITIVE && (first == 't' || first == 'f');
	default:
		return token->type == JSMN_PRIMITIVE && first != 'n' && first != 't' &&
		       first != 'f';
	}
}

static struct span token_bytes(const struct json_doc *doc, const jsmntok_t *token)
{
	return (struct span){doc->text.data + token->start, (size_t)(token->end - token->start)};
}

/* jsmn's range of a string excludes the quotes. */
static struct span quoted(struct span inside)
{
	return (struct span){inside.data - 1, inside.len + 2};
}

struct span json_raw(const struct json_doc *doc, json_node node)
{
	const jsmntok_t *token = token_of(doc, node);
	if (!token) {
		return (struct span){0};
	}
	struct span bytes = token_bytes(doc, token);
	return token->type == JSMN_STRING ? quoted(bytes) : bytes;
}

size_t json_count(const struct json_doc *doc, json_node container)
{
	const jsmntok_t *token = token_of(doc, container);
	bool has_children = token && (token->type == JSMN_OBJECT || token->type == JSMN_ARRAY);
	return has_children ? (size_t)token->size : 0;
}

/* The value that belongs to the token at `index`, a child of the container. */
static json_node child_at(const struct json_doc *doc, json_node container, int index)
{
	const jsmntok_t *child = token_of(doc, index);
	if (!child || child->parent != container) {
		return JSON_NODE_NONE;
	}
	bool is_name = doc->tokens[container].type == JSMN_OBJECT;
	json_node value = is_name ? index + 1 : index;
	return value < doc->count ? value : JSON_NODE_NONE;
}

json_node json_first(const struct json_doc *doc, json_node container)
{
	bool has_children = json_count(doc, container) > 0;
	return has_children ? child_at(doc, container, container + 1) : JSON_NODE_NONE;
}

/* The token of the member's name, or NULL for an element or the root. */
static const jsmntok_t *name_of(const struct json_doc *doc, json_node member)
{
	const jsmntok_t *token = token_of(doc, member);
	const jsmntok_t *name = token ? token_of(doc, token->parent) : NULL;
	return name && name->type == JSMN_STRING ? name : NULL;
}

json_node json_next(const struct json_doc *doc, json_node node)
{
	const jsmntok_t *token = token_of(doc, node);
	if (!token || token->parent < 0) {
		return JSON_NODE_NONE;
	}
	const jsmntok_t *name = name_of(doc, node);
	json_node container = name ? name->parent : token->parent;
	int next = node + 1;
	while (next < doc->count && doc->tokens[next].start < token->end) {
		next++;
	}
	return child_at(doc, container, next);
}

struct span json_key(const struct json_doc *doc, json_node member)
{
	const jsmntok_t *name = name_of(doc, member);
	return name ? token_bytes(doc, name) : (struct span){0};
}

/* Whether a string, given without its quotes, is text after decoding. */
static bool decodes_to(struct span inside, struct span text)
{
	if (inside.len == 0 || !memchr(inside.data, '\\', inside.len)) {
		return span_equals(inside, text);
	}
	struct buf decoded;
	buf_init(&decoded, inside.len);
	bool ok = json_decode_string(quoted(inside), &decoded, NULL);
	bool same = ok && span_equals(buf_span(&decoded), text);
	buf_finish(&decoded);
	return same;
}

static json_node find_member(const struct json_doc *doc, json_node object, struct span name)
{
	if (!json_is(doc, object, JSON_OBJECT)) {
		return JSON_NODE_NONE;
	}
	json_node node = json_first(doc, object);
	while (node != JSON_NODE_NONE && !decodes_to(json_key(doc, node), name)) {
		node = json_next(doc, node);
	}
	return node;
}

json_node json_get(const struct json_doc *doc, json_node object, const char *name)
{
	return find_member(doc, object, span_of(name));
}

json_node json_path(const struct json_doc *doc, json_node from, const char *dotted)
{
	json_node node = from;
	for (;;) {
		size_t len = strcspn(dotted, ".");
		node = find_member(doc, node, (struct span){dotted, len});
		if (dotted[len] == '\0') {
			return node;
		}
		dotted += len + 1;
	}
}

bool json_bool(const struct json_doc *doc, json_node node, bool fallback)
{
	if (!json_is(doc, node, JSON_BOOL)) {
		return fallback;
	}
	return doc->text.data[doc->tokens[node].start] == 't';
}

long long json_int(const struct json_doc *doc, json_node node, long long fallback)
{
	if (!json_is(doc, node, JSON_NUMBER)) {
		return fallback;
	}
	struct span digits = json_raw(doc, node);
	bool negative = digits.data[0] == '-';
	long long number = 0;
	for (size_t i = negative ? 1 : 0; i < digits.len; i++) {
		int digit = digits.data[i] - '0';
		bool fits = digit >= 0 && digit <= 9 &&
		            !__builtin_mul_overflow(number, 10, &number) &&
		            !__builtin_add_overflow(number, negative ? -digit : digit, &number);
		if (!fits) {
			return fallback;
		}
	}
	return number;
}

char *json_string(const struct json_doc *doc, json_node node)
{
	if (!json_is(doc, node, JSON_STRING)) {
		return NULL;
	}
	struct span raw = json_raw(doc, node);
	struct buf text;
	buf_init(&text, raw.len);
	char *copy = NULL;
	if (json_decode_string(raw, &text, NULL)) {
		struct span decoded = buf_span(&text);
		bool has_nul = decoded.len > 0 && memchr(decoded.data, '\0', decoded.len);
		copy = has_nul ? NULL : mem_strndup(decoded);
	}
	buf_finish(&text);
	return copy;
}

bool json_string_is(const struct json_doc *doc, json_node node, const char *text)
{
	return json_is(doc, node, JSON_STRING) &&
	       decodes_to(token_bytes(doc, &doc->tokens[node]), span_of(text));
}
