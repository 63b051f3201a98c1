/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "acp/frames.h"
#include "base/attr.h"
#include "base/buf.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte chooses the maximum, the rest is what a peer sends. However it arrives, the frames
 * must be those of a splitter that has all of it at once. From 240 on, the maximum is large and a Z
 * stands for many of them, so that buffers grow.
 */
enum {
	BY_BYTE_MAX = 300,
	LARGE_FROM = 240,
	LARGE_STEP = 50 * 1000,
	REPEATED = 30 * 1000,
	INPUT_MAX = 512 * 1024
};

enum { ID, METHOD, CWD };

static const struct json_place table[] = {
	{ID, "id", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{METHOD, "method", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{CWD, "params.cwd", 0},
};

static struct json_places *places;

/* The lines of the input, one after the other. */
struct splitter {
	struct span left;
	size_t max;
	struct json_check *check;
};

struct line {
	struct span text; // without the line end
	bool is_json;
	struct error error;
};

/* The next line that is not blank. */
static bool next_line(struct splitter *splitter, struct line *out_line)
{
	while (splitter->left.len > 0) {
		const char *newline = memchr(splitter->left.data, '\n', splitter->left.len);
		size_t len = newline ? (size_t)(newline - splitter->left.data) : splitter->left.len;
		size_t taken = newline ? len + 1 : len;
		struct span raw = {splitter->left.data, len};
		out_line->text = raw;
		if (len > 0 && out_line->text.data[len - 1] == '\r') {
			out_line->text.len--;
		}
		splitter->left =
			(struct span){splitter->left.data + taken, splitter->left.len - taken};
		/* The carriage return is checked, too: to JSON it is white space. */
		json_check_reset(splitter->check);
		out_line->is_json = json_check_feed(splitter->check, raw, &out_line->error);
		if (json_check_is_blank(splitter->check)) {
			continue;
		}
		/* If a line is too long, its end does not matter. */
		if (out_line->is_json && out_line->text.len <= splitter->max) {
			out_line->is_json = json_check_end(splitter->check, &out_line->error);
		}
		return true;
	}
	return false;
}

static void compare_checks(const struct json_check *a, const struct json_check *b)
{
	FUZZ_CHECK(json_check_hit_count(a) == json_check_hit_count(b));
	for (size_t i = 0; i < json_check_hit_count(a); i++) {
		const struct json_hit *hit_a = &json_check_hits(a)[i];
		const struct json_hit *hit_b = &json_check_hits(b)[i];
		FUZZ_CHECK(hit_a->start == hit_b->start && hit_a->end == hit_b->end);
		FUZZ_CHECK(hit_a->place == hit_b->place && hit_a->depth == hit_b->depth);
	}
	for (int place = ID; place <= METHOD; place++) {
		struct span kept_a;
		struct span kept_b;
		bool is_kept = json_check_kept(a, place, &kept_a);
		FUZZ_CHECK(json_check_kept(b, place, &kept_b) == is_kept);
		FUZZ_CHECK(!is_kept || span_equals(kept_a, kept_b));
	}
}

static void compare(const struct frame *frame, struct splitter *splitter)
{
	struct line line;
	FUZZ_CHECK(next_line(splitter, &line));
	enum frame_kind kind = line.text.len > splitter->max ? FRAME_TOO_LONG
	                       : line.is_json                ? FRAME_MESSAGE
	                                                     : FRAME_INVALID;
	FUZZ_CHECK(frame->kind == kind);
	FUZZ_CHECK(frame->length == line.text.len);
	size_t shown = line.text.len;
	if (kind != FRAME_MESSAGE && shown > FRAME_BEGINNING_MAX) {
		shown = FRAME_BEGINNING_MAX;
	}
	FUZZ_CHECK(span_equals(frame->bytes, (struct span){line.text.data, shown}));
	if (kind == FRAME_INVALID) {
		FUZZ_CHECK(frame->error.code == line.error.code);
		FUZZ_CHECK(strcmp(frame->error.text, line.error.text) == 0);
	} else {
		FUZZ_CHECK((frame->error.code == ERROR_LIMIT) == (kind == FRAME_TOO_LONG));
	}
	compare_checks(frame->check, splitter->check);
}

/* Takes the message's memory; the lines after it must not change. */
static void take(struct frame_reader *reader, const struct frame *frame, struct span expected)
{
	size_t pending = frame_reader_pending(reader);
	struct buf taken;
	buf_init(&taken, expected.len);
	frame_reader_take(reader, &taken);
	FUZZ_CHECK(span_equals(buf_span(&taken), expected));
	FUZZ_CHECK(frame_reader_pending(reader) == pending);
	buf_finish(&taken);
}

/* Reads the frames at hand. */
static void drain(struct frame_reader *reader, struct splitter *splitter,
	struct fuzz_random *random, bool at_end)
{
	struct frame frame;
	while (frame_reader_next(reader, &frame) || (at_end && frame_reader_end(reader, &frame))) {
		compare(&frame, splitter);
		if (frame.kind == FRAME_MESSAGE && fuzz_random_below(random, 3) == 0) {
			struct buf copy;
			buf_init(&copy, frame.bytes.len);
			FUZZ_CHECK(buf_append(&copy, frame.bytes, NULL));
			take(reader, &frame, buf_span(&copy));
			buf_finish(&copy);
		}
	}
	FUZZ_CHECK(frame_reader_pending(reader) <= splitter->max + 1);
}

static void run(struct span input, size_t max, size_t piece, struct fuzz_random *random)
{
	struct splitter splitter = {.left = input, .max = max, .check = json_check_create(places)};
	struct frame_reader *reader = frame_reader_create(places, max);
	struct span left = input;
	while (left.len > 0) {
		size_t room = 0;
		char *space = frame_reader_space(reader, &room);
		FUZZ_CHECK(room > 0);
		size_t len = 1 + fuzz_random_below(random, piece);
		len = len < left.len ? len : left.len;
		len = len < room ? len : room;
		memcpy(space, left.data, len);
		frame_reader_fed(reader, len);
		left = (struct span){left.data + len, left.len - len};
		drain(reader, &splitter, random, false);
	}
	drain(reader, &splitter, random, true);
	struct line line;
	FUZZ_CHECK(!next_line(&splitter, &line));
	frame_reader_destroy(reader);
	json_check_destroy(splitter.check);
}

/* The input with each Z repeated. */
static void expand(struct span input, struct buf *to)
{
	for (size_t i = 0; i < input.len; i++) {
		size_t times = input.data[i] == 'Z' ? REPEATED : 1;
		char *space = buf_reserve(to, times, NULL);
		if (!space) {
			return;
		}
		memset(space, input.data[i], times);
		buf_commit(to, times);
	}
}

static void run_large(struct span input, size_t max, struct fuzz_random *random)
{
	struct buf expanded;
	buf_init(&expanded, INPUT_MAX);
	expand(input, &expanded);
	run(buf_span(&expanded), max, fuzz_random_below(random, 2) ? REPEATED : INPUT_MAX, random);
	buf_finish(&expanded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!places) {
		places = json_places_create(table, ARRAY_LENGTH(table));
	}
	if (size == 0) {
		return 0;
	}
	struct span input = {(const char *)data + 1, size - 1};
	struct fuzz_random random = fuzz_random_from(data, size);
	if (data[0] >= LARGE_FROM) {
		run_large(input, (size_t)(data[0] - LARGE_FROM + 1) * LARGE_STEP, &random);
		return 0;
	}
	size_t max = 1 + (size_t)data[0] * 3;
	run(input, max, size > BY_BYTE_MAX ? 9 : 1, &random);
	run(input, max, 60, &random);
	run(input, max, size, &random);
	return 0;
}
