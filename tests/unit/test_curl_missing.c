/* SPDX-License-Identifier: MIT */

/* NOLINTNEXTLINE(bugprone-suspicious-include): its memory has no other way in */
#include "providers/curl.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/library_fixture.h"

static void expect(const char *words)
{
	struct error err;
	assert_null(curl_open(&err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	if (!strstr(err.text, words)) {
		fail_msg("not there: %s: %s", words, err.text);
	}
	assert_non_null(strstr(err.text, "is the package libcurl4 installed?"));
}

static void test_a_missing_library_names_the_package(void **state)
{
	library_fixture_soname = "libcurl-that-is-nowhere.so.4";
	expect("libcurl-that-is-nowhere.so.4");
}

static void test_a_library_without_the_functions_is_refused(void **state)
{
	library_fixture_soname = "libc.so.6";
	expect("libc.so.6 has no function curl_");
	expect("libc.so.6 has no function curl_");
}

/* ---- the memory of libcurl ---- */

static void test_memory_moves_with_its_bytes_and_is_aligned(void **state)
{
	char *bytes = piece_strdup("secret");
	assert_int_equal((uintptr_t)bytes % _Alignof(max_align_t), 0);
	bytes = piece_realloc(bytes, 1000);
	assert_string_equal(bytes, "secret");
	bytes = piece_realloc(bytes, 3);
	assert_memory_equal(bytes, "sec", 3);
	piece_free(bytes);
	bytes = piece_realloc(NULL, 4);
	piece_free(bytes);
	char *zeros = piece_alloc_zero(5, 7);
	for (size_t i = 0; i < 35; i++) {
		assert_int_equal(zeros[i], 0);
	}
	piece_free(zeros);
	piece_free(NULL);
	assert_null(piece_alloc_zero(SIZE_MAX / 2, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_missing_library_names_the_package),
		cmocka_unit_test(test_a_library_without_the_functions_is_refused),
		cmocka_unit_test(test_memory_moves_with_its_bytes_and_is_aligned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
