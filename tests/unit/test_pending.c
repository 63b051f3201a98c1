/* SPDX-License-Identifier: MIT */
#include "acp/pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"
#include "tests/support/facts.h"

enum { MAX = 200 };

static struct pending_table table;
static struct pending pendings[MAX + 1];

static int set_up(void **state)
{
	pending_table_init(&table, MAX);
	return 0;
}

static int tear_down(void **state)
{
	struct pending *pending;
	while ((pending = pending_oldest(&table))) {
		pending_remove(&table, pending);
		pending_finish(pending);
	}
	pending_table_finish(&table);
	return 0;
}

static struct pending *add(int index, const char *origin)
{
	struct error err;
	assert_true(pending_add(&table, &pendings[index], span_of(origin), &err));
	return &pendings[index];
}

static struct pending *find(const char *raw)
{
	return pending_find(&table, span_of(raw));
}

static void take(int index)
{
	pending_remove(&table, &pendings[index]);
	pending_finish(&pendings[index]);
}

static void test_ids_are_minted_from_0_up(void **state)
{
	for (int i = 0; i < MAX; i++) {
		assert_int_equal(add(i, "\"x\"")->id, i);
	}
	assert_int_equal(table.count, MAX);
}

static void test_an_answer_finds_its_request_by_the_minted_id(void **state)
{
	for (int i = 0; i < MAX; i++) {
		add(i, "1");
	}
	assert_ptr_equal(find("0"), &pendings[0]);
	assert_ptr_equal(find("64"), &pendings[64]); // the bucket of 0
	assert_ptr_equal(find("199"), &pendings[199]);
	assert_null(find("200"));
}

static void test_a_minted_id_is_never_used_twice(void **state)
{
	add(0, "1");
	take(0);
	assert_null(find("0"));
	assert_int_equal(add(0, "1")->id, 1);
	assert_null(find("0"));
}

/* JSON has several spellings of a number; the broker wrote one of them. */
static void test_another_spelling_of_an_id_is_another_id(void **state)
{
	static const char *const spellings[] = {"", "\"0\"", "-0", "00", "0.0", "0e0", "+0", " 0",
		"0 ", "null", "1", "true", "18446744073709551616", "0000000000000000", "[0]"};
	add(0, "7");
	for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++) {
		assert_null(find(spellings[i]));
	}
	assert_ptr_equal(find("0"), &pendings[0]);
}

static void test_origin_ids_are_kept_to_the_byte(void **state)
{
	static const char *const ids[] = {"1", "\"1\"", "1.0", "1e0", "-7", "9007199254740993",
		"\"\\u0031\"", "null", "\"\""};
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		add((int)i, ids[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		assert_true(span_is(pending_origin(&pendings[i]), ids[i]));
		assert_ptr_equal(pending_find_origin(&table, span_of(ids[i])), &pendings[i]);
	}
	assert_null(pending_find_origin(&table, SPAN_LITERAL("1.00")));
}

static void test_the_origin_id_is_copied_and_outlives_the_table(void **state)
{
	struct error err;
	char id[] = "\"editor-1\"";
	assert_true(pending_add(&table, &pendings[0], span_of(id), &err));
	id[1] = 'X';
	pending_remove(&table, &pendings[0]);
	assert_true(span_is(pending_origin(&pendings[0]), "\"editor-1\""));
	pending_finish(&pendings[0]);
}

static void test_the_brokers_own_requests_have_no_origin(void **state)
{
	struct error err;
	assert_true(pending_add(&table, &pendings[0], (struct span){NULL, 0}, &err));
	assert_int_equal(pending_origin(&pendings[0]).len, 0);
	assert_null(pending_find_origin(&table, (struct span){NULL, 0}));
	assert_null(pending_find_origin(&table, SPAN_LITERAL("")));
	assert_ptr_equal(find("0"), &pendings[0]);
}

static void test_of_two_requests_with_one_id_the_older_is_found(void **state)
{
	add(0, "5");
	add(1, "5");
	assert_ptr_equal(pending_find_origin(&table, SPAN_LITERAL("5")), &pendings[0]);
	take(0);
	assert_ptr_equal(pending_find_origin(&table, SPAN_LITERAL("5")), &pendings[1]);
}

static void test_the_oldest_comes_first(void **state)
{
	assert_null(pending_oldest(&table));
	add(0, "1");
	add(1, "2");
	add(2, "3");
	take(0);
	assert_ptr_equal(pending_oldest(&table), &pendings[1]);
}

static void test_a_full_table_refuses(void **state)
{
	struct error err;
	for (int i = 0; i < MAX; i++) {
		add(i, "1");
	}
	assert_false(pending_add(&table, &pendings[MAX], SPAN_LITERAL("1"), &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.reason, "RESOURCE_LIMIT_EXCEEDED");
	assert_names(err.text, "200 requests");
	take(3);
	assert_true(pending_add(&table, &pendings[MAX], SPAN_LITERAL("1"), &err));
	assert_int_equal(pendings[MAX].id, MAX); // the refused one has not used up an id
}

#define PENDING_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PENDING_TEST(test_ids_are_minted_from_0_up),
		PENDING_TEST(test_an_answer_finds_its_request_by_the_minted_id),
		PENDING_TEST(test_a_minted_id_is_never_used_twice),
		PENDING_TEST(test_another_spelling_of_an_id_is_another_id),
		PENDING_TEST(test_origin_ids_are_kept_to_the_byte),
		PENDING_TEST(test_the_origin_id_is_copied_and_outlives_the_table),
		PENDING_TEST(test_the_brokers_own_requests_have_no_origin),
		PENDING_TEST(test_of_two_requests_with_one_id_the_older_is_found),
		PENDING_TEST(test_the_oldest_comes_first),
		PENDING_TEST(test_a_full_table_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
