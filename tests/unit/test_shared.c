/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/shared.h"

static void test_bytes_are_taken_without_a_copy(void **state)
{
	struct buf bytes;
	buf_init(&bytes, 100);
	buf_add(&bytes, SPAN_LITERAL("content"));
	const char *place = buf_span(&bytes).data;
	struct shared *shared = shared_take(&bytes);
	assert_ptr_equal(shared_span(shared).data, place);
	assert_true(span_is(shared_span(shared), "content"));
	assert_null(buf_span(&bytes).data);
	assert_int_equal(bytes.max, 100);
	shared_release(shared);
	buf_finish(&bytes);
}

/* The sanitizers see if the bytes were freed too early, or not at all. */
static void test_the_last_owner_frees_the_bytes(void **state)
{
	char text[] = "content";
	struct shared *first = shared_copy(span_of(text));
	text[0] = '?';
	struct shared *second = shared_reference(first);
	assert_ptr_equal(second, first);
	shared_release(first);
	assert_true(span_is(shared_span(second), "content"));
	shared_release(second);
}

static void test_no_bytes(void **state)
{
	struct buf none;
	buf_init(&none, 0);
	struct shared *taken = shared_take(&none);
	struct shared *copied = shared_copy((struct span){NULL, 0});
	assert_int_equal(shared_span(taken).len, 0);
	assert_int_equal(shared_span(copied).len, 0);
	assert_int_equal(shared_span(NULL).len, 0);
	shared_release(taken);
	shared_release(copied);
	shared_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_are_taken_without_a_copy),
		cmocka_unit_test(test_the_last_owner_frees_the_bytes),
		cmocka_unit_test(test_no_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
