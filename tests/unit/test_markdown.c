/* SPDX-License-Identifier: MIT */
#include "base/markdown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"

enum { ALL = 4096 };

static void assert_made(struct buf *out, const char *expected)
{
	assert_true(buf_append(out, (struct span){"", 1}, NULL));
	assert_string_equal(buf_span(out).data, expected);
	buf_finish(out);
}

static void assert_code(const char *text, size_t most, const char *expected)
{
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	markdown_code(&out, span_of(text), most);
	assert_made(&out, expected);
}

static void assert_block(const char *text, const char *expected)
{
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	markdown_block(&out, span_of(text));
	assert_made(&out, expected);
}

static void test_code_on_a_line_ends_where_the_broker_ends_it(void **state)
{
	assert_code("make all", ALL, "`make all`");
	assert_code("<!-- x --> **b** [a](b)", ALL, "`<!-- x --> **b** [a](b)`");
	assert_code("a`b", ALL, "``a`b``");
	assert_code("a``b`", ALL, "``` a``b` ```");
	assert_code("`", ALL, "`` ` ``");
	assert_code(" a ", ALL, "`  a  `");
	assert_code("", ALL, "`  `");
}

static void test_what_a_reader_does_not_see_is_spelled_out(void **state)
{
	static const struct {
		const char *text;
		const char *line;
		const char *block;
	} cases[] = {
		{"a\nb\tc", "`a\\nb\\tc`", "```\na\nb\tc\n```"},
		{"a\rb", "`a<U+000D>b`", "```\na<U+000D>b\n```"},
		{"\x1b[2K", "`<U+001B>[2K`", "```\n<U+001B>[2K\n```"},
		{"a\xe2\x80\xae"
		 "b",
			"`a<U+202E>b`", "```\na<U+202E>b\n```"},
		{"\xe2\x81\xa6", "`<U+2066>`", "```\n<U+2066>\n```"},
		{"\xe2\x80\x8b", "`<U+200B>`", "```\n<U+200B>\n```"},
		{"\xe2\x80\xa8", "`<U+2028>`", "```\n<U+2028>\n```"},
		{"\xf3\xa0\x81\x81", "`<U+E0041>`", "```\n<U+E0041>\n```"},
		{"\xc2\xa0", "`<U+00A0>`", "```\n<U+00A0>\n```"},
		{"\xc2\x85", "`<U+0085>`", "```\n<U+0085>\n```"},
		{"\xff", "`<0xFF>`", "```\n<0xFF>\n```"},
		{"Gr\xc3\xbc\xc3\x9f"
		 "e",
			"`Gr\xc3\xbc\xc3\x9f"
			"e`",
			"```\nGr\xc3\xbc\xc3\x9f"
			"e\n```"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_code(cases[i].text, ALL, cases[i].line);
		assert_block(cases[i].text, cases[i].block);
	}
}

static void test_a_block_ends_where_the_broker_ends_it(void **state)
{
	assert_block("make\n```\n\nharmless", "````\nmake\n```\n\nharmless\n````");
	assert_block("`````", "``````\n`````\n``````");
	assert_block("~~~", "```\n~~~\n```");
	assert_block("", "```\n\n```");
}

static void test_what_is_cut_is_said(void **state)
{
	assert_code("abcdef", 4, "`abcd` … and 2 bytes more");
	assert_code("abcd", 4, "`abcd`");
	assert_code("abc\xc3\xbc", 4, "`abc` … and 2 bytes more"); // no half of a character
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_on_a_line_ends_where_the_broker_ends_it),
		cmocka_unit_test(test_what_a_reader_does_not_see_is_spelled_out),
		cmocka_unit_test(test_a_block_ends_where_the_broker_ends_it),
		cmocka_unit_test(test_what_is_cut_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
