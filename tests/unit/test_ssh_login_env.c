/* SPDX-License-Identifier: MIT */
#include "providers/ssh/login_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"

static struct login_env chosen;

static int tear_down(void **state)
{
	login_env_finish(&chosen);
	return 0;
}

/* "A|B|" */
static void assert_words(char *const *words, const char *expected)
{
	char text[1024] = "";
	for (; words && *words; words++) {
		size_t len = strlen(text);
		snprintf(text + len, sizeof(text) - len, "%s|", *words);
	}
	assert_string_equal(text, expected);
}

static const char *const login[] = {"PATH=/bin", "PWD=/home/kim", "OLDPWD=/", "SHLVL=2",
	"_=/bin/cat", "ACP_BROKER_RUN=1.2", "LD_PRELOAD=./x.so", "BASH_ENV=x", "ENV=y",
	"KEY=a b\nc", "EMPTY=", "KEY=second", "NO_VALUE", "1=x", "BASH_FUNC_f%%=() { :; }", NULL};
static const char *const base[] = {"PATH=/usr/bin", NULL};

static void test_nothing_is_taken_without_the_key(void **state)
{
	static const char *const none[] = {NULL};
	login_env_choose(&chosen, login, none, base);
	assert_words(chosen.entries, "");
	login_env_choose(&chosen, login, NULL, base);
	assert_words(chosen.entries, "");
	assert_words(chosen.missing, "");
}

static void test_those_that_are_named_are_taken(void **state)
{
	static const char *const names[] = {"KEY", "EMPTY", "PATH", "OTHER", NULL};
	login_env_choose(&chosen, login, names, base);
	assert_words(chosen.entries, "KEY=a b\nc|EMPTY=|");
	assert_words(chosen.missing, "OTHER|");
	assert_words(chosen.too_big, "");
}

static void test_all_leaves_out_what_makes_programs_run_other_code(void **state)
{
	static const char *const names[] = {"all", NULL};
	login_env_choose(&chosen, login, names, base);
	assert_words(chosen.entries, "KEY=a b\nc|EMPTY=|");
	assert_words(chosen.missing, "");
}

static void test_that_is_taken_by_its_name(void **state)
{
	static const char *const names[] = {"all", "LD_PRELOAD", "ENV", NULL};
	login_env_choose(&chosen, login, names, base);
	assert_words(chosen.entries, "LD_PRELOAD=./x.so|ENV=y|KEY=a b\nc|EMPTY=|");
}

static void test_a_shells_own_and_the_brokers_are_never_taken(void **state)
{
	static const char *const names[] = {"PWD", "SHLVL", "_", "ACP_BROKER_RUN", NULL};
	login_env_choose(&chosen, login, names, base);
	assert_words(chosen.entries, "");
	assert_words(chosen.missing, "PWD|SHLVL|_|ACP_BROKER_RUN|");
}

static void test_a_login_shell_that_told_nothing(void **state)
{
	static const char *const names[] = {"all", "KEY", NULL};
	login_env_choose(&chosen, NULL, names, base);
	assert_words(chosen.entries, "");
	assert_words(chosen.missing, "KEY|");
}

static char *sized(const char *name, size_t size)
{
	char *entry = mem_alloc_zero(size + 1);
	memset(entry, 'x', size);
	memcpy(entry, name, strlen(name));
	entry[strlen(name)] = '=';
	return entry;
}

static void test_what_is_too_long_is_named_and_not_taken(void **state)
{
	static const char *const names[] = {"all", "LAST", NULL};
	const char *from[8] = {NULL};
	from[0] = sized("HUGE", LOGIN_ENV_VALUE_MAX + 1);
	for (size_t i = 1; i <= LOGIN_ENV_MAX / LOGIN_ENV_VALUE_MAX; i++) {
		const char name[] = {'A', (char)('0' + i), '\0'};
		from[i] = sized(name, LOGIN_ENV_VALUE_MAX);
	}
	from[5] = "LAST=1"; // it is named, so it comes before those
	login_env_choose(&chosen, from, names, base);
	assert_words(chosen.too_big, "HUGE|A4|");
	assert_int_equal(words_count(chosen.entries), 4);
	assert_string_equal(chosen.entries[0], "LAST=1");
	for (size_t i = 0; i < 5; i++) {
		free((char *)from[i]);
	}
}

static void test_there_are_at_most_so_many(void **state)
{
	static const char *const names[] = {"all", NULL};
	const char *from[LOGIN_ENV_COUNT_MAX + 2] = {NULL};
	static char texts[LOGIN_ENV_COUNT_MAX + 1][16];
	for (size_t i = 0; i <= LOGIN_ENV_COUNT_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "N%zu=", i);
		from[i] = texts[i];
	}
	login_env_choose(&chosen, from, names, base);
	assert_int_equal(words_count(chosen.entries), LOGIN_ENV_COUNT_MAX);
	assert_words(chosen.too_big, "N1024|");
}

#define LOGIN_TEST(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOGIN_TEST(test_nothing_is_taken_without_the_key),
		LOGIN_TEST(test_those_that_are_named_are_taken),
		LOGIN_TEST(test_all_leaves_out_what_makes_programs_run_other_code),
		LOGIN_TEST(test_that_is_taken_by_its_name),
		LOGIN_TEST(test_a_shells_own_and_the_brokers_are_never_taken),
		LOGIN_TEST(test_a_login_shell_that_told_nothing),
		LOGIN_TEST(test_what_is_too_long_is_named_and_not_taken),
		LOGIN_TEST(test_there_are_at_most_so_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
