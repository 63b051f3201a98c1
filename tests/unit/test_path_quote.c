/* SPDX-License-Identifier: MIT */
#include "base/path_quote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"

static void assert_quoted(struct span path, const char *expected)
{
	char *quoted = path_quote(path);
	assert_string_equal(quoted, expected);
	free(quoted);
}

static void test_plain_names_stay_as_they_are(void **state)
{
	static const char *const plain[] = {"", "a", "src/main.c", "with blank", "-dash",
		"Grüße.txt", "日本/語", "\xf0\x9f\x8e\x89", "it's"};
	for (size_t i = 0; i < ARRAY_LENGTH(plain); i++) {
		assert_quoted(span_of(plain[i]), plain[i]);
	}
}

static void test_what_drives_a_terminal_is_escaped(void **state)
{
	assert_quoted(span_of("a\x1b[2Jb"), "\"a\\033[2Jb\"");
	assert_quoted(span_of("bell\a\b\t\n\v\f\r"), "\"bell\\a\\b\\t\\n\\v\\f\\r\"");
	assert_quoted(span_of("\x7f"), "\"\\177\"");
	assert_quoted(span_of("\xc2\x9b"), "\"\\302\\233\"");
	assert_quoted((struct span){"a\0b", 3}, "\"a\\000b\"");
}

static void test_what_would_end_the_quotes_is_escaped(void **state)
{
	assert_quoted(span_of("say \"x\""), "\"say \\\"x\\\"\"");
	assert_quoted(span_of("back\\slash"), "\"back\\\\slash\"");
}

static void test_bytes_that_are_no_text_are_escaped(void **state)
{
	assert_quoted(span_of("\xff"), "\"\\377\"");
	assert_quoted(span_of("caf\xe9.txt"), "\"caf\\351.txt\"");
	assert_quoted(span_of("\xc3"), "\"\\303\"");
	assert_quoted(span_of("é\xc3"), "\"é\\303\"");
}

static void test_characters_that_turn_the_text_are_escaped(void **state)
{
	assert_quoted(span_of("a\xe2\x80\xae"
			      "txt.exe"),
		"\"a\\342\\200\\256txt.exe\"");
	assert_quoted(span_of("\xe2\x81\xa6"), "\"\\342\\201\\246\"");
	assert_quoted(span_of("\xef\xbb\xbf"), "\"\\357\\273\\277\"");
	assert_quoted(span_of("\xe2\x80\xa6"), "\xe2\x80\xa6");
}

static void test_characters_that_show_nothing_are_escaped(void **state)
{
	assert_quoted(span_of("\xc2\xad"), "\"\\302\\255\"");                   // soft hyphen
	assert_quoted(span_of("\xe3\x85\xa4"), "\"\\343\\205\\244\"");          // Hangul filler
	assert_quoted(span_of("\xf3\xa0\x81\x81"), "\"\\363\\240\\201\\201\""); // a tag
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names_stay_as_they_are),
		cmocka_unit_test(test_what_drives_a_terminal_is_escaped),
		cmocka_unit_test(test_what_would_end_the_quotes_is_escaped),
		cmocka_unit_test(test_bytes_that_are_no_text_are_escaped),
		cmocka_unit_test(test_characters_that_turn_the_text_are_escaped),
		cmocka_unit_test(test_characters_that_show_nothing_are_escaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
