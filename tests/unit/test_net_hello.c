/* SPDX-License-Identifier: MIT */
#include "providers/local/net/hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net_bytes.h"

static char bytes[512];
static char name[NAME_SIZE];

static void test_the_server_name_is_read(void **state)
{
	size_t size = net_hello("Front.Example.com", bytes);
	assert_int_equal(hello_read((struct span){bytes, size}, name), HELLO_NAME);
	assert_string_equal(name, "front.example.com");
	memset(bytes + size, 'x', 10); // bytes after the record do not matter
	assert_int_equal(hello_read((struct span){bytes, size + 10}, name), HELLO_NAME);
}

static void test_each_beginning_may_become_one(void **state)
{
	size_t size = net_hello("front.example.com", bytes);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(hello_read((struct span){bytes, i}, name), HELLO_MORE);
	}
}

static void test_what_is_not_tls_is_known_by_its_first_byte(void **state)
{
	assert_int_equal(hello_read(SPAN_LITERAL("GET / HTTP/1.1\r\n"), name), HELLO_NONE);
	assert_int_equal(hello_read(SPAN_LITERAL("SSH-2.0-x"), name), HELLO_NONE);
	assert_int_equal(hello_read(SPAN_LITERAL("\x16\x02\x01\0\5"), name), HELLO_NONE);
	assert_int_equal(hello_read(SPAN_LITERAL("\x16\x03\x01\xff\xff"), name), HELLO_NONE);
	assert_int_equal(hello_read(SPAN_LITERAL("\x16\x03\x01\0\0"), name), HELLO_NONE);
}

static void test_lengths_that_do_not_fit_and_names_that_are_none_are_refused(void **state)
{
	static const char *const names[] = {"127.0.0.1", "a b", "", "x..y"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t size = net_hello(names[i], bytes);
		assert_int_equal(hello_read((struct span){bytes, size}, name), HELLO_NONE);
	}
	/*
	 * The places of the lengths: of the handshake, of each list before the extensions, of
	 * these, of a name.
	 */
	static const size_t lengths[] = {8, 43, 45, 48, 50, 54, 60, 62, 65};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t size = net_hello("front.example.com", bytes);
		bytes[lengths[i]] = (char)0xff;
		assert_int_equal(hello_read((struct span){bytes, size}, name), HELLO_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_server_name_is_read),
		cmocka_unit_test(test_each_beginning_may_become_one),
		cmocka_unit_test(test_what_is_not_tls_is_known_by_its_first_byte),
		cmocka_unit_test(test_lengths_that_do_not_fit_and_names_that_are_none_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
