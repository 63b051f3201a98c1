/* SPDX-License-Identifier: MIT */
#include "broker/chat/style.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

static char *styled(struct span text, size_t first, size_t each, bool is_colored)
{
	struct style style;
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	style_init(&style, is_colored, "");
	while (text.len > 0) {
		size_t len = first > 0 ? first : each;
		len = len < text.len ? len : text.len;
		style_text(&style, (struct span){text.data, len}, &out);
		text = (struct span){text.data + len, text.len - len};
		first = 0;
	}
	style_end(&style, &out);
	char *all = mem_strndup(buf_span(&out));
	buf_finish(&out);
	return all;
}

static void assert_styled(const char *text, bool is_colored, const char *expected)
{
	char *all = styled(span_of(text), 0, SIZE_MAX, is_colored);
	assert_string_equal(all, expected);
	free(all);
}

static const char *const texts[] = {
	"plain\n# heading `x`\n#no heading\n**bold** and `code` and ``co`de``\nnext",
	"```c\nint *x = **y; # no `mark`\n```\nafter\n",
	"  ~~~~\n~~~\nin\n~~~~  \nout ** not bold **\n",
	"\033]0;title\007 \033[2J \xc2\x9b"
	"31m \xe2\x80\xae"
	"abc\r\n",
	"cut \xe2\x82\xac \xf0\x9f\x99\x82 \xff\xfe bad \xe2\x82",
	"`open code\nand ***more*** \\*\\*stars\n`` ` ``",
	"```not``` a fence\n####### seven\n###### six\n**",
};

/* The places and the number of cuts in a text make no difference. */
static void test_every_border_gives_the_same(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct span text = span_of(texts[i]);
		char *whole = styled(text, 0, SIZE_MAX, true);
		for (size_t cut = 1; cut <= text.len; cut++) {
			char *at_border = styled(text, cut, SIZE_MAX, true);
			char *in_pieces = styled(text, 0, cut, true);
			assert_string_equal(at_border, whole);
			assert_string_equal(in_pieces, whole);
			free(at_border);
			free(in_pieces);
		}
		free(whole);
	}
}

/* Without our colours, the text is the same as the one without colours. */
static void test_colours_add_only_colours(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		char *plain = styled(span_of(texts[i]), 0, SIZE_MAX, false);
		char *colored = styled(span_of(texts[i]), 0, SIZE_MAX, true);
		char *to = colored;
		for (char *from = colored; *from;) {
			if (*from != '\033') {
				*to++ = *from++;
				continue;
			}
			size_t len = 2 + strspn(from + 2, "0123456789;");
			assert_int_equal(from[1], '[');
			assert_int_equal(from[len], 'm');
			from += len + 1;
		}
		*to = '\0';
		assert_string_equal(colored, plain);
		assert_null(strchr(plain, '\033'));
		free(plain);
		free(colored);
	}
}

static void test_every_character_is_shown(void **state)
{
	assert_styled("# a **b** `c`\n```\nd\n```\n", false, "# a **b** `c`\n```\nd\n```\n");
	assert_styled("\033[31m\r\xe2\x80\xae\xef\xbb\xbf", false, "^[[31m^M<U+202E><U+FEFF>");
}

static void test_marks_have_their_colours(void **state)
{
	assert_styled("# a\nb", true, "\033[0;1m# a\033[0m\nb");
	assert_styled("a **b** c", true, "a \033[0;1m**b**\033[0m c");
	assert_styled("a `b` c", true, "a \033[0;36m`b`\033[0m c");
	assert_styled("2 ** 3 ** 4\n", true, "2 ** 3 ** 4\n");
}

/* A mark without its counterpart ends with its line. */
static void test_a_style_ends_with_its_line(void **state)
{
	assert_styled("`a\nb", true, "\033[0;36m`a\033[0m\nb");
	assert_styled("**a\nb", true, "\033[0;1m**a\033[0m\nb");
}

static void assert_cut(const char *text, size_t columns, const char *expected)
{
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	style_cut(span_of(text), columns, &out);
	char *all = mem_strndup(buf_span(&out));
	assert_string_equal(all, expected);
	free(all);
	buf_finish(&out);
}

static void test_a_line_is_cut_to_columns(void **state)
{
	assert_cut("abcde", 5, "abcde");
	assert_cut("abcdef", 5, "abcd\xe2\x80\xa6");
	assert_cut("a\nb\tc", 5, "a b c");
	assert_cut("ab\033c", 4, "ab\xe2\x80\xa6");
	assert_cut("abc", 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_border_gives_the_same),
		cmocka_unit_test(test_colours_add_only_colours),
		cmocka_unit_test(test_every_character_is_shown),
		cmocka_unit_test(test_marks_have_their_colours),
		cmocka_unit_test(test_a_style_ends_with_its_line),
		cmocka_unit_test(test_a_line_is_cut_to_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
