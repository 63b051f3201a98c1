/* SPDX-License-Identifier: MIT */
#include "providers/local/json_pick.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/text.h"

enum { KEYS_MAX = 32, KEY_PART_MAX = 64 };

static bool is_scalar(const struct json_doc *doc, json_node node)
{
	return json_is(doc, node, JSON_STRING) || json_is(doc, node, JSON_NUMBER) ||
	       json_is(doc, node, JSON_BOOL);
}

static bool is_plain(const struct json_doc *doc, json_node node)
{
	if (json_raw(doc, node).len > JSON_PICK_VALUE_MAX) {
		return false;
	}
	if (!json_is(doc, node, JSON_ARRAY)) {
		return is_scalar(doc, node);
	}
	bool is = true;
	for (json_node item = json_first(doc, node); item != JSON_NODE_NONE;
		item = json_next(doc, item)) {
		is = is && is_scalar(doc, item);
	}
	return is;
}

static struct json_doc *parse_object(struct span text, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (doc && !json_is(doc, 0, JSON_OBJECT)) {
		json_doc_destroy(doc);
		error_set(err, ERROR_PROTOCOL, "expected a JSON object");
		return NULL;
	}
	return doc;
}

/* ---- picking ---- */

/*
 * The keys from `keys` up to `end` all start with the path to `object`, whose length is `offset`.
 */
static void write_level(struct json_writer *writer, const struct json_doc *doc, json_node object,
	const char *const *keys, const char *const *end, size_t offset)
{
	while (keys < end) {
		char part[KEY_PART_MAX];
		const char *rest = *keys + offset;
		size_t len = strcspn(rest, ".");
		bool fits = text_whole(part, sizeof(part), "%.*s", (int)len, rest);
		json_node node = fits ? json_get(doc, object, part) : JSON_NODE_NONE;
		const char *const *next = keys + 1;
		if (rest[len] == '\0') {
			if (node != JSON_NODE_NONE && is_plain(doc, node)) {
				json_write_member_raw(writer, part, json_raw(doc, node));
			}
			keys = next;
			continue;
		}
		while (next < end && strncmp(*next + offset, rest, len + 1) == 0) {
			next++;
		}
		if (json_is(doc, node, JSON_OBJECT)) {
			json_write_key(writer, part);
			json_write_object(writer);
			write_level(writer, doc, node, keys, next, offset + len + 1);
			json_write_object_end(writer);
		}
		keys = next;
	}
}

bool json_pick(struct span text, const char *const *keys, struct buf *out, struct error *err)
{
	struct json_writer writer;
	struct json_doc *doc = parse_object(text, err);
	const char *const *end = keys;
	if (!doc) {
		return false;
	}
	while (*end) {
		end++;
	}
	json_write_begin(&writer, out);
	json_write_object(&writer);
	write_level(&writer, doc, 0, keys, end, 0);
	json_write_object_end(&writer);
	json_doc_destroy(doc);
	return json_write_end(&writer, err);
}

/* ---- renewing ---- */

struct renewal {
	struct span old; // in the text
	struct span value;
};

static enum json_type type_of(const struct json_doc *doc, json_node node)
{
	enum json_type type = JSON_NULL;
	while (!json_is(doc, node, type)) {
		type++;
	}
	return type;
}

static int compare_places(const void *a, const void *b)
{
	const struct renewal *first = a, *second = b;
	return first->old.data < second->old.data ? -1 : first->old.data > second->old.data;
}

static bool put_together(struct span text, const struct renewal *renewals, size_t count,
	struct buf *out, struct error *err)
{
	const char *at = text.data;
	for (size_t i = 0; i < count; i++) {
		const struct span *old = &renewals[i].old;
		if (!buf_append(out, (struct span){at, (size_t)(old->data - at)}, err) ||
			!buf_append(out, renewals[i].value, err)) {
			return false;
		}
		at = old->data + old->len;
	}
	return buf_append(out, (struct span){at, (size_t)(text.data + text.len - at)}, err);
}

bool json_renew(struct span text, struct span from, const char *const *keys, struct buf *out,
	struct error *err)
{
	struct renewal renewals[KEYS_MAX];
	size_t count = 0;
	struct json_doc *doc = parse_object(text, err);
	struct json_doc *source = doc ? parse_object(from, err) : NULL;
	for (; source && *keys && count < KEYS_MAX; keys++) {
		json_node old = json_path(doc, 0, *keys);
		json_node node = json_path(source, 0, *keys);
		if (old != JSON_NODE_NONE && node != JSON_NODE_NONE && is_plain(source, node) &&
			type_of(doc, old) == type_of(source, node)) {
			renewals[count++] = (struct renewal){
				.old = json_raw(doc, old), .value = json_raw(source, node)};
		}
	}
	qsort(renewals, count, sizeof(renewals[0]), compare_places);
	bool is_done = source && put_together(text, renewals, count, out, err);
	json_doc_destroy(source);
	json_doc_destroy(doc);
	return is_done;
}

static bool is_greater(
	const struct json_doc *source, json_node node, const struct json_doc *doc, json_node old)
{
	if (json_is(source, node, JSON_NUMBER) && json_is(doc, old, JSON_NUMBER)) {
		return json_int(source, node, 0) > json_int(doc, old, 0);
	}
	char *value = json_string(source, node);
	char *before = json_string(doc, old);
	bool is = value && before && strcmp(value, before) > 0;
	free(value);
	free(before);
	return is;
}

bool json_is_newer(struct span text, struct span from, const char *key)
{
	struct error err;
	struct json_doc *doc = parse_object(text, &err);
	struct json_doc *source = doc ? parse_object(from, &err) : NULL;
	bool is = source &&
	          is_greater(source, json_path(source, 0, key), doc, json_path(doc, 0, key));
	json_doc_destroy(source);
	json_doc_destroy(doc);
	return is;
}
