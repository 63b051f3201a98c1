/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/profile_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "providers/agent_env.h"

static struct profile_key keys[KEYS_MAX];
static size_t count;
static struct error err;

static bool read_lines(const char *const *lines, const char *const *environment)
{
	struct settings settings;
	settings_init(&settings);
	for (; *lines; lines += 2) {
		settings_add(&settings, lines[0], lines[1], "test");
	}
	bool is_read = profile_keys_read(&settings, environment, keys, &count, &err);
	settings_finish(&settings);
	return is_read;
}

static bool read_line(const char *line)
{
	return read_lines((const char *const[]){"key", line, NULL}, NULL);
}

static void test_a_known_key_needs_only_its_name(void **state)
{
	assert_true(read_line("ANTHROPIC_API_KEY"));
	assert_int_equal(count, 1);
	assert_string_equal(keys[0].url, "https://api.anthropic.com");
	assert_string_equal(keys[0].host, "api.anthropic.com");
	assert_int_equal(keys[0].port, 443);
	assert_string_equal(keys[0].path, "");
	assert_string_equal(keys[0].header, "x-api-key");
	assert_string_equal(keys[0].url_name, "ANTHROPIC_BASE_URL");
	assert_true(read_line("OPENAI_API_KEY"));
	assert_string_equal(keys[0].path, "/v1");
	assert_null(keys[0].header);
	assert_true(read_line("GEMINI_API_KEY"));
	assert_string_equal(keys[0].url_name, "GOOGLE_GEMINI_BASE_URL");
}

static void test_another_key_names_its_host(void **state)
{
	assert_true(read_line("MY_API_KEY for https://Api.Example.com:8443/a/v1/"));
	assert_string_equal(keys[0].host, "api.example.com");
	assert_int_equal(keys[0].port, 8443);
	assert_string_equal(keys[0].path, "/a/v1");
	assert_string_equal(keys[0].url, "https://api.example.com:8443/a/v1");
	assert_string_equal(keys[0].url_name, "MY_BASE_URL");
	assert_null(keys[0].header);
	assert_true(read_line("X for https://localhost:443"));
	assert_string_equal(keys[0].url, "https://localhost");
	assert_string_equal(keys[0].url_name, "X_BASE_URL");
	assert_true(read_line("ANTHROPIC_API_KEY for https://gateway.example/x"));
	assert_string_equal(keys[0].header, "x-api-key");
	assert_string_equal(keys[0].path, "/x");
}

static void test_other_lines_are_refused(void **state)
{
	static const char *const lines[] = {"", "A B", "MY_KEY", "MY_KEY for", "MY_KEY for x.com",
		"MY_KEY for http://x.com", "MY_KEY for https://", "MY_KEY for https://1.2.3.4",
		"MY_KEY for https://u@x.com",
		"MY_KEY for https://x.com:", "MY_KEY for https://x.com:65536",
		"MY_KEY for https://x.com/a?b", "MY_KEY for https://x.com/a#b",
		"MY_KEY for https://x.com/../a", "MY_KEY for https://x.com/%2e",
		"1X for https://x.com", "MY_KEY for https://x.com/a b",
		"MY_KEY for https://x.com\r\nA: b"};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		if (read_line(lines[i])) {
			fail_msg("%s", lines[i]);
		}
		assert_int_equal(err.code, ERROR_CONFIG);
	}
}

static void test_what_contradicts_a_key_is_refused(void **state)
{
	static const char *const gateway[] = {"ANTHROPIC_BASE_URL=https://gateway.example", NULL};
	static const char *const same[] = {"ANTHROPIC_BASE_URL=https://api.anthropic.com/", NULL};
	static const char *const lines[] = {"key", "ANTHROPIC_API_KEY", NULL};
	static const char *const twice[] = {
		"key", "ANTHROPIC_API_KEY", "key", "ANTHROPIC_AUTH_TOKEN", NULL};
	static const char *const env[] = {
		"key", "ANTHROPIC_API_KEY", "env", "ANTHROPIC_BASE_URL=x", NULL};
	static const char *const secret[] = {
		"key", "ANTHROPIC_API_KEY", "secret-env", "ANTHROPIC_API_KEY", NULL};
	static const char *const of_agent[] = {
		"key", "ANTHROPIC_API_KEY", SETTING_AGENT_ENV, "ANTHROPIC_API_KEY=sk-real", NULL};
	static const char *const other[] = {
		"key", "ANTHROPIC_API_KEY", "env", "ANTHROPIC_API_KEY_2=x", NULL};
	assert_false(read_lines(lines, gateway));
	assert_true(read_lines(lines, same));
	assert_false(read_lines(twice, NULL));
	assert_false(read_lines(env, NULL));
	assert_false(read_lines(secret, NULL));
	assert_false(read_lines(of_agent, NULL));
	assert_true(read_lines(other, NULL));
}

static void test_there_are_so_many_at_most(void **state)
{
	static const char *const lines[] = {"key", "A_KEY for https://x.com", "key",
		"B_KEY for https://x.com", "key", "C_KEY for https://x.com", "key",
		"D_KEY for https://x.com", "key", "E_KEY for https://x.com", "key",
		"F_KEY for https://x.com", "key", "G_KEY for https://x.com", "key",
		"H_KEY for https://x.com", "key", "I_KEY for https://x.com", NULL};
	assert_true(read_lines(lines + 2, NULL));
	assert_int_equal(count, KEYS_MAX);
	assert_false(read_lines(lines, NULL));
	assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_known_key_needs_only_its_name),
		cmocka_unit_test(test_another_key_names_its_host),
		cmocka_unit_test(test_other_lines_are_refused),
		cmocka_unit_test(test_what_contradicts_a_key_is_refused),
		cmocka_unit_test(test_there_are_so_many_at_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
