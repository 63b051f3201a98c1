/* SPDX-License-Identifier: MIT */
#include "base/own_environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/words.h"

/* The program executes itself with this environment, whose memory /proc shows. */
static const char *const given[] = {"PATH=/bin", "DAYTONA_API_KEY=nobody-1", "a_password=nobody-2",
	"PLAIN=everybody", "CREDENTIAL=nobody-3", "CREDENTIAL_FILE=somebody",
	"https_proxy=http://me:nobody-4@a.example", "ALL_PROXY=http://somebody.example", NULL};

static bool kernel_shows(const char *text)
{
	char bytes[4096];
	FILE *file = fopen("/proc/self/environ", "r");
	assert_non_null(file);
	size_t len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return memmem(bytes, len, text, strlen(text)) != NULL;
}

static void test_the_copy_has_it_all_and_the_kernel_shows_no_secret(void **state)
{
	assert_true(kernel_shows("nobody-1"));
	char **copy = own_environment_take();
	for (size_t i = 0; given[i]; i++) {
		assert_string_equal(copy[i], given[i]);
	}
	assert_null(copy[ARRAY_LENGTH(given) - 1]);
	assert_false(kernel_shows("nobody-1") || kernel_shows("nobody-2"));
	assert_false(kernel_shows("nobody-4"));
	assert_true(kernel_shows("ALL_PROXY=http://somebody.example"));
	assert_true(kernel_shows("DAYTONA_API_KEY=") && kernel_shows("PLAIN=everybody"));
	assert_string_equal(getenv("DAYTONA_API_KEY"), "");
	assert_true(kernel_shows("nobody-3"));
	own_environment_forget("CREDENTIAL");
	own_environment_forget("NOT_THERE");
	assert_false(kernel_shows("nobody-3"));
	assert_true(kernel_shows("CREDENTIAL_FILE=somebody"));
	assert_string_equal(copy[4], given[4]);
	words_free(copy);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_copy_has_it_all_and_the_kernel_shows_no_secret),
	};
	if (argc == 1) {
		char *const again[] = {argv[0], (char *)"again", NULL};
		execve("/proc/self/exe", again, (char *const *)given);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
