/* SPDX-License-Identifier: MIT */
#include "providers/daytona/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tests/support/facts.h"

/* What the profile becomes with one key set: NULL, or the error. */
static const struct error *read_with(
	struct daytona_profile *profile, const char *key, const char *value)
{
	static struct error err;
	struct settings settings;
	settings_init(&settings);
	settings_add(&settings, key, value, "test");
	bool ok = daytona_profile_read(profile, "cloud", &settings, &err);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2_of_the_platform_is_refused_by_its_url),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
