/* SPDX-License-Identifier: MIT */
#include "sync/id_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static git_oid id_of(uint64_t number)
{
	git_oid id = {{0}};
	uint64_t mixed = number * 0x9e3779b97f4a7c15U;
	memcpy(id.id, &mixed, sizeof(mixed));
	return id;
}

static void test_what_was_added_is_in_it_and_nothing_else(void **state)
{
	struct id_set set = {0};
	git_oid id = id_of(1);
	assert_false(id_set_has(&set, &id));
	for (uint64_t i = 0; i < 20000; i++) {
		id = id_of(2 * i);
		assert_true(id_set_add(&set, &id));
		assert_false(id_set_add(&set, &id));
	}
	assert_int_equal(set.count, 20000);
	for (uint64_t i = 0; i < 20000; i++) {
		id = id_of(2 * i);
		assert_true(id_set_has(&set, &id));
		id = id_of(2 * i + 1);
		assert_false(id_set_has(&set, &id));
	}
	id_set_finish(&set);
}

static void test_ids_that_share_a_place_are_told_apart(void **state)
{
	struct id_set set = {0};
	git_oid ids[64] = {0};
	for (unsigned char i = 0; i < 64; i++) {
		ids[i].id[7] = i; // the place is decided by the other end
		assert_true(id_set_add(&set, &ids[i]));
	}
	for (unsigned char i = 0; i < 64; i++) {
		assert_true(id_set_has(&set, &ids[i]));
	}
	git_oid other = {{0}};
	other.id[7] = 64;
	assert_false(id_set_has(&set, &other));
	id_set_finish(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_added_is_in_it_and_nothing_else),
		cmocka_unit_test(test_ids_that_share_a_place_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
