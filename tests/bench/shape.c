/* SPDX-License-Identifier: MIT */
#include "tests/bench/shape.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "########";
enum { MARK_LEN = sizeof(mark) - 1, MEMBERS = 50000, MEMBER_NAME_LEN = 9 };

/* A line under construction: bytes are appended up to a size known beforehand. */
struct draft {
	char *data;
	size_t len;
	size_t size;
};

static void draft_add(struct draft *draft, const char *text, size_t len)
{
	assert(draft->len + len <= draft->size);
	memcpy(draft->data + draft->len, text, len);
	draft->len += len;
}

static void draft_text(struct draft *draft, const char *text)
{
	draft_add(draft, text, strlen(text));
}

/* Source code as in a JSON string: with escapes, and now and then a character of UTF-8. */
static const char *const code[] = {
	"static int cache_lookup(struct cache *cache, const char *key)\\n{\\n",
	"\\tstruct entry *entry = cache->buckets[hash(key) % cache->size];\\n",
	"\\twhile (entry != NULL && strcmp(entry->key, key) != 0) {\\n",
	"\\t\\tentry = entry->next;\\n\\t}\\n",
	"\\tif (entry == NULL) {\\n\\t\\tlog_debug(\\\"no entry for '%s'\\\", key);\\n",
	"\\t\\treturn -1; // caf\xc3\xa9 \xe2\x80\x93 the caller decides\\n\\t}\\n",
	"\\treturn entry->value;\\n}\\n\\n",
};

static void add_code(struct draft *draft, size_t room)
{
	const size_t end = draft->len + room;
	size_t i = 0;

	for (;;) {
		const size_t len = strlen(code[i]);
		if (draft->len + len > end) {
			break;
		}
		draft_add(draft, code[i], len);
		i = (i + 1) % (sizeof(code) / sizeof(code[0]));
	}
	while (draft->len < end) {
		draft_text(draft, "x");
	}
}

static void add_prose(struct draft *draft, size_t room)
{
	static const char prose[] =
		"The parser keeps one token of lookahead, so the loop ends here. ";

	for (size_t i = 0; i < room; i++) {
		draft_add(draft, &prose[i % (sizeof(prose) - 1)], 1);
	}
}

/* One member's value of `width` bytes: text, a whole number or a decimal in turn. */
static void add_value(struct draft *draft, unsigned i, int width)
{
	char value[64];

	if (i % 3 == 0) {
		(void)snprintf(value, sizeof(value), "\"%0*u\"", width - 2, i);
	} else if (i % 3 == 1) {
		(void)snprintf(value, sizeof(value), "1%0*u", width - 1, i);
	} else {
		(void)snprintf(value, sizeof(value), "2.%0*u", width - 2, i);
	}
	draft_text(draft, value);
}

/* Many small members, with sizes that fill exactly the room. */
static void add_members(struct draft *draft, size_t room)
{
	const size_t start = draft->len;

	for (unsigned i = 0; i < MEMBERS; i++) {
		char name[32];
		const size_t end = start + room * (i + 1) / MEMBERS;

		(void)snprintf(name, sizeof(name), "\"k%05u\":", i);
		draft_text(draft, name);
		add_value(draft, i, (int)(end - draft->len - 1));
		draft_text(draft, ",");
	}
}

struct shape {
	const char *name;
	size_t size;      // of the whole line with its newline
	const char *head; // after "update": ; the filling follows
	const char *tail;
	void (*fill)(struct draft *draft, size_t room);
};

static const char chunk_head[] = "{\"sessionUpdate\":\"agent_message_chunk\","
				 "\"content\":{\"type\":\"text\",\"text\":\"";
static const char chunk_tail[] = "########\"}}";

static const struct shape shapes[] = {
	{"small", 200, chunk_head, chunk_tail, add_prose},
	{"medium", 4096, chunk_head, chunk_tail, add_prose},
	{"string", 1048576,
		"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-########\","
		"\"status\":\"in_progress\",\"content\":[{\"type\":\"diff\","
		"\"path\":\"/project/cache.c\",\"oldText\":null,\"newText\":\"",
		"// ########\\n\"}]}", add_code},
	{"members", 1048576,
		"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-########\","
		"\"rawOutput\":{",
		"\"last\":\"########\"}}", add_members},
};

static const struct shape *shape_find(const char *name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (strcmp(shapes[i].name, name) == 0) {
			return &shapes[i];
		}
	}
	return NULL;
}

static const char *const wraps[] = {
	[LINE_UPDATE] = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":",
	[LINE_REQUEST] =
		"{\"jsonrpc\":\"2.0\",\"id\":########,\"method\":\"_bench/echo\",\"params\":",
	[LINE_ANSWER] = "{\"jsonrpc\":\"2.0\",\"id\":########,\"result\":",
};

static void find_marks(struct line *line)
{
	const char *at = line->data;

	line->mark_count = 0;
	for (;;) {
		at = memmem(at, (size_t)(line->data + line->len - at), mark, MARK_LEN);
		if (at == NULL) {
			break;
		}
		assert(line->mark_count < LINE_MARKS);
		line->marks[line->mark_count++] = (size_t)(at - line->data);
		at += MARK_LEN;
	}
}

bool line_init(struct line *line, const char *shape_name, enum line_kind kind, const char *session)
{
	const struct shape *shape = shape_find(shape_name);
	char head[512];

	if (shape == NULL) {
		return false;
	}
	(void)snprintf(
		head, sizeof(head), "{\"sessionId\":\"%s\",\"update\":%s", session, shape->head);
	/*
	 * An answer has the params of the request that it echoes, so it has the request's filling.
	 */
	const char *sized_by = wraps[kind == LINE_ANSWER ? LINE_REQUEST : kind];
	const size_t fixed = strlen(sized_by) + strlen(head) + strlen(shape->tail) + strlen("}}\n");
	assert(fixed < shape->size);

	struct draft draft = {.data = malloc(shape->size), .size = shape->size};
	if (draft.data == NULL) {
		abort();
	}
	draft_text(&draft, wraps[kind]);
	draft_text(&draft, head);
	shape->fill(&draft, shape->size - fixed);
	draft_text(&draft, shape->tail);
	draft_text(&draft, "}}\n");
	*line = (struct line){.data = draft.data, .len = draft.len};
	find_marks(line);
	line_set_number(line, LINE_FIRST_NUMBER);
	return true;
}

void line_finish(struct line *line)
{
	free(line->data);
	*line = (struct line){0};
}

void line_set_number(struct line *line, unsigned number)
{
	char digits[MARK_LEN];

	for (size_t i = MARK_LEN; i-- > 0; number /= 10) {
		digits[i] = (char)('0' + number % 10);
	}
	for (size_t i = 0; i < line->mark_count; i++) {
		memcpy(line->data + line->marks[i], digits, MARK_LEN);
	}
}
