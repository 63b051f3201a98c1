/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api_read.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_check.h"
#include "base/json_doc.h"

/* The root must be an object. */
static struct json_doc *read_object(struct span json, struct error *err)
{
	struct json_doc *doc = json_doc_parse(json, err);
	if (doc && !json_is(doc, 0, JSON_OBJECT)) {
		json_doc_destroy(doc);
		doc = NULL;
		error_set(err, ERROR_PROTOCOL, "it is not an object");
	}
	return doc;
}

/* ---- sandboxes ---- */

static const char *text_of(
	struct daytona_told_sandbox *told, const struct json_doc *doc, const char *member)
{
	char *text = json_string(doc, json_get(doc, 0, member));
	if (!text) {
		return "";
	}
	assert(told->text_count < ARRAY_LENGTH(told->texts));
	told->texts[told->text_count++] = text;
	return text;
}

/* The image in the build that daytona_write_create makes; "" for any other build. */
static const char *image_of(struct daytona_told_sandbox *told, const struct json_doc *doc)
{
	static const char from[] = "FROM ";
	json_node build = json_get(doc, 0, "buildInfo");
	bool is_object = json_is(doc, build, JSON_OBJECT);
	char *text = is_object ? json_string(doc, json_get(doc, build, "dockerfileContent")) : NULL;
	size_t line = text ? strcspn(text, "\n") : 0;
	bool is_plain = text && line > sizeof(from) - 1 && !text[line + (text[line] == '\n')] &&
	                strncmp(text, from, sizeof(from) - 1) == 0;
	if (!is_plain) {
		free(text);
		return "";
	}
	text[line] = '\0';
	assert(told->text_count < ARRAY_LENGTH(told->texts));
	told->texts[told->text_count++] = text;
	return text + sizeof(from) - 1;
}

static int count_of(const struct json_doc *doc, const char *member)
{
	long long count = json_int(doc, json_get(doc, 0, member), 0);
	return count < 0 || count > INT_MAX ? 0 : (int)count;
}

static int minutes_of(const struct json_doc *doc, const char *member)
{
	long long minutes = json_int(doc, json_get(doc, 0, member), -1);
	return minutes < 0 ? -1 : minutes > INT_MAX ? INT_MAX : (int)minutes;
}

/* The service accepts labels that are not strings, but then its own gateway cannot read them. */
static void read_labels(struct daytona_told_sandbox *told, const struct json_doc *doc)
{
	json_node labels = json_get(doc, 0, "labels");
	bool is_object = json_is(doc, labels, JSON_OBJECT);
	size_t count = is_object ? json_count(doc, labels) : 0;
	size_t used = 0;
	told->labels = mem_alloc_zero((count + 1) * sizeof(*told->labels));
	told->sandbox.labels = told->labels;
	json_node label = is_object ? json_first(doc, labels) : JSON_NODE_NONE;
	for (; label != JSON_NODE_NONE; label = json_next(doc, label)) {
		struct span key = json_key(doc, label);
		struct span quoted = {key.data - 1, key.len + 2};
		struct buf name;
		buf_init(&name, SIZE_MAX);
		char *value = json_string(doc, label);
		bool ok = value && json_decode_string(quoted, &name, NULL) &&
		          (name.len == 0 || !memchr(buf_span(&name).data, '\0', name.len));
		if (ok) {
			told->labels[used++] = (struct daytona_pair){
				.name = mem_strndup(buf_span(&name)), .value = value};
		} else {
			free(value);
			told->sandbox.has_odd_labels = true;
		}
		buf_finish(&name);
	}
}

bool daytona_read_sandbox(
	struct span json, struct daytona_told_sandbox *out_told, struct error *err)
{
	struct json_doc *doc = read_object(json, err);
	if (!doc) {
		return false;
	}
	struct daytona_told_sandbox told = {.text_count = 0};
	told.sandbox = (struct daytona_sandbox){
		.id = text_of(&told, doc, "id"),
		.name = text_of(&told, doc, "name"),
		.state = text_of(&told, doc, "state"),
		.desired_state = text_of(&told, doc, "desiredState"),
		.error_reason = text_of(&told, doc, "errorReason"),
		.user = text_of(&told, doc, "user"),
		.target = text_of(&told, doc, "target"),
		.snapshot = text_of(&told, doc, "snapshot"),
		.created_at = text_of(&told, doc, "createdAt"),
		.sandbox_class = text_of(&told, doc, "sandboxClass"),
		.image = image_of(&told, doc),
		.cpu = count_of(doc, "cpu"),
		.memory_gib = count_of(doc, "memory"),
		.disk_gib = count_of(doc, "disk"),
		.network_allow_list = text_of(&told, doc, "networkAllowList"),
		.domain_allow_list = text_of(&told, doc, "domainAllowList"),
		.is_recoverable = json_bool(doc, json_get(doc, 0, "recoverable"), false),
		.is_public = json_bool(doc, json_get(doc, 0, "public"), false),
		.blocks_network = json_bool(doc, json_get(doc, 0, "networkBlockAll"), false),
		.auto_stop_min = minutes_of(doc, "autoStopInterval"),
		.auto_archive_min = minutes_of(doc, "autoArchiveInterval"),
		.auto_delete_min = minutes_of(doc, "autoDeleteInterval"),
	};
	read_labels(&told, doc);
	json_doc_destroy(doc);
	if (told.sandbox.id[0] == '\0') {
		daytona_told_sandbox_finish(&told);
		return error_set(err, ERROR_PROTOCOL, "it has no \"id\"");
	}
	*out_told = told;
	return true;
}

void daytona_told_sandbox_finish(struct daytona_told_sandbox *told)
{
	for (struct daytona_pair *label = told->labels; label && label->name; label++) {
		free((char *)label->name);
		free((char *)label->value);
	}
	free(told->labels);
	for (size_t i = 0; i < told->text_count; i++) {
		free(told->texts[i]);
	}
	*told = (struct daytona_told_sandbox){.text_count = 0};
}

/* ---- lists ---- */

/*
 * The checker finds the items, and each is parsed separately, because a page has too many tokens.
 */
enum page_place { PAGE_ITEMS, PAGE_ITEM, PAGE_CURSOR };
static const struct json_place page_table[] = {
	{PAGE_ITEMS, "items", 0},
	{PAGE_ITEM, "items[]", 0},
	{PAGE_CURSOR, "nextCursor", 0},
};

static struct span hit_span(struct span json, const struct json_hit *hit)
{
	return (struct span){json.data + hit->start, hit->end - hit->start};
}

static bool read_cursor(struct span raw, char **out_cursor, struct error *err)
{
	if (raw.len == 0 || raw.data[0] == 'n') {
		*out_cursor = NULL;
		return true;
	}
	struct json_doc *doc = json_doc_parse_unchecked(raw, err);
	if (!doc) {
		return false;
	}
	char *cursor = json_string(doc, 0);
	json_doc_destroy(doc);
	if (!cursor) {
		return error_set(err, ERROR_PROTOCOL, "its \"nextCursor\" is not a string");
	}
	*out_cursor = cursor[0] ? cursor : NULL;
	if (!cursor[0]) {
		free(cursor);
	}
	return true;
}

static bool read_hits(struct span json, const struct json_check *check,
	struct daytona_page *out_page, struct error *err)
{
	const struct json_hit *items = json_check_find(check, PAGE_ITEMS);
	if (!items || json.data[items->start] != '[') {
		return error_set(err, ERROR_PROTOCOL, "it has no list \"items\"");
	}
	const struct json_hit *cursor = json_check_find(check, PAGE_CURSOR);
	struct daytona_page page = {.count = 0};
	if (!read_cursor(
		    cursor ? hit_span(json, cursor) : (struct span){NULL, 0}, &page.cursor, err)) {
		return false;
	}
	size_t count = json_check_hit_count(check);
	page.items = mem_alloc_zero((count + 1) * sizeof(*page.items));
	for (size_t i = 0; i < count; i++) {
		const struct json_hit *hit = &json_check_hits(check)[i];
		if (hit->place == PAGE_ITEM) {
			page.items[page.count++] = hit_span(json, hit);
		}
	}
	*out_page = page;
	return true;
}

bool daytona_read_page(struct span json, struct daytona_page *out_page, struct error *err)
{
	struct json_places *places = json_places_create(page_table, ARRAY_LENGTH(page_table));
	struct json_check *check = json_check_create(places);
	bool ok = json_check_feed(check, json, err) && json_check_end(check, err) &&
	          read_hits(json, check, out_page, err);
	json_check_destroy(check);
	json_places_destroy(places);
	return ok;
}

void daytona_page_finish(struct daytona_page *page)
{
	free(page->items);
	free(page->cursor);
	*page = (struct daytona_page){.count = 0};
}

/* ---- a key ---- */

bool daytona_read_permissions(struct span json, unsigned int *out_permissions, struct error *err)
{
	static const struct {
		const char *name;
		unsigned int permission;
	} names[] = {
		{"write:sandboxes", DAYTONA_MAY_WRITE}, {"delete:sandboxes", DAYTONA_MAY_DELETE}};
	struct json_doc *doc = json_doc_parse(json, err);
	if (!doc) {
		return false;
	}
	json_node list = json_get(doc, 0, "permissions");
	bool ok = json_is(doc, list, JSON_ARRAY);
	unsigned int permissions = 0;
	for (json_node one = ok ? json_first(doc, list) : JSON_NODE_NONE; one != JSON_NODE_NONE;
		one = json_next(doc, one)) {
		for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
			permissions |=
				json_string_is(doc, one, names[i].name) ? names[i].permission : 0;
		}
	}
	json_doc_destroy(doc);
	if (!ok) {
		return error_set(err, ERROR_PROTOCOL, "it has no list \"permissions\"");
	}
	*out_permissions = permissions;
	return true;
}
