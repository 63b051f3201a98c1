/* SPDX-License-Identifier: MIT */
#include "broker/init/profile_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"

static struct settings settings;

static int set_up(void **state)
{
	settings_init(&settings);
	settings_add(&settings, "agent", "claude", "test");
	settings_add(&settings, "setup", "npm i -g @a/b", "test");
	return 0;
}

static int tear_down(void **state)
{
	settings_finish(&settings);
	return 0;
}

static void assert_added(const char *old_text, const char *expected)
{
	struct buf out;
	struct span old = old_text ? span_of(old_text) : (struct span){NULL, 0};
	buf_init(&out, 4096);
	profile_text_add(old_text ? &old : NULL, "p", &settings, &out);
	struct span end = {buf_span(&out).data + out.len - strlen(expected), strlen(expected)};
	assert_true(out.len >= strlen(expected));
	assert_memory_equal(end.data, expected, end.len);
	assert_true(!old_text || out.len == strlen(old_text) + strlen(expected));
	assert_true(!old_text || span_starts_with(buf_span(&out), old));
	buf_finish(&out);
}

#define SECTION "[profile \"p\"]\n\tagent = claude\n\tsetup = npm i -g @a/b\n"

static void test_a_section_comes_after_what_is_there(void **state)
{
	assert_added("", SECTION);
	assert_added("[broker]\n", "\n" SECTION);
	assert_added("[broker]\n\tprofile = x", "\n\n" SECTION);
	assert_added(NULL, "[broker]\n\tprofile = p  ; without --profile\n\n" SECTION);
}

static void test_values_that_git_would_read_otherwise_are_quoted(void **state)
{
	struct buf out;
	settings_finish(&settings);
	settings_init(&settings);
	settings_add(&settings, "setup", " a # b", "test");
	settings_add(&settings, "host", "x\"y\\\n[z]", "test");
	buf_init(&out, 4096);
	profile_text_write_keys(&settings, &out);
	static const char expected[] = "setup = \" a # b\"\nhost = \"x\\\"y\\\\\\n[z]\"\n";
	assert_int_equal(out.len, strlen(expected));
	assert_memory_equal(buf_span(&out).data, expected, strlen(expected));
	buf_finish(&out);
}

static void test_profiles_are_compared_without_their_order(void **state)
{
	struct settings other;
	settings_init(&other);
	settings_add(&other, "setup", "npm i -g @a/b", "test");
	assert_false(profile_text_is_same(&settings, &other));
	assert_false(profile_text_is_same(&other, &settings));
	settings_add(&other, "agent", "claude", "test");
	assert_true(profile_text_is_same(&settings, &other));
	settings_add(&other, "agent", NULL, "test");
	assert_false(profile_text_is_same(&settings, &other));
	settings_finish(&other);
}

static void test_names_are_plain(void **state)
{
	assert_true(profile_text_is_name("claude-kim@dev.box_2"));
	static const char *const others[] = {"", "-a", "a b", "a\"", "a\n", "a]", "a\\"};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_false(profile_text_is_name(others[i]));
	}
	char name[102];
	memset(name, 'a', 101);
	name[101] = '\0';
	assert_false(profile_text_is_name(name));
	assert_true(profile_text_is_name(name + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_section_comes_after_what_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_values_that_git_would_read_otherwise_are_quoted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_profiles_are_compared_without_their_order, set_up, tear_down),
		cmocka_unit_test(test_names_are_plain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
