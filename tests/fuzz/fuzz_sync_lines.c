/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sync/git/lines.h"
#include "tests/fuzz/fuzz.h"

/*
 * The output of a script in the sandbox, in pieces of the length in the first byte. A second
 * reader, which has all of it at once, must find the same.
 */
enum { OBJECT_MAX = 300, TAKEN_MAX = 64 };

struct source {
	const uint8_t *data;
	size_t size, at, piece;
};

static ssize_t read_source(void *data, char *to, size_t size)
{
	struct source *source = data;
	size_t count = source->size - source->at;
	count = count < source->piece ? count : source->piece;
	count = count < size ? count : size;
	memcpy(to, source->data + source->at, count);
	source->at += count;
	return (ssize_t)count;
}

/* How many words each kind has after its name. */
static const struct {
	const char *name;
	int words;
} kinds[LINE_KIND_COUNT] = {
	[LINE_TREE] = {"tree", 1},
	[LINE_BIG] = {"big", 4},
	[LINE_LEFT] = {"left", 1},
	[LINE_OBJECTS] = {"objects", 1},
	[LINE_COMMITS] = {"commits", 0},
	[LINE_REPOSITORY] = {"repository", 1},
	[LINE_HAVE] = {"have", 1},
	[LINE_PRINT] = {"print", 1},
	[LINE_KEPT] = {"kept", 1},
	[LINE_FILTERED] = {"filtered", 2},
	[LINE_SHARED] = {"shared", 0},
	[LINE_BASE] = {"base", 1},
	[LINE_REF] = {"ref", 2},
	[LINE_UNTOLD] = {"untold", 1},
	[LINE_FAIL] = {"fail", 1},
	[LINE_END] = {"end", 1},
};

/* The end of a line in the whole output, or NULL if there is none. */
static const char *skip_line(const char *at, const char *end, enum line_kind kind)
{
	if ((size_t)(end - at) <= strlen(kinds[kind].name) ||
		memcmp(at, kinds[kind].name, strlen(kinds[kind].name) + 1) != 0) {
		return NULL;
	}
	for (int i = 0; i <= kinds[kind].words; i++) {
		const char *next = memchr(at, '\0', (size_t)(end - at));
		if (!next) {
			return NULL;
		}
		at = next + 1;
	}
	return at;
}

static const char *check_line(const struct line *line, const char *at, const char *end)
{
	const char *next = skip_line(at, end, line->kind);
	FUZZ_CHECK(next != NULL);
	if (line->text) {
		const char *last = next - 1;
		while (last > at && last[-1] != '\0') {
			last--;
		}
		FUZZ_CHECK(strcmp(line->text, last) == 0);
		FUZZ_CHECK(strlen(line->text) <= LINE_PATH_MAX);
	}
	FUZZ_CHECK(line->number < UINT64_C(1000000000000000000));
	return next;
}

static const char *check_bytes(const struct line_object *object, const char *at, const char *end)
{
	FUZZ_CHECK((size_t)(end - at) > object->content.len);
	FUZZ_CHECK(memcmp(at, object->content.data, object->content.len) == 0);
	return at + object->content.len;
}

/* Returns NULL if the object has no end. */
static const char *check_object(struct lines *lines, const char *at, const char *end)
{
	struct line_object object;
	struct error err;
	if (!lines_next_object(lines, &object, &err)) {
		return NULL;
	}
	const char *body = memchr(at, '\n', (size_t)(end - at));
	FUZZ_CHECK(body != NULL && object.content.len <= OBJECT_MAX);
	at = check_bytes(&object, body + 1, end);
	while (object.left > 0) {
		FUZZ_CHECK(lines->has_streams && object.type == GIT_OBJECT_BLOB);
		if (!lines_next_piece(lines, &object, &err)) {
			return NULL;
		}
		at = check_bytes(&object, at, end);
	}
	FUZZ_CHECK(*at == '\n');
	return at + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0) {
		return 0;
	}
	struct source source = {data + 1, size - 1, 0, (size_t)data[0] + 1};
	struct lines lines;
	struct line line;
	struct error err;
	const char *at = (const char *)data + 1;
	const char *end = (const char *)data + size;
	lines_init(&lines, read_source, &source, size / 2 + 100, OBJECT_MAX);
	lines.has_streams = data[0] & 1;
	bool fine = true;
	for (int i = 0; fine && i < TAKEN_MAX && lines_next(&lines, &line, &err); i++) {
		at = check_line(&line, at, end);
		for (uint64_t n = 0; fine && line.kind == LINE_OBJECTS && n < line.number; n++) {
			at = check_object(&lines, at, end);
			fine = at != NULL;
		}
		FUZZ_CHECK(!fine || lines.received <= lines.received_max);
	}
	lines_finish(&lines);
	return 0;
}
