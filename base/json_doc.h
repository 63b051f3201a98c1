/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_DOC_H
#define BASE_JSON_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json_utf8.h"
#include "base/span.h"

/*
 * Random access to a small piece of JSON; jsmn parses it, with a maximum of tokens. jsmn does not
 * validate. So the text must have passed json_check (json_doc_parse_unchecked), or is checked here
 * first (json_doc_parse). The document borrows the text.
 */
enum { JSON_DOC_TOKENS_MAX = 16384 };

struct json_doc;

struct json_doc *json_doc_parse(struct span text, struct error *err) ATTR_NODISCARD;
struct json_doc *json_doc_parse_unchecked(struct span text, struct error *err) ATTR_NODISCARD;
void json_doc_destroy(struct json_doc *doc);

/* A value in a document, or JSON_NODE_NONE. The root is 0. */
typedef int json_node;
enum { JSON_NODE_NONE = -1 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Every function accepts JSON_NODE_NONE and treats it as an absent value. */
bool json_is(const struct json_doc *doc, json_node node, enum json_type type);
json_node json_get(const struct json_doc *doc, json_node object, const char *name);
json_node json_path(const struct json_doc *doc, json_node from, const char *dotted); // "a.b.c"
size_t json_count(const struct json_doc *doc, json_node container); // members or elements

/* Iteration: the first child (for an object: the first member's value), and the next. */
json_node json_first(const struct json_doc *doc, json_node container);
json_node json_next(const struct json_doc *doc, json_node node);
struct span json_key(const struct json_doc *doc, json_node member); // raw, without quotes

/* The value's bytes in the text; a string includes its quotes. */
struct span json_raw(const struct json_doc *doc, json_node node);

bool json_bool(const struct json_doc *doc, json_node node, bool fallback);
long long json_int(const struct json_doc *doc, json_node node, long long fallback);

/* Decodes a string; NULL for other types, or if the string contains a NUL. Owned by the caller. */
char *json_string(const struct json_doc *doc, json_node node);

/* Whether a string equals `text`, after escapes are decoded. */
bool json_string_is(const struct json_doc *doc, json_node node, const char *text);

/*
 * Decodes the string whose raw bytes (with its quotes) are given and appends it as UTF-8; a lone
 * surrogate becomes U+FFFD. ERROR_PROTOCOL if it is not a string.
 */
bool json_decode_string(struct span raw, struct buf *out, struct error *err) ATTR_NODISCARD;

/* The same for a value of a checked document. Does not read a long string twice to check it. */
bool json_decode_checked(struct span raw, struct buf *out, struct error *err) ATTR_NODISCARD;

/*
 * Decodes the escape at the beginning of `text`, which is part of the inside of a checked string.
 * Decodes a pair of surrogates as one character. Returns how many bytes of `text` it consumed.
 */
size_t json_decode_escape(struct span text, char out_bytes[UTF8_MAX], size_t *out_len);

#endif
