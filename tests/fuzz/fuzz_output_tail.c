/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "broker/toolhost/output_tail.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte is the limit, then come steps: a byte for the kind, a byte of length, and that
 * many bytes if the step adds text. The second version keeps the whole stream, and decodes it from
 * the beginning of the text.
 */
enum { STREAM_MAX = 8192, TEXT_MAX = 3 * STREAM_MAX };

struct naive {
	size_t limit;
	size_t total;
	uint8_t stream[STREAM_MAX];
};

static bool is_continuation(uint8_t byte)
{
	return byte >= 0x80 && byte <= 0xbf;
}

/* How many bytes follow a first byte; -1 if no character begins with it. */
static int follow_count(uint8_t byte)
{
	if (byte < 0x80) {
		return 0;
	}
	if (byte >= 0xc2 && byte <= 0xdf) {
		return 1;
	}
	if (byte >= 0xe0 && byte <= 0xef) {
		return 2;
	}
	return byte >= 0xf0 && byte <= 0xf4 ? 3 : -1;
}

/* Whether `next` can follow `first` as the second byte: no overlong form, surrogate, or more. */
static bool fits_second(uint8_t first, uint8_t next)
{
	unsigned int value = (unsigned int)first << 8 | next;
	return is_continuation(next) && !(first == 0xe0 && next < 0xa0) &&
	       !(first == 0xed && next > 0x9f) && !(first == 0xf0 && next < 0x90) &&
	       value <= 0xf48f;
}

/*
 * The length of the character at `at` in a stream that ends at `end`; 0 if there is none; -1 if
 * more bytes may complete it.
 */
static int character_at(const uint8_t *stream, size_t at, size_t end)
{
	int follow = follow_count(stream[at]);
	for (int i = 1; i <= follow; i++) {
		if (at + (size_t)i == end) {
			return -1;
		}
		uint8_t next = stream[at + (size_t)i];
		if (i == 1 ? !fits_second(stream[at], next) : !is_continuation(next)) {
			return 0;
		}
	}
	return follow + 1;
}

/* Decodes [from, end); returns the length of the text and, in *out_at, how far it came. */
static size_t decode(const struct naive *naive, size_t from, size_t end, bool is_last, char *text,
	size_t *out_at)
{
	size_t length = 0;
	size_t at = from;
	while (at < end) {
		int count = character_at(naive->stream, at, end);
		if (count < 0 && !is_last) {
			break;
		}
		if (count > 0) {
			memcpy(text + length, naive->stream + at, (size_t)count);
			length += (size_t)count;
			at += (size_t)count;
		} else {
			memcpy(text + length, "\xef\xbf\xbd", 3);
			length += 3;
			at++;
		}
	}
	*out_at = at;
	return length;
}

static size_t skip_rest(const char *text, size_t at, size_t end)
{
	size_t begin = at;
	while (at < end && at < begin + 3 && is_continuation((uint8_t)text[at])) {
		at++;
	}
	return at;
}

static void check_text(
	const struct output_tail *tail, const struct naive *naive, size_t max, bool has_ended)
{
	static char expected[TEXT_MAX];
	size_t kept = naive->total < naive->limit ? naive->total : naive->limit;
	size_t begin = naive->total - (kept < max ? kept : max);
	bool expect_cut = begin > 0;
	/* An incomplete character must not be taken for the rest of a cut one. */
	size_t end = 0;
	decode(naive, begin, naive->total, has_ended, expected, &end);
	if (expect_cut) {
		begin = skip_rest((const char *)naive->stream, begin, end);
	}
	size_t length = decode(naive, begin, end, true, expected, &end);
	size_t from = 0;
	if (length > max) {
		from = skip_rest(expected, length - max, length);
		expect_cut = true;
	}
	struct buf out;
	buf_init(&out, TEXT_MAX);
	FUZZ_CHECK(buf_append(&out, SPAN_LITERAL(">"), NULL));
	FUZZ_CHECK(output_tail_text(tail, max, has_ended, &out) == expect_cut);
	buf_consume(&out, 1);
	FUZZ_CHECK(out.len <= max);
	FUZZ_CHECK(span_equals(buf_span(&out), (struct span){expected + from, length - from}));
	buf_finish(&out);
}

static void check_next(const struct output_tail *tail, const struct naive *naive,
	uint64_t *position, size_t max, bool has_ended)
{
	static char expected[TEXT_MAX];
	size_t kept = naive->total < naive->limit ? naive->total : naive->limit;
	size_t oldest = naive->total - kept;
	size_t from = *position > oldest ? (size_t)*position : oldest;
	size_t gone = from - (size_t)*position;
	size_t end = naive->total - from < max ? naive->total : from + max;
	bool is_last = has_ended && end == naive->total;
	size_t reached = from;
	decode(naive, from, end, is_last, expected, &reached);
	size_t begin = gone > 0 ? skip_rest((const char *)naive->stream, from, reached) : from;
	size_t ignored = 0;
	size_t length = decode(naive, begin, reached, true, expected, &ignored);

	struct buf out;
	buf_init(&out, TEXT_MAX);
	FUZZ_CHECK(output_tail_next(tail, position, max, has_ended, &out) == gone);
	FUZZ_CHECK(*position == reached);
	FUZZ_CHECK(span_equals(buf_span(&out), (struct span){expected, length}));
	buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct naive naive;
	struct output_tail tail;
	uint64_t position = 0;
	if (size == 0) {
		return 0;
	}
	naive.limit = data[0] < 200 ? data[0] : (size_t)(data[0] - 199) * 100;
	naive.total = 0;
	output_tail_init(&tail, naive.limit);
	for (size_t at = 1; at + 1 < size;) {
		uint8_t what = data[at];
		size_t length = data[at + 1];
		at += 2;
		if (what % 4 <= 1) {
			length = length < size - at ? length : size - at;
			length = length < STREAM_MAX - naive.total ? length
			                                           : STREAM_MAX - naive.total;
			memcpy(naive.stream + naive.total, data + at, length);
			naive.total += length;
			output_tail_add(&tail, (struct span){(const char *)data + at, length});
			at += length;
			FUZZ_CHECK(tail.total == naive.total && tail.len <= naive.limit);
		} else if (what % 4 == 2) {
			check_text(&tail, &naive, length, what & 4);
			check_text(&tail, &naive, naive.limit, what & 4);
		} else {
			check_next(&tail, &naive, &position, length, what & 4);
		}
	}
	output_tail_finish(&tail);
	return 0;
}
