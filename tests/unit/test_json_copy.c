/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_fast.h"
#include "base/utf8.h"

/*
 * The loops of json_fast.h that copy text into strings and out of them. Each kind of vector
 * instructions must do the same as the simple loops here. All memory ends where json_fast.h allows,
 * so that the sanitizers see each byte that is read or written behind it.
 */
enum {
	TEXT_MAX = 1024,
	PLACES = 2 * JSON_FAST_BLOCK + 2,
	RANDOM_TEXTS = 5000,
};

struct text {
	char bytes[JSON_ESCAPED_MAX * TEXT_MAX];
	size_t len;
};

static void add(struct text *text, struct span bytes)
{
	assert_true(text->len + bytes.len <= sizeof(text->bytes));
	memcpy(text->bytes + text->len, bytes.data, bytes.len);
	text->len += bytes.len;
}

static void add_many(struct text *text, char byte, size_t count)
{
	while (count-- > 0) {
		add(text, (struct span){&byte, 1});
	}
}

static struct span span_from(const struct text *text, size_t at)
{
	return (struct span){text->bytes + at, text->len - at};
}

/* ---- the simple loops ---- */

static void escape_byte(unsigned char byte, struct text *out)
{
	static const char letters[] = "btnvfr"; // from 8 on; there is no \v
	char escape[8];
	if (byte == '"' || byte == '\\') {
		snprintf(escape, sizeof(escape), "\\%c", byte);
	} else if (byte >= 8 && byte <= 13 && byte != 11) {
		snprintf(escape, sizeof(escape), "\\%c", letters[byte - 8]);
	} else if (byte < ' ') {
		snprintf(escape, sizeof(escape), "\\u%04x", byte);
	} else {
		snprintf(escape, sizeof(escape), "%c", byte);
	}
	add(out, span_of(escape));
}

/* Returns where the first malformed sequence begins, or the end. */
static size_t escape_simply(const struct text *text, struct text *out)
{
	size_t at = 0;
	while (at < text->len) {
		struct span rest = span_from(text, at);
		size_t len = utf8_char_length(rest);
		if (len == 0) {
			break;
		}
		if (len == 1) {
			escape_byte((unsigned char)*rest.data, out);
		} else {
			add(out, (struct span){rest.data, len});
		}
		at += len;
	}
	return at;
}

static void decode_simply(const struct text *text, struct text *out)
{
	for (size_t at = 0; at < text->len;) {
		char bytes[UTF8_MAX] = {text->bytes[at]};
		size_t len = 1;
		size_t taken = 1;
		if (bytes[0] == '\\') {
			taken = json_decode_escape(span_from(text, at), bytes, &len);
		}
		add(out, (struct span){bytes, len});
		at += taken;
	}
}

/* ---- comparing ---- */

/* Memory that is used again and again, because the sanitizers make each allocation slow. */
static unsigned char *memory[2];

/* Memory of this size that nothing follows. */
static unsigned char *room_of(int i, size_t size)
{
	const size_t most = JSON_ESCAPED_MAX * sizeof(struct text);
	memory[i] = memory[i] ? memory[i] : mem_alloc(most);
	assert_true(size <= most);
	return memory[i] + most - size;
}

static unsigned char *copy_of(const struct text *text)
{
	unsigned char *copy = room_of(0, text->len);
	memcpy(copy, text->bytes, text->len);
	return copy;
}

static int free_memory(void **state)
{
	free(memory[0]);
	free(memory[1]);
	return 0;
}

static void expect_escaped(const struct text *text)
{
	static struct text wanted;
	const struct json_fast *list[JSON_FAST_MAX];
	size_t count = json_fast_list(list);
	wanted.len = 0;
	size_t stop = escape_simply(text, &wanted);
	for (size_t i = 0; i < count; i++) {
		unsigned char *from = copy_of(text);
		unsigned char *to = room_of(1, JSON_ESCAPED_MAX * text->len + JSON_FAST_BLOCK);
		unsigned char *end = to;
		assert_ptr_equal(list[i]->escape(from, from + text->len, &end), from + stop);
		assert_int_equal(end - to, wanted.len);
		assert_memory_equal(to, wanted.bytes, wanted.len);
	}
}

static void expect_decoded(const struct text *text)
{
	static struct text wanted;
	const struct json_fast *list[JSON_FAST_MAX];
	size_t count = json_fast_list(list);
	wanted.len = 0;
	decode_simply(text, &wanted);
	for (size_t i = 0; i < count; i++) {
		unsigned char *from = copy_of(text);
		unsigned char *to = room_of(1, text->len);
		assert_int_equal(list[i]->decode(from, from + text->len, to) - to, wanted.len);
		assert_memory_equal(to, wanted.bytes, wanted.len);
	}
}

/* ---- tests ---- */

/* Puts it at each place of the first blocks, in front of texts of several lengths. */
static void at_each_place(struct span it, void (*expect)(const struct text *text))
{
	static const size_t tails[] = {0, 1, 15, JSON_FAST_BLOCK, 2 * JSON_FAST_BLOCK};
	static struct text text;
	for (size_t place = 0; place < PLACES; place++) {
		for (size_t i = 0; i < ARRAY_LENGTH(tails); i++) {
			text.len = 0;
			add_many(&text, 'a', place);
			add(&text, it);
			add_many(&text, 'z', tails[i]);
			expect(&text);
		}
	}
}

static void test_every_byte_is_escaped_wherever_it_stands(void **state)
{
	for (int byte = 0; byte < 0x100; byte++) {
		char one = (char)byte;
		at_each_place((struct span){&one, 1}, expect_escaped);
	}
}

static void test_sequences_are_kept_and_malformed_ones_stop(void **state)
{
	static const char *const sequences[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
		"\xf4\x8f\xbf\xbf", "\xc3", "\xc0\xaf", "\xe2\x82", "\xe0\x80\x80", "\xed\xa0\x80",
		"\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80", "\x80", "\xc3\xa9\xff",
		"\xe2\x82\xac\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80",
		"\"\xe2\x82\xac\n\xe2\x82\xac\\\xc3\xa9\xc3", "\n\n\n\xc3\xa9\"\"\"\"\x01\x02"};
	for (size_t i = 0; i < ARRAY_LENGTH(sequences); i++) {
		at_each_place(span_of(sequences[i]), expect_escaped);
	}
}

static void test_every_escape_is_decoded_wherever_it_stands(void **state)
{
	static const char *const escapes[] = {"\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r",
		"\\t", "\\u0000", "\\u00e9", "\\u20AC", "\\ud83d\\ude00", "\\ud83d", "\\ude00",
		"\\ud83d\\n", "\\ud83dx\\ude00", "\\\\u00e9", "\\\\\\n", "\\n\\n\\n\\n\\n\\n\\n\\n",
		"\xe2\x82\xac\\u20ac\xe2\x82\xac", "\\ud83d\\ude00\\ud83d\\ude00\\ud83d\\ude00"};
	for (size_t i = 0; i < ARRAY_LENGTH(escapes); i++) {
		at_each_place(span_of(escapes[i]), expect_decoded);
	}
}

static void test_rows_of_escapes(void **state)
{
	static struct text text;
	static const char *const escapes[] = {"\\\\", "\\u1234", "\\ud83d\\ude00", "x\\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(escapes); i++) {
		text.len = 0;
		while (text.len < TEXT_MAX - 12) {
			add(&text, span_of(escapes[i]));
			expect_decoded(&text);
			expect_escaped(&text);
		}
	}
}

static size_t below(unsigned int *random, size_t limit)
{
	*random = *random * 1103515245 + 12345;
	return *random / 65536 % limit;
}

/* Text and the inside of a string at the same time: both functions must take it. */
static void add_random(struct text *text, unsigned int *random)
{
	static const char *const words[] = {"\\n", "\\\"", "\\\\", "\\u000a", "\\ud83d\\ude00",
		"\\udc00", "\xc3\xa9", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80"};
	if (below(random, 3) > 0) {
		add_many(text, (char)('a' + below(random, 26)), below(random, 90));
	} else {
		add(text, span_of(words[below(random, ARRAY_LENGTH(words))]));
	}
}

static void test_random_texts(void **state)
{
	static struct text text;
	unsigned int random = 1;
	for (int i = 0; i < RANDOM_TEXTS; i++) {
		text.len = 0;
		size_t words = below(&random, 12);
		while (words-- > 0 && text.len < TEXT_MAX - 90) {
			add_random(&text, &random);
		}
		expect_decoded(&text);
		if (text.len > 0 && below(&random, 2) == 0) {
			text.bytes[below(&random, text.len)] = (char)below(&random, 0x100);
		}
		expect_escaped(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_is_escaped_wherever_it_stands),
		cmocka_unit_test(test_sequences_are_kept_and_malformed_ones_stop),
		cmocka_unit_test(test_every_escape_is_decoded_wherever_it_stands),
		cmocka_unit_test(test_rows_of_escapes),
		cmocka_unit_test(test_random_texts),
	};
	return cmocka_run_group_tests(tests, NULL, free_memory);
}
