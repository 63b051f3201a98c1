/* SPDX-License-Identifier: MIT */
#include "providers/daytona/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tests/support/facts.h"

/* Reads a profile with one key set; returns the error, or NULL. */
static const struct error *read_with(
	struct daytona_profile *profile, const char *key, const char *value)
{
	static struct error err;
	struct settings settings;
	settings_init(&settings);
	settings_add(&settings, key, value, "test");
	bool ok = daytona_profile_read(profile, "cloud", &settings, NULL, &err);
	settings_finish(&settings);
	return ok ? NULL : &err;
}

/* ---- version 2 ---- */

static void test_version_2_of_the_platform_is_refused_by_its_url(void **state)
{
	static const char *const refused[] = {"https://api.daytona.com", "https://api.daytona.com/",
		"https://API.daytona.com:443/sandboxes", "https://daytona.example/v2",
		"https://daytona.example/api/v2/"};
	static const char *const taken[] = {"https://app.daytona.io/api", "https://a.example/api",
		"https://api.daytona.com.example/api", "https://a.example/v20/api"};
	struct daytona_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		const struct error *err = read_with(&profile, "api-url", refused[i]);
		assert_non_null(err);
		assert_string_equal(err->reason, "DAYTONA_VERSION");
		assert_names(err->text, "api-url | version 2 | https://app.daytona.io/api");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(taken); i++) {
		assert_null(read_with(&profile, "api-url", taken[i]));
		daytona_profile_finish(&profile);
	}
}

/* ---- where the account comes from ---- */

/* A user's configuration folder with the file of Daytona's CLI in it. */
static struct {
	char folder[64], path[128], variable[128];
} world;

static int set_up(void **state)
{
	char below[96];
	snprintf(world.folder, sizeof(world.folder), "/tmp/acp-broker-profile-XXXXXX");
	assert_non_null(mkdtemp(world.folder));
	snprintf(below, sizeof(below), "%s/daytona", world.folder);
	assert_int_equal(mkdir(below, 0700), 0);
	snprintf(world.path, sizeof(world.path), "%s/config.json", below);
	snprintf(world.variable, sizeof(world.variable), "XDG_CONFIG_HOME=%s", world.folder);
	return 0;
}

static int tear_down(void **state)
{
	char below[96];
	unlink(world.path);
	snprintf(below, sizeof(below), "%s/daytona", world.folder);
	rmdir(below);
	rmdir(world.folder);
	return 0;
}

static void write_cli(const char *text)
{
	FILE *file = fopen(world.path, "w");
	assert_non_null(file);
	assert_int_equal(fputs(text, file) >= 0, 1);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(world.path, 0600), 0);
}

static const char cli_text[] =
	"{\"activeProfile\":\"2\",\"profiles\":["
	"{\"id\":\"1\",\"name\":\"first\",\"api\":{\"url\":\"https://first.example/api\","
	"\"key\":\"first-key\"}},"
	"{\"id\":\"2\",\"name\":\"work\",\"api\":{\"url\":\"https://cli.example/api/\","
	"\"key\":\"cli-key\",\"token\":null},\"activeOrganizationId\":null}]}";

enum { ENVIRONMENT_MAX = 4 };

struct case_of {
	const char *environment[ENVIRONMENT_MAX];
	const char *settings[2][2];
};

static bool read_case(
	struct daytona_profile *profile, const struct case_of *wanted, struct error *err)
{
	const char *environment[ENVIRONMENT_MAX + 2] = {world.variable};
	struct settings settings;
	for (size_t i = 0; i < ENVIRONMENT_MAX; i++) {
		environment[i + 1] = wanted->environment[i];
	}
	settings_init(&settings);
	for (size_t i = 0; i < 2 && wanted->settings[i][0]; i++) {
		settings_add(&settings, wanted->settings[i][0], wanted->settings[i][1], "test");
	}
	/* The environment belongs to this function; the profile borrows only texts from it. */
	bool ok = daytona_profile_read(profile, "cloud", &settings, environment, err);
	settings_finish(&settings);
	return ok;
}

static void test_configuration_comes_before_environment_cli_and_default(void **state)
{
	static const struct {
		struct case_of given;
		bool has_cli;
		const char *url, *url_from, *key, *key_from, *target, *target_from;
	} table[] = {
		{{{NULL}, {{NULL}}}, false, "https://app.daytona.io/api", "the default", NULL,
			"DAYTONA_API_KEY", NULL, NULL},
		{{{NULL}, {{NULL}}}, true, "https://cli.example/api/", "profile work of ",
			"cli-key", "profile work of ", NULL, NULL},
		{{{"DAYTONA_API_KEY=k", "DAYTONA_API_URL=https://env.example/api",
			  "DAYTONA_TARGET=eu"},
			 {{NULL}}},
			true, "https://env.example/api", "DAYTONA_API_URL", "k", "DAYTONA_API_KEY",
			"eu", "DAYTONA_TARGET"},
		{{{"DAYTONA_API_KEY=k", "DAYTONA_API_URL=https://env.example/api",
			  "DAYTONA_TARGET=eu"},
			 {{"api-url", "https://own.example/api"}, {"target", "us"}}},
			true, "https://own.example/api", "api-url", "k", "DAYTONA_API_KEY", "us",
			"target"},
		/* The command prints the configuration's key, so nobody looks at any other key. */
		{{{"DAYTONA_API_KEY=k"}, {{"api-key-command", "pass daytona"}}}, true,
			"https://app.daytona.io/api", "the default", NULL, "api-key-command", NULL,
			NULL},
		/* A variable that is set but empty says nothing. */
		{{{"DAYTONA_API_KEY=", "DAYTONA_API_URL=", "DAYTONA_TARGET="}, {{NULL}}}, true,
			"https://cli.example/api/", "profile work of ", "cli-key",
			"profile work of ", NULL, NULL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct daytona_profile profile;
		struct error err;
		unlink(world.path);
		if (table[i].has_cli) {
			write_cli(cli_text);
		}
		assert_true(read_case(&profile, &table[i].given, &err));
		assert_string_equal(profile.api_url, table[i].url);
		assert_names(profile.api_url_from, table[i].url_from);
		assert_names(profile.key_from, table[i].key_from);
		assert_int_equal(profile.key == NULL, table[i].key == NULL);
		assert_string_equal(
			profile.key ? profile.key : "", table[i].key ? table[i].key : "");
		assert_string_equal(profile.target ? profile.target : "",
			table[i].target ? table[i].target : "");
		assert_string_equal(profile.target_from ? profile.target_from : "",
			table[i].target_from ? table[i].target_from : "");
		daytona_profile_finish(&profile);
	}
}

/* Each service gets only its own key. */
static void test_the_clis_key_and_url_go_together(void **state)
{
	static const struct {
		struct case_of given;
		const char *url, *key;
	} table[] = {
		{{{"DAYTONA_API_KEY=k"}, {{NULL}}}, "https://app.daytona.io/api", "k"},
		{{{NULL}, {{"api-url", "https://cli.example/api"}}}, "https://cli.example/api",
			"cli-key"},
		{{{NULL}, {{"api-url", "https://own.example/api"}}}, "https://own.example/api",
			NULL},
		{{{"DAYTONA_API_URL=https://env.example"}, {{NULL}}}, "https://env.example", NULL},
		{{{NULL}, {{"api-url", "https://cli.example/api2"}}}, "https://cli.example/api2",
			NULL},
		{{{NULL}, {{"api-key-env", "NO_SUCH"}}}, "https://app.daytona.io/api", NULL},
	};
	write_cli(cli_text);
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct daytona_profile profile;
		struct error err;
		assert_true(read_case(&profile, &table[i].given, &err));
		assert_string_equal(profile.api_url, table[i].url);
		const char *key = daytona_profile_key(&profile, &err);
		assert_int_equal(key == NULL, table[i].key == NULL);
		if (key) {
			assert_string_equal(key, table[i].key);
		} else {
			assert_int_equal(err.code, ERROR_CONFIG);
			assert_names(err.text, profile.key_env);
			assert_null(strstr(err.text, "cli-key"));
		}
		daytona_profile_finish(&profile);
	}
}

static void test_a_file_of_the_cli_without_a_key_is_told(void **state)
{
	static const struct {
		const char *text, *told;
	} table[] = {
		{"{}", "no active profile"},
		{"[]", "no active profile"},
		{"{\"activeProfile\":\"1\",\"profiles\":null}", "no active profile"},
		{"{\"activeProfile\":\"9\",\"profiles\":[{\"id\":\"1\",\"name\":\"a\"}]}",
			"no active profile"},
		{"{\"activeProfile\":\"1\",\"profiles\":[7,{\"id\":\"1\",\"name\":\"a\",\"api\":"
		 "{\"url\":\"https://a.example\",\"token\":{\"accessToken\":\"secret\"}}}]}",
			"profile a | no API key | daytona login --api-key"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct daytona_profile profile;
		struct error err;
		write_cli(table[i].text);
		assert_true(read_case(&profile, &(struct case_of){{NULL}, {{NULL}}}, &err));
		assert_null(daytona_profile_key(&profile, &err));
		assert_names(err.text, table[i].told);
		assert_names(err.text, world.path);
		assert_null(strstr(err.text, "secret"));
		daytona_profile_finish(&profile);
	}
}

static void refuse_cli(const char *named)
{
	struct daytona_profile profile;
	struct error err;
	const struct case_of none = {{NULL}, {{NULL}}};
	const struct case_of with_key = {{"DAYTONA_API_KEY=k"}, {{NULL}}};
	assert_false(read_case(&profile, &none, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_names(err.text, world.path);
	assert_names(err.text, named);
	assert_true(read_case(&profile, &with_key, &err)); // nobody looks at it
	daytona_profile_finish(&profile);
}

static void test_a_file_of_the_cli_that_is_no_such_is_an_error_where_it_is_needed(void **state)
{
	char big[300 * 1024];
	write_cli("{\"activeProfile\":");
	refuse_cli(world.path);
	memset(big, ' ', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	write_cli(big);
	refuse_cli(world.path);
	write_cli(cli_text);
	assert_int_equal(chmod(world.path, 0620), 0);
	refuse_cli("nobody else | chmod");
	assert_int_equal(unlink(world.path), 0);
	assert_int_equal(mkfifo(world.path, 0600), 0);
	refuse_cli("expected a file");
}

static void test_one_key_is_said_in_one_way(void **state)
{
	struct daytona_profile profile;
	struct error err;
	const struct case_of both = {
		{NULL}, {{"api-key-command", "pass daytona"}, {"api-key-env", "OTHER"}}};
	assert_false(read_case(&profile, &both, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_names(err.text, "api-key-command | api-key-env");
}

static void test_a_wrong_url_is_told_with_where_it_is_from(void **state)
{
	struct daytona_profile profile;
	struct error err;
	const struct case_of second = {
		{"DAYTONA_API_KEY=k", "DAYTONA_API_URL=https://api.daytona.com"}, {{NULL}}};
	assert_false(read_case(&profile, &second, &err));
	assert_string_equal(err.reason, "DAYTONA_VERSION");
	assert_names(err.text, "DAYTONA_API_URL: https://api.daytona.com");
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2_of_the_platform_is_refused_by_its_url),
		WORLD_TEST(test_configuration_comes_before_environment_cli_and_default),
		WORLD_TEST(test_the_clis_key_and_url_go_together),
		WORLD_TEST(test_a_file_of_the_cli_without_a_key_is_told),
		WORLD_TEST(test_a_file_of_the_cli_that_is_no_such_is_an_error_where_it_is_needed),
		WORLD_TEST(test_one_key_is_said_in_one_way),
		WORLD_TEST(test_a_wrong_url_is_told_with_where_it_is_from),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
