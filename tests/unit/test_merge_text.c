/* SPDX-License-Identifier: MIT */
#include "sync/merge_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/store_fixture.h"

static git_oid put(struct store *store, struct span text)
{
	git_oid id;
	struct error err;
	assert_true(store_put_bytes(store, text, &id, &err));
	return id;
}

/* NULL if the texts do not merge; otherwise the merged text, which the caller frees. */
static char *merged_of(
	struct store *store, struct span base, struct span local, struct span runtime)
{
	struct error err;
	struct merge_texts texts = {put(store, base), put(store, local), put(store, runtime)};
	git_oid id;
	bool is_merged = true;
	if (!merge_text(store, &texts, &id, &is_merged, &err)) {
		fail_msg("%s", err.text);
	}
	if (!is_merged) {
		return NULL;
	}
	struct buf text;
	buf_init(&text, 16 << 20);
	assert_true(store_read(store, &id, text.max, &text, &err));
	char *copy = mem_strndup(buf_span(&text));
	buf_finish(&text);
	return copy;
}

struct text_case {
	struct span base, local, runtime;
	const char *merged; // NULL: they do not merge
};

static const struct text_case cases[] = {
	{SPAN_LITERAL("1\n2\n3\n4\n"), SPAN_LITERAL("one\n2\n3\n4\n"),
		SPAN_LITERAL("1\n2\n3\nfour\n"), "one\n2\n3\nfour\n"},
	{SPAN_LITERAL("1\n2\n3\n4"), SPAN_LITERAL("one\n2\n3\n4"), SPAN_LITERAL("1\n2\n3\nfour"),
		"one\n2\n3\nfour"},
	{SPAN_LITERAL("1\r\n2\r\n3\r\n4\r\n"), SPAN_LITERAL("one\r\n2\r\n3\r\n4\r\n"),
		SPAN_LITERAL("1\r\n2\r\n3\r\nfour\r\n"), "one\r\n2\r\n3\r\nfour\r\n"},
	/* A line end is a part of its line: mixed line ends stay as each side has them. */
	{SPAN_LITERAL("1\n2\n3\n4\n"), SPAN_LITERAL("one\r\n2\n3\n4\n"),
		SPAN_LITERAL("1\n2\n3\nfour\n"), "one\r\n2\n3\nfour\n"},
	{SPAN_LITERAL("1\n2\n3\n4\n"), SPAN_LITERAL("1\r\n2\r\n3\r\n4\r\n"),
		SPAN_LITERAL("1\n2\n3\nfour\n"), NULL},
	{SPAN_LITERAL("1\n2\n3\n"), SPAN_LITERAL("one\n2\n3\n"), SPAN_LITERAL("eins\n2\n3\n"),
		NULL},
	{SPAN_LITERAL("1\n2\n3\n4\n"), SPAN_LITERAL("one\n2\n3\n4\n"),
		SPAN_LITERAL("1\n2\n3\nfour\0\n"), NULL},
	{SPAN_LITERAL("1\n2\0\n3\n4\n"), SPAN_LITERAL("one\n2\n3\n4\n"),
		SPAN_LITERAL("1\n2\n3\nfour\n"), NULL},
	{SPAN_LITERAL("\xff\n2\n3\n4\n"), SPAN_LITERAL("\xfe\n2\n3\n4\n"),
		SPAN_LITERAL("\xff\n2\n3\n\xfd\n"), "\xfe\n2\n3\n\xfd\n"},
	{SPAN_LITERAL(""), SPAN_LITERAL("1\n"), SPAN_LITERAL("2\n"), NULL},
};

static void test_lines_merge_and_keep_their_bytes(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char *merged = merged_of(store, cases[i].base, cases[i].local, cases[i].runtime);
		if (!cases[i].merged || !merged) {
			assert_ptr_equal(merged, cases[i].merged);
		} else {
			assert_string_equal(merged, cases[i].merged);
		}
		free(merged);
	}
}

/* A text with `lines` lines of `width` bytes. The first and last lines begin with `first` and
 * `last`. */
static struct span text_of(size_t lines, size_t width, char first, char last)
{
	char *text = mem_alloc(lines * width + 1);
	memset(text, 'x', lines * width);
	for (size_t i = 1; i <= lines; i++) {
		text[i * width - 1] = '\n';
	}
	text[0] = first;
	text[(lines - 1) * width] = last;
	return (struct span){text, lines * width};
}

static bool is_merged_text(struct store *store, size_t lines, size_t width)
{
	struct span base = text_of(lines, width, 'a', 'a');
	struct span local = text_of(lines, width, 'b', 'a');
	struct span runtime = text_of(lines, width, 'a', 'c');
	char *merged = merged_of(store, base, local, runtime);
	bool is_merged = merged != NULL;
	if (merged) {
		assert_int_equal(merged[0], 'b');
		assert_int_equal(merged[(lines - 1) * width], 'c');
	}
	free(merged);
	free((char *)base.data);
	free((char *)local.data);
	free((char *)runtime.data);
	return is_merged;
}

static void test_long_texts_merge_up_to_the_limits(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	assert_true(is_merged_text(store, MERGE_TEXT_LINES_MAX - 1, 8));
	assert_false(is_merged_text(store, MERGE_TEXT_LINES_MAX + 1, 8));
	assert_true(is_merged_text(store, 1024, MERGE_TEXT_BYTES_MAX / 1024));
	assert_false(is_merged_text(store, 1024, MERGE_TEXT_BYTES_MAX / 1024 + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_lines_merge_and_keep_their_bytes, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_long_texts_merge_up_to_the_limits, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
