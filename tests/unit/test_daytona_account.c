/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/daytona/account.h"

static const char api[] = "https://api.example/api";
static const char key[] = "dtn_0123456789abcdef";
static const char jwt[] = "head.claims.signature";

static struct daytona_mark mark_of(const char *url, const char *organization, const char *secret)
{
	struct daytona_account account;
	struct daytona_mark mark;
	struct error err;
	daytona_account_init(&account, url, organization, secret);
	assert_true(daytona_account_mark(&account, &mark, &err));
	daytona_account_finish(&account);
	return mark;
}

static bool is_same(const struct daytona_mark *mark, const char *url, const char *organization,
	const char *secret)
{
	struct daytona_account account;
	struct error err;
	bool is_same = false;
	daytona_account_init(&account, url, organization, secret);
	assert_true(daytona_account_check(&account, mark, &is_same, &err));
	daytona_account_finish(&account);
	return is_same;
}

static void test_an_api_key_is_known_again_and_no_other(void **state)
{
	struct daytona_mark mark = mark_of(api, NULL, key);
	assert_true(is_same(&mark, api, NULL, key));
	assert_true(is_same(&mark, api, "its organization is not sent", key));
	assert_false(is_same(&mark, api, NULL, "dtn_0123456789abcdeg"));
	assert_false(is_same(&mark, api, NULL, NULL));
	assert_false(is_same(&mark, "https://other.example/api", NULL, key));
	assert_false(is_same(&mark, api, "one", jwt));
	daytona_mark_finish(&mark);
}

static void test_a_jwt_is_known_by_its_organization(void **state)
{
	struct daytona_mark mark = mark_of(api, "one", jwt);
	assert_string_equal(mark.print, "");
	assert_true(is_same(&mark, api, "one", "head.later.signature"));
	assert_false(is_same(&mark, api, "two", jwt));
	assert_false(is_same(&mark, api, NULL, jwt));
	assert_false(is_same(&mark, api, "one", key));
	daytona_mark_finish(&mark);
	mark = mark_of(api, NULL, jwt);
	assert_true(is_same(&mark, api, NULL, jwt));
	assert_false(is_same(&mark, api, NULL, "head.later.signature"));
	daytona_mark_finish(&mark);
}

static void test_a_mark_has_nothing_of_the_key_and_differs_each_time(void **state)
{
	struct daytona_mark first = mark_of(api, NULL, key), second = mark_of(api, NULL, key);
	assert_string_not_equal(first.salt, second.salt);
	assert_string_not_equal(first.print, second.print);
	assert_int_equal(strlen(first.print), DAYTONA_PRINT_SIZE - 1);
	assert_null(strstr(first.print, "0123456789abcdef"));
	daytona_mark_finish(&first);
	daytona_mark_finish(&second);
}

static void test_what_says_nothing_is_nobodys(void **state)
{
	struct daytona_mark mark = mark_of(api, NULL, NULL);
	assert_false(is_same(&mark, api, NULL, NULL));
	assert_false(is_same(&mark, api, NULL, key));
	daytona_mark_finish(&mark);
}

static void test_it_is_described_without_its_key(void **state)
{
	const char *const organizations[] = {NULL, "one"};
	for (size_t i = 0; i < 2; i++) {
		struct daytona_mark mark = mark_of(api, organizations[i], i ? jwt : key);
		char *text = daytona_mark_describe(&mark);
		assert_non_null(strstr(text, api));
		assert_non_null(strstr(text, i ? "organization one" : "another API key"));
		assert_null(strstr(text, key));
		free(text);
		daytona_mark_finish(&mark);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_api_key_is_known_again_and_no_other),
		cmocka_unit_test(test_a_jwt_is_known_by_its_organization),
		cmocka_unit_test(test_a_mark_has_nothing_of_the_key_and_differs_each_time),
		cmocka_unit_test(test_what_says_nothing_is_nobodys),
		cmocka_unit_test(test_it_is_described_without_its_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
