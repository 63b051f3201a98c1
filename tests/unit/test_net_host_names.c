/* SPDX-License-Identifier: MIT */
#include "providers/local/net/host_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/text.h"

static void assert_read(const char *text, const char *expected)
{
	char name[NAME_SIZE];
	if (!host_name_read(name, span_of(text))) {
		fail_msg("%s is no name", text);
	}
	assert_string_equal(name, expected);
}

static void assert_refused(struct span text)
{
	char name[NAME_SIZE];
	if (host_name_read(name, text)) {
		fail_msg("%.*s is a name: %s", (int)text.len, text.data, name);
	}
	assert_string_equal(name, "");
}

static void test_a_name_is_lower_case_without_its_last_dot(void **state)
{
	assert_read("Example.COM.", "example.com");
	assert_read("localhost", "localhost");
	assert_read("_srv.1.a--b.x1", "_srv.1.a--b.x1");
}

static void test_what_is_no_name_is_refused(void **state)
{
	static const char *const texts[] = {"", ".", "a..b", ".a", "a..", "-a.b", "a-.b", "a b",
		"a/b", "a:1", "a*", "*.a.b", "a\n", "\xc3\xa4.b"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		assert_refused(span_of(texts[i]));
	}
	assert_refused(SPAN_LITERAL("a.b\0.c"));
	assert_refused((struct span){NULL, 0});
}

/* A program would connect to the number without asking for a name. */
static void test_what_would_be_read_as_an_address_is_refused(void **state)
{
	static const char *const texts[] = {"1", "127.1", "127.0.0.1", "0x7f000001", "0X7F.1",
		"1.2.0xa", "a.017", "0x", "1.0x."};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		assert_refused(span_of(texts[i]));
	}
}

static void test_a_label_and_a_name_have_a_longest(void **state)
{
	char text[NAME_MAX_BYTES + 2];
	memset(text, 'a', sizeof(text));
	for (size_t at = 63; at < sizeof(text); at += 64) {
		text[at] = '.';
	}
	char name[NAME_SIZE];
	assert_true(host_name_read(name, (struct span){text, NAME_MAX_BYTES}));
	assert_int_equal(strlen(name), NAME_MAX_BYTES);
	assert_refused((struct span){text, NAME_MAX_BYTES + 1});
	text[63] = 'a';
	assert_refused((struct span){text, 64});
}

static void test_a_name_has_one_address_of_its_own(void **state)
{
	struct host_names *names = host_names_create();
	uint32_t first = host_names_give(names, "a.example");
	uint32_t second = host_names_give(names, "b.example");
	assert_int_equal(first, NAMES_FIRST);
	assert_int_equal(second, NAMES_FIRST + 1);
	assert_int_equal(host_names_give(names, "a.example"), first);
	assert_string_equal(host_names_find(names, first), "a.example");
	assert_string_equal(host_names_find(names, second), "b.example");
	host_names_destroy(names);
}

static void test_an_address_that_nobody_got_has_no_name(void **state)
{
	struct host_names *names = host_names_create();
	assert_null(host_names_find(names, NAMES_FIRST));
	host_names_give(names, "a.example");
	assert_null(host_names_find(names, NAMES_FIRST + 1));
	assert_null(host_names_find(names, NAMES_FIRST - 1));
	assert_null(host_names_find(names, 0));
	assert_null(host_names_find(names, UINT32_MAX));
	host_names_destroy(names);
}

static void test_names_have_an_end_and_those_before_it_stay(void **state)
{
	char name[32];
	struct host_names *names = host_names_create();
	for (uint32_t i = 0; i < NAMES_MAX; i++) {
		text_whole(name, sizeof(name), "n%u.example", i);
		assert_int_equal(host_names_give(names, name), NAMES_FIRST + i);
	}
	assert_int_equal(host_names_give(names, "one.more"), 0);
	assert_int_equal(host_names_give(names, "n7.example"), NAMES_FIRST + 7);
	/* All of them are in 198.18.0.0/15. */
	assert_int_equal((NAMES_FIRST + NAMES_MAX - 1) >> 17, 0xc6120000 >> 17);
	host_names_destroy(names);
	host_names_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_is_lower_case_without_its_last_dot),
		cmocka_unit_test(test_what_is_no_name_is_refused),
		cmocka_unit_test(test_what_would_be_read_as_an_address_is_refused),
		cmocka_unit_test(test_a_label_and_a_name_have_a_longest),
		cmocka_unit_test(test_a_name_has_one_address_of_its_own),
		cmocka_unit_test(test_an_address_that_nobody_got_has_no_name),
		cmocka_unit_test(test_names_have_an_end_and_those_before_it_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
