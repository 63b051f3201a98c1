/* SPDX-License-Identifier: MIT */
#include "base/ignore_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t lower(const char *rules, const char *below, const char *expected)
{
	struct buf out;
	uint64_t ignored = 0;
	buf_init(&out, 4096);
	ignore_rules_lower(span_of(rules), below, &ignored, &out);
	char *text = mem_strndup(buf_span(&out));
	assert_string_equal(text, expected);
	free(text);
	buf_finish(&out);
	return ignored;
}

static void test_a_name_is_ignored_in_every_folder(void **state)
{
	assert_int_equal(lower("*.log\n!kept.log\nnode_modules/\n", "parts/web",
				 "*.log\n!kept.log\nnode_modules/\n"),
		0);
}

static void test_a_path_loses_the_folders_on_the_way(void **state)
{
	lower("/parts/web/out\nparts/*/gen/*.c\n!/parts/web/gen/a.c\n/parts/web/deep/in/\n",
		"parts/web", "/out\n/gen/*.c\n!/gen/a.c\n/deep/in/\n");
}

static void test_a_rule_of_another_folder_is_left_out(void **state)
{
	assert_int_equal(lower("/parts/app/out\n/web\nout/x\n", "parts/web", ""), 0);
}

static void test_two_stars_stand_for_any_number_of_folders(void **state)
{
	lower("**/gen/x\n", "a", "/**/gen/x\n");
	lower("**/web/out\n", "parts/web", "/out\n/**/web/out\n");
	lower("parts/**/out\n", "parts/web", "/**/out\n");
	lower("parts/web/**\n", "parts/web", "/**\n");
}

static void test_what_is_no_rule_is_left_out(void **state)
{
	lower("# parts\n\n   \n/\n!\n", "parts", "");
	lower("out  \r\nname\\ \n", "parts", "out\nname\\ \n");
}

static void test_what_is_said_of_the_folders_on_the_way_is_told(void **state)
{
	assert_int_equal(lower("/parts\n", "parts/web", ""), 1);
	assert_int_equal(lower("web/\n", "parts/web", "web/\n"), 2);
	assert_int_equal(lower("parts/*\n!parts/web\n", "parts/web", ""), 0);
	assert_int_equal(lower("parts/**\n", "parts/web", ""), 2);
	assert_int_equal(lower("/parts/web/\n", "parts/web", ""), 2);
}

/* Each pair of stars doubles the number of ways to try. */
static void test_a_rule_of_many_stars_comes_to_an_end(void **state)
{
	struct buf out;
	uint64_t ignored = 0;
	buf_init(&out, 1 << 20);
	ignore_rules_lower(SPAN_LITERAL("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/x\n"),
		"a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", &ignored, &out);
	assert_true(out.len > 0 && out.len < 8192);
	buf_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_is_ignored_in_every_folder),
		cmocka_unit_test(test_a_path_loses_the_folders_on_the_way),
		cmocka_unit_test(test_a_rule_of_another_folder_is_left_out),
		cmocka_unit_test(test_two_stars_stand_for_any_number_of_folders),
		cmocka_unit_test(test_what_is_no_rule_is_left_out),
		cmocka_unit_test(test_what_is_said_of_the_folders_on_the_way_is_told),
		cmocka_unit_test(test_a_rule_of_many_stars_comes_to_an_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
