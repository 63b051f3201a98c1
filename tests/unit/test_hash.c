/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Of draft-eastlake-fnv, its table of 64 bits. */
static void test_is_as_published(void **state)
{
	assert_true(hash_bytes(HASH_START, SPAN_LITERAL("")) == UINT64_C(0xcbf29ce484222325));
	assert_true(hash_bytes(HASH_START, SPAN_LITERAL("a")) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(hash_bytes(HASH_START, SPAN_LITERAL("foobar")) == UINT64_C(0x85944171f73967e8));
}

static void test_goes_on_after_others(void **state)
{
	uint64_t whole = hash_bytes(HASH_START, SPAN_LITERAL("foobar"));
	assert_true(hash_bytes(hash_bytes(HASH_START, SPAN_LITERAL("foo")), SPAN_LITERAL("bar")) ==
		    whole);
}

static void test_tells_where_texts_end(void **state)
{
	assert_true(hash_text(hash_text(HASH_START, "ab"), "c") !=
		    hash_text(hash_text(HASH_START, "a"), "bc"));
	assert_true(hash_text(HASH_START, "ab") ==
		    hash_bytes(HASH_START, (struct span){"ab", sizeof("ab")}));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_as_published),
		cmocka_unit_test(test_goes_on_after_others),
		cmocka_unit_test(test_tells_where_texts_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
