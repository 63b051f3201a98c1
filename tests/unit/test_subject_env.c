/* SPDX-License-Identifier: MIT */
#include "broker/subject_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1500 };

static void assert_env(const char *env, const char *shown, const char *names)
{
	const struct subject subject = {
		.operation = POLICY_TERMINAL, .env = mem_strdup_or_null(env)};
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	assert_true(subject_env_show(&subject, &out));
	assert_true(buf_append(&out, (struct span){"", 1}, NULL));
	assert_string_equal(buf_span(&out).data, shown);
	buf_finish(&out);
	char *told = subject_env_names(&subject);
	if (names) {
		assert_string_equal(told, names);
	} else {
		assert_null(told);
	}
	free(told);
	free(subject.env);
}

static void test_variables_are_shown_one_a_line(void **state)
{
	assert_env(NULL, "", NULL);
	assert_env(
		"[{\"name\":\"LD_PRELOAD\",\"value\":\"/x.so\"},{\"value\":\"\",\"name\":\"A\"}]",
		"\n\nwith\nLD_PRELOAD=/x.so\nA=", "[\"LD_PRELOAD\",\"A\"]");
}

static void test_what_could_mislead_a_reader_is_quoted(void **state)
{
	assert_env(
		"[{\"name\":\"A\",\"value\":\"b\\nC=d\"}]", "\n\nwith\n\"A=b\\nC=d\"", "[\"A\"]");
}

static void test_values_of_secrets_are_masked(void **state)
{
	assert_env("[{\"name\":\"API_KEY\",\"value\":\"hush\"}]", "\n\nwith\nAPI_KEY=***",
		"[\"API_KEY\"]");
}

static void test_what_is_no_variable_is_told_all_the_same(void **state)
{
	assert_env("[7,{\"name\":\"A\"}]",
		"\n\nwith\n(one that cannot be shown)\n(one that cannot be shown)",
		"[\"?\",\"A\"]");
	assert_env("\"A=b\"", "\n\nwith variables that cannot be shown",
		"[\"variables that cannot be shown\"]");
}

static void test_a_flood_of_variables_is_cut_and_that_is_said(void **state)
{
	struct buf env;
	struct buf out;
	buf_init(&env, SIZE_MAX / 2);
	buf_init(&out, SIZE_MAX / 2);
	assert_true(buf_append_format(&env, NULL, "[{\"name\":\"LONG\",\"value\":\"%02000d\"}", 0));
	for (int i = 0; i < MANY; i++) {
		assert_true(buf_append_format(
			&env, NULL, ",{\"name\":\"N%04d\",\"value\":\"a long value\"}", i));
	}
	assert_true(buf_append(&env, SPAN_LITERAL("]"), NULL));
	char *text = mem_strndup(buf_span(&env));
	const struct subject subject = {.operation = POLICY_TERMINAL, .env = text};
	assert_true(subject_env_show(&subject, &out));
	assert_in_range(out.len, 1, SUBJECT_ENV_SHOWN_MAX + 2 * SUBJECT_ENV_VALUE_MAX);
	assert_true(buf_append(&out, (struct span){"", 1}, NULL));
	assert_non_null(strstr(buf_span(&out).data, "0 … and 976 bytes more\nN0000=a long value"));
	assert_non_null(strstr(buf_span(&out).data, " variables more"));
	free(text);
	buf_finish(&env);
	buf_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables_are_shown_one_a_line),
		cmocka_unit_test(test_what_could_mislead_a_reader_is_quoted),
		cmocka_unit_test(test_values_of_secrets_are_masked),
		cmocka_unit_test(test_what_is_no_variable_is_told_all_the_same),
		cmocka_unit_test(test_a_flood_of_variables_is_cut_and_that_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
