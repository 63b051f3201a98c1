/* SPDX-License-Identifier: MIT */
#include "base/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PAGE_MAX = 1 << 20 };

/* Named on the command line. */
static const char *page;

static const struct library ours = {{"libnowhere.so.1", "libc.so.6"}, "libnowhere1", RTLD_LAZY};
static const struct library nowhere = {
	{"libnowhere.so.1", "libneither.so.1"}, "libnowhere1", RTLD_LAZY};
static const char *const names[] = {"strlen", "abs"};
static const char *const wrong_names[] = {"strlen", "no_such_function"};

static struct {
	size_t (*length)(const char *text);
	int (*magnitude)(int number);
} found;

static int starts, stops;
static bool start_fails;

static bool on_start(struct error *err)
{
	starts++;
	assert_int_equal(found.magnitude(-2), 2);
	return !start_fails || error_set(err, ERROR_SYSTEM, "it does not start");
}

static void on_stop(void)
{
	stops++;
}

static int reset(void **state)
{
	starts = stops = 0;
	start_fails = false;
	memset(&found, 0, sizeof(found));
	return 0;
}

static struct library_use use_of(const struct library *library, const char *const *which)
{
	return (struct library_use){.library = library,
		.reason = "PAPER_NEEDED",
		.alternative = " (paper does without it)",
		.names = which,
		.count = 2,
		.functions = &found,
		.start = on_start,
		.stop = on_stop,
		.lock = PTHREAD_MUTEX_INITIALIZER};
}

static void test_the_first_name_that_is_there_is_opened_and_its_functions_are_found(void **state)
{
	struct library_use use = use_of(&ours, names);
	struct error err;
	assert_true(library_open(&use, &err));
	assert_int_equal(found.length("four"), 4);
	assert_int_equal(found.magnitude(-7), 7);
	library_close(&use);
}

static void test_a_missing_library_is_told_with_its_package_and_the_alternative(void **state)
{
	struct library_use use = use_of(&nowhere, names);
	struct error err;
	assert_false(library_open(&use, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_string_equal(err.reason, "PAPER_NEEDED");
	assert_int_equal(strncmp(err.text, "loading libnowhere.so.1: ", 25), 0);
	assert_non_null(strstr(err.text, "is the package libnowhere1 installed?"));
	assert_non_null(strstr(err.text, "(paper does without it)"));
	assert_null(strstr(err.text, "libneither"));
	assert_false(library_open(&use, NULL));
	assert_int_equal(starts, 0);
}

static void test_a_library_without_a_function_is_refused(void **state)
{
	struct library_use use = use_of(&ours, wrong_names);
	struct error err;
	for (int i = 0; i < 2; i++) {
		assert_false(library_open(&use, &err));
		assert_int_equal(err.code, ERROR_UNAVAILABLE);
		assert_string_equal(err.reason, "PAPER_NEEDED");
		assert_non_null(strstr(err.text, "libc.so.6 has no function no_such_function: "));
		assert_non_null(strstr(err.text, "libnowhere1"));
	}
	assert_int_equal(starts, 0);
}

static void test_it_is_started_once_and_stopped_by_the_last_user(void **state)
{
	struct library_use use = use_of(&ours, names);
	struct error err;
	assert_true(library_open(&use, &err));
	assert_true(library_open(&use, &err));
	assert_int_equal(starts, 1);
	library_close(&use);
	assert_int_equal(stops, 0);
	library_close(&use);
	assert_int_equal(stops, 1);
	assert_true(library_open(&use, &err));
	assert_int_equal(starts, 2);
	library_keep(&use);
	library_close(&use);
	assert_int_equal(stops, 1);
	assert_true(library_open(&use, &err));
	assert_int_equal(starts, 2);
	library_close(&use);
}

static void test_a_start_that_fails_says_why_and_is_tried_again(void **state)
{
	struct library_use use = use_of(&ours, names);
	struct error err;
	start_fails = true;
	assert_false(library_open(&use, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_string_equal(err.text, "it does not start");
	start_fails = false;
	assert_true(library_open(&use, &err));
	assert_int_equal(starts, 2);
	library_close(&use);
	assert_int_equal(stops, 1);
}

/* ---- the table ---- */

static void assert_listed(const char *text, const char *name, size_t len)
{
	char *part = strndup(name, len);
	if (!strstr(text, part)) {
		fail_msg("%s does not name %s", page, part);
	}
	free(part);
}

/* Versions differ from machine to machine, so the page must have the name up to ".so". */
static void test_the_page_for_packagers_lists_every_library(void **state)
{
	char *text = calloc(1, PAGE_MAX);
	FILE *file = fopen(page, "r");
	assert_non_null(file);
	assert_in_range(fread(text, 1, PAGE_MAX - 1, file), 1, PAGE_MAX - 2);
	fclose(file);
	for (size_t i = 0; i < LIBRARY_COUNT; i++) {
		const char *soname = libraries[i].sonames[0];
		assert_non_null(libraries[i].package);
		assert_listed(text, soname, (size_t)(strstr(soname, ".so") - soname) + 3);
	}
	free(text);
}

int main(int argc, char **argv)
{
	assert(argc == 2);
	page = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			test_the_first_name_that_is_there_is_opened_and_its_functions_are_found,
			reset),
		cmocka_unit_test_setup(
			test_a_missing_library_is_told_with_its_package_and_the_alternative, reset),
		cmocka_unit_test_setup(test_a_library_without_a_function_is_refused, reset),
		cmocka_unit_test_setup(test_it_is_started_once_and_stopped_by_the_last_user, reset),
		cmocka_unit_test_setup(test_a_start_that_fails_says_why_and_is_tried_again, reset),
		cmocka_unit_test(test_the_page_for_packagers_lists_every_library),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
