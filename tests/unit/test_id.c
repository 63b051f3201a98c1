/* SPDX-License-Identifier: MIT */
#include "sync/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_ids_are_written_as_git_writes_them(void **state)
{
	char text[ID_TEXT_SIZE];
	git_oid id;
	for (size_t i = 0; i < sizeof(id.id); i++) {
		id.id[i] = (unsigned char)(i * 13);
	}
	assert_string_equal(id_text(text, &id), "000d1a2734414e5b6875828f9ca9b6c3d0ddeaf7");
}

static void test_ids_are_equal_to_the_last_byte(void **state)
{
	git_oid a = {{1, 2, 3}};
	git_oid b = a;
	assert_true(id_equal(&a, &b));
	b.id[sizeof(b.id) - 1] = 1;
	assert_false(id_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_are_written_as_git_writes_them),
		cmocka_unit_test(test_ids_are_equal_to_the_last_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
