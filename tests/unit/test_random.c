/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <cmocka.h>

static int interruptions; // that the next calls meet
static int missing;       // whether the kernel has no getrandom

ssize_t __real_getrandom(void *out, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags);

ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags)
{
	if (interruptions > 0) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	if (missing) {
		errno = ENOSYS;
		return -1;
	}
	return __real_getrandom(out, size > 3 ? 3 : size, flags); // less than was asked for
}

static void check_fill(void)
{
	uint8_t one[32] = {0};
	uint8_t other[32] = {0};
	random_fill(one, sizeof(one));
	random_fill(other, sizeof(other));
	assert_memory_not_equal(one, other, sizeof(one));
	assert_memory_not_equal(one + 16, (uint8_t[16]){0}, 16);
}

static void test_bytes_come_in_pieces_and_after_signals(void **state)
{
	(void)state;
	interruptions = 3;
	check_fill();
	assert_int_equal(interruptions, 0);
}

static void test_a_kernel_without_getrandom_has_a_device(void **state)
{
	(void)state;
	missing = 1;
	check_fill();
	missing = 0;
}

static void test_text_has_as_many_digits_as_asked_for(void **state)
{
	char text[34];
	(void)state;
	memset(text, 'x', sizeof(text));
	random_fill_hex(text, 32);
	assert_int_equal(strspn(text, "0123456789abcdef"), 32);
	assert_int_equal(text[32], '\0');
	assert_int_equal(text[33], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_come_in_pieces_and_after_signals),
		cmocka_unit_test(test_a_kernel_without_getrandom_has_a_device),
		cmocka_unit_test(test_text_has_as_many_digits_as_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
