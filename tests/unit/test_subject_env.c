/* SPDX-License-Identifier: MIT */
#include "broker/policy/subject_env.h"
#include "tests/support/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1500 };

/* The variables in the question, and in the log. */
static void show_env(const char *env, struct buf *shown, char **out_names)
{
	const struct subject subject = {
		.operation = POLICY_TERMINAL, .env = mem_strdup_or_null(env)};
	buf_init(shown, SIZE_MAX / 2);
	assert_true(subject_env_show(&subject, shown));
	assert_true(buf_append(shown, (struct span){"", 1}, NULL));
	*out_names = subject_env_names(&subject);
	free(subject.env);
}

static void assert_env(const char *env, const char *shown, const char *names)
{
	struct buf text;
	char *told;
	show_env(env, &text, &told);
	assert_string_equal(buf_span(&text).data, shown);
	buf_finish(&text);
	if (names) {
		assert_string_equal(told, names);
	} else {
		assert_null(told);
	}
	free(told);
}

static void test_variables_are_shown_one_a_line(void **state)
{
	assert_env(NULL, "", NULL);
	assert_env(
		"[{\"name\":\"LD_PRELOAD\",\"value\":\"/x.so\"},{\"value\":\"\",\"name\":\"A\"}]",
		"\n\nwith\n```\nLD_PRELOAD=/x.so\nA=\n```", "[\"LD_PRELOAD\",\"A\"]");
}

static void test_an_empty_list_is_none_however_it_is_written(void **state)
{
	static const char *const lists[] = {"[]", "[ ]", "[\n\t]", "null"};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct subject subject = {.operation = POLICY_TERMINAL};
		subject_set_env(&subject, span_of(lists[i]));
		assert_null(subject.env);
		assert_null(subject.variables);
	}
	assert_env("[ ]", "", "[]");
}

static void test_what_could_mislead_a_reader_is_quoted(void **state)
{
	assert_env("[{\"name\":\"A\",\"value\":\"b\\nC=d\"}]", "\n\nwith\n```\n\"A=b\\nC=d\"\n```",
		"[\"A\"]");
}

static void test_values_of_secrets_are_masked(void **state)
{
	assert_env("[{\"name\":\"API_KEY\",\"value\":\"hush\"}]", "\n\nwith\n```\nAPI_KEY=***\n```",
		"[\"API_KEY\"]");
}

static void test_what_is_no_variable_is_told_all_the_same(void **state)
{
	struct buf text;
	char *told;
	show_env("[7,{\"name\":\"A\"}]", &text, &told);
	assert_names(buf_span(&text).data, "\n\nwith\n```\n(one | shown)\n(one");
	assert_string_equal(told, "[\"?\",\"A\"]");
	buf_finish(&text);
	free(told);
	show_env("\"A=b\"", &text, &told);
	assert_names(buf_span(&text).data, "\n\nwith variables | shown");
	assert_null(strstr(buf_span(&text).data, "A=b"));
	assert_names(told, "[\"variables | shown\"]");
	buf_finish(&text);
	free(told);
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
		cmocka_unit_test(test_an_empty_list_is_none_however_it_is_written),
		cmocka_unit_test(test_what_could_mislead_a_reader_is_quoted),
		cmocka_unit_test(test_values_of_secrets_are_masked),
		cmocka_unit_test(test_what_is_no_variable_is_told_all_the_same),
		cmocka_unit_test(test_a_flood_of_variables_is_cut_and_that_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
