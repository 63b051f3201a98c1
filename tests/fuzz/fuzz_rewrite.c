/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/json_doc.h"
#include "base/json_utf8.h"
#include "acp/rewrite.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/naive_map.h"

/*
 * Lines: > (to the runtime) or < (to the editor) and a method; then roots, each as the name here, a
 * blank and the name there, up to an empty line; then a message. It is translated, and compared
 * with a second version that decodes each string of a known place and translates it whole.
 */
enum { MESSAGE_MAX = 64 * 1024, TEXT_MAX = 256 * 1024 };

struct input {
	enum path_direction direction;
	const char *method;
	struct naive_map map;
	struct span message;
};

/* ---- the input ---- */

static char *take_line(char **text)
{
	char *line = *text;
	char *end = line ? strchr(line, '\n') : NULL;
	*text = end ? end + 1 : NULL;
	if (end) {
		*end = '\0';
	}
	return line;
}

static bool read_root(struct naive_root *root, char *line)
{
	char *blank = strchr(line, ' ');
	size_t len = strlen(line);
	/* JSON cannot express a root that is not UTF-8. */
	if (utf8_valid_length(line, len) < len || line[0] != '/' || !blank || blank[1] != '/') {
		return false;
	}
	*blank = '\0';
	root->sides[PATH_TO_LOCAL] = line;
	root->sides[PATH_TO_RUNTIME] = blank + 1;
	return true;
}

static bool read_input(struct input *input, char *text)
{
	const char *first = take_line(&text);
	*input = (struct input){.method = first + 1};
	if (*first != '>' && *first != '<') {
		return false;
	}
	input->direction = *first == '>' ? PATH_TO_RUNTIME : PATH_TO_LOCAL;
	char *line;
	while ((line = take_line(&text)) && *line) {
		if (input->map.count == NAIVE_ROOTS_MAX ||
			!read_root(&input->map.roots[input->map.count++], line)) {
			return false;
		}
	}
	line = take_line(&text);
	input->message = line ? span_of(line) : (struct span){"", 0};
	while (input->message.len > 0 && input->message.data[input->message.len - 1] == '\r') {
		input->message.len--; // the line's end, not the message's
	}
	return line && input->message.len < MESSAGE_MAX;
}

/* ---- a message, and its strings of known places ---- */

struct reading {
	struct frame_reader *reader;
	struct frame frame;
	struct message message;
	struct json_hit *hits; // owned; those that may be translated, by place
	size_t count;
};

/* The edits that docs/architecture.md lists under "The edits", one row for each place. */
static const struct {
	enum path_direction direction;
	enum place place;
	bool is_uri;
	const char *methods; // blank-separated; "" for any
} known[] = {
	{PATH_TO_RUNTIME, PLACE_CWD, false,
		"session/new session/load session/resume session/fork session/list"},
	{PATH_TO_RUNTIME, PLACE_ADDITIONAL_DIRECTORY, false,
		"session/new session/load session/resume session/fork session/list"},
	{PATH_TO_RUNTIME, PLACE_PROMPT_URI, true, "session/prompt"},
	{PATH_TO_RUNTIME, PLACE_PROMPT_RESOURCE_URI, true, "session/prompt"},
	{PATH_TO_LOCAL, PLACE_UPDATE_LOCATION, false, "session/update"},
	{PATH_TO_LOCAL, PLACE_UPDATE_DIFF, false, "session/update"},
	{PATH_TO_LOCAL, PLACE_UPDATE_URI, true, "session/update"},
	{PATH_TO_LOCAL, PLACE_UPDATE_RESOURCE_URI, true, "session/update"},
	{PATH_TO_LOCAL, PLACE_UPDATE_ITEM_URI, true, "session/update"},
	{PATH_TO_LOCAL, PLACE_UPDATE_ITEM_RESOURCE_URI, true, "session/update"},
	{PATH_TO_LOCAL, PLACE_UPDATE_TERMINAL_CWD, false, "session/update"},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_LOCATION, false, "session/request_permission"},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_DIFF, false, "session/request_permission"},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_ITEM_URI, true, "session/request_permission"},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_ITEM_RESOURCE_URI, true, "session/request_permission"},
	{PATH_TO_LOCAL, PLACE_LISTED_CWD, false, "session/list"},
	{PATH_TO_LOCAL, PLACE_LISTED_DIRECTORY, false, "session/list"},
	{PATH_TO_LOCAL, PLACE_PATH, false, "fs/read_text_file fs/write_text_file"},
	{PATH_TO_LOCAL, PLACE_CWD, false, "terminal/create"},
	{PATH_TO_LOCAL, PLACE_ERROR_URI, true, ""},
	{PATH_TO_RUNTIME, PLACE_ERROR_URI, true, ""},
};

static bool is_listed(const char *names, const char *method)
{
	size_t len = strlen(method);
	const char *at = len > 0 && !strchr(method, ' ') ? strstr(names, method) : NULL;
	for (; at; at = strstr(at + 1, method)) {
		if ((at == names || at[-1] == ' ') && (at[len] == ' ' || !at[len])) {
			return true;
		}
	}
	return !*names;
}

/* The row of a place; -1 if it is not translated. */
static int find_known(const struct input *input, uint32_t place)
{
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		if (known[i].direction == input->direction && (uint32_t)known[i].place == place &&
			is_listed(known[i].methods, input->method)) {
			return (int)i;
		}
	}
	return -1;
}

static int compare_hits(const void *a, const void *b)
{
	const struct json_hit *left = a;
	const struct json_hit *right = b;
	return left->start < right->start ? -1 : left->start > right->start;
}

static void list_hits(struct reading *reading, const struct input *input)
{
	const struct json_hit *hits = json_check_hits(reading->message.check);
	size_t count = json_check_hit_count(reading->message.check);
	reading->hits = mem_alloc((count + 1) * sizeof(*hits));
	for (size_t i = 0; i < count; i++) {
		bool is_string = reading->message.text.data[hits[i].start] == '"';
		if (is_string && find_known(input, hits[i].place) >= 0) {
			reading->hits[reading->count++] = hits[i];
		}
	}
	qsort(reading->hits, reading->count, sizeof(*hits), compare_hits);
}

static const struct json_places *places(void)
{
	static struct json_places *table;
	table = table ? table : places_create();
	return table;
}

/* Returns false if the text is not a message. */
static bool read_message(struct reading *reading, const struct input *input, struct span text)
{
	size_t space;
	struct error err;
	*reading = (struct reading){.reader = frame_reader_create(places(), TEXT_MAX)};
	bool has_frame = false;
	for (size_t at = 0; at <= text.len && !has_frame; at += space) {
		char *to = frame_reader_space(reading->reader, &space);
		space = space < text.len + 1 - at ? space : text.len + 1 - at;
		bool is_last = at + space > text.len;
		memcpy(to, text.data + at, space - is_last);
		if (is_last) {
			to[space - 1] = '\n';
		}
		frame_reader_fed(reading->reader, space);
		has_frame = frame_reader_next(reading->reader, &reading->frame);
	}
	if (!has_frame || reading->frame.kind != FRAME_MESSAGE ||
		!message_read(&reading->message, &reading->frame, &err)) {
		return false;
	}
	list_hits(reading, input);
	return true;
}

static void reading_finish(struct reading *reading)
{
	frame_reader_destroy(reading->reader);
	free(reading->hits);
}

/* ---- one string ---- */

static void append(struct buf *out, struct span bytes)
{
	FUZZ_CHECK(buf_append(out, bytes, NULL));
}

/* Two URIs mean the same if their paths do, and if the rest of them is equal. */
static void check_uri(const struct input *input, struct span before, struct span after)
{
	struct buf path;
	struct buf want;
	struct buf have;
	size_t begin;
	size_t end;
	size_t new_begin;
	size_t new_end;
	buf_init(&path, TEXT_MAX);
	buf_init(&want, TEXT_MAX);
	buf_init(&have, TEXT_MAX);
	bool is_file = naive_uri_decode(before, &path, &begin, &end);
	if (!is_file ||
		!naive_map_root(&input->map, naive_other(input->direction), buf_span(&path))) {
		FUZZ_CHECK(span_equals(before, after));
	} else {
		naive_map_path(&input->map, input->direction, buf_span(&path), &want);
		FUZZ_CHECK(naive_uri_decode(after, &have, &new_begin, &new_end));
		FUZZ_CHECK(span_equals(buf_span(&want), buf_span(&have)));
		FUZZ_CHECK(span_equals(
			(struct span){before.data, begin}, (struct span){after.data, new_begin}));
		FUZZ_CHECK(span_equals((struct span){before.data + end, before.len - end},
			(struct span){after.data + new_end, after.len - new_end}));
	}
	buf_finish(&have);
	buf_finish(&want);
	buf_finish(&path);
}

/* Translates a path in this direction. */
static void cross(const struct path_map *map, enum path_direction direction, struct span path,
	struct buf *out)
{
	size_t prefix;
	struct span replacement;
	if (path_map_find(map, direction, path, &prefix, &replacement)) {
		append(out, replacement);
		append(out, (struct span){path.data + prefix, path.len - prefix});
	} else {
		append(out, path);
	}
}

static void check_path(const struct input *input, const struct path_map *map, struct span before,
	struct span after)
{
	struct buf want;
	struct buf back;
	buf_init(&want, TEXT_MAX);
	buf_init(&back, TEXT_MAX);
	naive_map_path(&input->map, input->direction, before, &want);
	FUZZ_CHECK(span_equals(buf_span(&want), after));
	if (naive_map_root(&input->map, naive_other(input->direction), before) &&
		naive_map_is_reversible(&input->map, input->direction)) {
		cross(map, naive_other(input->direction), after, &back);
		FUZZ_CHECK(span_equals(buf_span(&back), before));
	}
	buf_finish(&back);
	buf_finish(&want);
}

/* ---- before and after ---- */

static void check_string(const struct input *input, const struct path_map *map,
	const struct reading *before, const struct reading *after, size_t index)
{
	const struct json_hit *old_hit = &before->hits[index];
	const struct json_hit *new_hit = &after->hits[index];
	struct span old_raw = {
		before->message.text.data + old_hit->start, old_hit->end - old_hit->start};
	struct span new_raw = {
		after->message.text.data + new_hit->start, new_hit->end - new_hit->start};
	struct buf old_text;
	struct buf new_text;
	buf_init(&old_text, TEXT_MAX);
	buf_init(&new_text, TEXT_MAX);
	FUZZ_CHECK(old_hit->place == new_hit->place && old_hit->depth == new_hit->depth);
	FUZZ_CHECK(json_decode_string(old_raw, &old_text, NULL));
	FUZZ_CHECK(json_decode_string(new_raw, &new_text, NULL));
	/* Some peers write a path where an error's URI belongs. */
	bool is_path = old_hit->place == PLACE_ERROR_URI && old_text.len > 0 &&
	               buf_span(&old_text).data[0] == '/';
	if (known[find_known(input, old_hit->place)].is_uri && !is_path) {
		check_uri(input, buf_span(&old_text), buf_span(&new_text));
	} else {
		check_path(input, map, buf_span(&old_text), buf_span(&new_text));
	}
	if (span_equals(buf_span(&old_text), buf_span(&new_text)) && map->is_identity) {
		FUZZ_CHECK(span_equals(old_raw, new_raw));
	}
	buf_finish(&new_text);
	buf_finish(&old_text);
}

/* The bytes between, before and after the strings of known places must be unchanged. */
static void check_gaps(const struct reading *before, const struct reading *after)
{
	size_t old_at = 0;
	size_t new_at = 0;
	FUZZ_CHECK(before->count == after->count);
	for (size_t i = 0; i <= before->count; i++) {
		bool is_end = i == before->count;
		size_t old_end = is_end ? before->message.text.len : before->hits[i].start;
		size_t new_end = is_end ? after->message.text.len : after->hits[i].start;
		FUZZ_CHECK(span_equals(
			(struct span){before->message.text.data + old_at, old_end - old_at},
			(struct span){after->message.text.data + new_at, new_end - new_at}));
		old_at = is_end ? old_end : before->hits[i].end;
		new_at = is_end ? new_end : after->hits[i].end;
	}
}

static void compare(const struct input *input, const struct path_map *map,
	const struct reading *before, struct span text)
{
	struct reading after;
	FUZZ_CHECK(read_message(&after, input, text));
	FUZZ_CHECK(after.message.kind == before->message.kind);
	FUZZ_CHECK(strcmp(after.message.method, before->message.method) == 0);
	check_gaps(before, &after);
	for (size_t i = 0; i < before->count; i++) {
		check_string(input, map, before, &after, i);
	}
	reading_finish(&after);
}

static void run(const struct input *input, const struct reading *before)
{
	struct path_map map;
	struct splice splice;
	struct buf out;
	struct error err;
	path_map_init(&map);
	splice_init(&splice);
	buf_init(&out, TEXT_MAX);
	for (size_t i = 0; i < input->map.count; i++) {
		const struct naive_root *root = &input->map.roots[i];
		FUZZ_CHECK(path_map_add(
			&map, root->sides[PATH_TO_LOCAL], root->sides[PATH_TO_RUNTIME]));
	}
	FUZZ_CHECK(rewrite_paths(
		&map, input->direction, &before->message, input->method, &splice, &err));
	FUZZ_CHECK(splice_seal(&splice, before->message.text.len, &err));
	if (splice_length(&splice, before->message.text.len) < TEXT_MAX) {
		FUZZ_CHECK(splice_append(&splice, before->message.text, &out, &err));
		compare(input, &map, before, buf_span(&out));
	}
	buf_finish(&out);
	splice_finish(&splice);
	path_map_finish(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;
	struct reading before = {0};
	char *text = mem_strndup((struct span){(const char *)data, size});
	if (read_input(&input, text)) {
		if (read_message(&before, &input, input.message)) {
			run(&input, &before);
		}
		reading_finish(&before);
	}
	free(text);
	return 0;
}
