/* SPDX-License-Identifier: MIT */
#include "sync/parked.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *path_of(char *path)
{
	struct conflict conflict = {.path = path, .runtime = {ENTRY_FILE, {{0x3f, 0x2a, 0x91}}}};
	return parked_path(&conflict, "20260131T101502");
}

static void expect_path(const char *path, const char *expected)
{
	char *copy = mem_strdup(path);
	char *parked = path_of(copy);
	assert_string_equal(parked, expected);
	assert_true(parked_is_name(span_of(parked)));
	free(parked);
	free(copy);
}

static void test_a_parked_version_stands_beside_its_file(void **state)
{
	expect_path("main.c", "main.c.20260131T101502-3f2a91.acp-conflict");
	expect_path("src/in/main.c", "src/in/main.c.20260131T101502-3f2a91.acp-conflict");
	expect_path("src/.env", "src/.env.20260131T101502-3f2a91.acp-conflict");
}

static void test_a_long_name_is_cut_at_a_character(void **state)
{
	char path[4 + NAME_MAX + 1] = "dir/";
	for (size_t at = 4; at + 2 < sizeof(path); at += 2) {
		memcpy(path + at, "\xc3\xa4", 3);
	}
	char *parked = path_of(path);
	const char *name = parked + 4;
	assert_true(strlen(name) <= NAME_MAX);
	assert_true(strlen(name) > NAME_MAX - 2);
	assert_memory_equal(strchr(name, '.') - 2, "\xc3\xa4.", 3);
	free(parked);
}

static void test_only_the_ending_makes_a_name_a_parked_one(void **state)
{
	assert_true(parked_is_name(SPAN_LITERAL(".acp-conflict")));
	assert_false(parked_is_name(SPAN_LITERAL("a.acp-conflict.c")));
	assert_false(parked_is_name(SPAN_LITERAL("acp-conflict")));
	assert_false(parked_is_name(SPAN_LITERAL("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_parked_version_stands_beside_its_file),
		cmocka_unit_test(test_a_long_name_is_cut_at_a_character),
		cmocka_unit_test(test_only_the_ending_makes_a_name_a_parked_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
