/* SPDX-License-Identifier: MIT */
#include "base/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/words.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_list(char **list, const char *expected)
{
	char joined[256] = "";
	size_t used = 0;
	for (char **entry = list; *entry; entry++) {
		used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s|", *entry);
	}
	assert_string_equal(joined, expected);
	words_free(list);
}

static void test_additions_come_behind_what_is_there(void **state)
{
	assert_list(environment_merge(LIST("B=1", "A=2"), LIST("D=3", "C=4")), "B=1|A=2|D=3|C=4|");
}

static void test_an_addition_replaces_its_name_in_its_place(void **state)
{
	assert_list(environment_merge(LIST("A=1", "B=2", "C=3"), LIST("B=new=2", "D=4")),
		"A=1|B=new=2|C=3|D=4|");
}

static void test_the_last_of_two_additions_wins(void **state)
{
	assert_list(environment_merge(LIST("A=1"), LIST("B=1", "A=2", "B=2")), "A=2|B=2|");
}

static void test_a_name_is_compared_whole(void **state)
{
	assert_list(environment_merge(LIST("PATH=/bin", "PATHS=x", "PAT=y"), LIST("PATH=/")),
		"PATH=/|PATHS=x|PAT=y|");
}

static void test_an_empty_value_and_a_newline_are_kept(void **state)
{
	assert_list(
		environment_merge(LIST("A=", "B=one\ntwo"), LIST("C=\n")), "A=|B=one\ntwo|C=\n|");
	assert_list(environment_merge(LIST("A=1"), LIST("A=")), "A=|");
}

static void test_either_list_may_be_empty(void **state)
{
	assert_list(environment_merge(LIST(NULL), LIST("A=1")), "A=1|");
	assert_list(environment_merge(LIST("A=1"), LIST(NULL)), "A=1|");
	assert_list(environment_merge(LIST("A=1"), NULL), "A=1|");
	assert_list(environment_merge(NULL, LIST("A=1")), "A=1|");
	assert_list(environment_merge(NULL, NULL), "");
	words_free(NULL);
}

static void test_a_variable_is_taken_out_by_its_whole_name(void **state)
{
	char **list = environment_merge(LIST("A=1", "AB=2", "B=3", "A=4"), NULL);
	environment_drop(list, "A");
	assert_list(list, "AB=2|B=3|");
	list = environment_merge(LIST("A=1"), NULL);
	environment_drop(list, "A");
	assert_list(list, "");
}

/* environ may hold anything that execve was given. */
static void test_entries_without_a_value_pass(void **state)
{
	assert_list(environment_merge(LIST("odd", "A=1"), LIST("odd=2")), "odd=2|A=1|");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_additions_come_behind_what_is_there),
		cmocka_unit_test(test_an_addition_replaces_its_name_in_its_place),
		cmocka_unit_test(test_the_last_of_two_additions_wins),
		cmocka_unit_test(test_a_name_is_compared_whole),
		cmocka_unit_test(test_an_empty_value_and_a_newline_are_kept),
		cmocka_unit_test(test_either_list_may_be_empty),
		cmocka_unit_test(test_a_variable_is_taken_out_by_its_whole_name),
		cmocka_unit_test(test_entries_without_a_value_pass),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
