/* SPDX-License-Identifier: MIT */
#include "providers/ssh/hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/words.h"

static void test_plain_names_are_found_once(void **state)
{
	static const char text[] = "# Host no\n"
				   "Host devbox *.example.com !not two ? devbox\r\n"
				   "  HostName 10.0.0.1\n"
				   "\thost = three \"four\" -oProxyCommand=x # five\n"
				   "Hostname six\nMatch host seven\nHOST [eight] a;b\nHost last";
	static const char *const expected[] = {"devbox", "two", "three", "last"};
	char **names = NULL;
	ssh_hosts_read(SPAN_LITERAL(text), &names);
	assert_int_equal(words_count(names), 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(names[i], expected[i]);
	}
	words_free(names);
}

static void test_there_is_a_limit(void **state)
{
	char text[2048] = "Host";
	for (int i = 0; i < SSH_HOSTS_MAX + 8; i++) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " h%d", i);
	}
	char **names = NULL;
	ssh_hosts_read(span_of(text), &names);
	assert_int_equal(words_count(names), SSH_HOSTS_MAX);
	words_free(names);
}

static void test_without_ssh_there_is_no_host(void **state)
{
	static const char *const environment[] = {"PATH=/nowhere", "HOME=/nowhere", NULL};
	char **names = NULL;
	struct error err;
	assert_false(ssh_hosts_find(environment, &names, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_null(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names_are_found_once),
		cmocka_unit_test(test_there_is_a_limit),
		cmocka_unit_test(test_without_ssh_there_is_no_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
