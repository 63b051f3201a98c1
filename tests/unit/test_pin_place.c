/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tests/support/facts.h"

static struct pin_places places;

static void begin(const char *const *environment)
{
	const struct provider_context context = {.environment = environment};
	struct settings settings;
	settings_init(&settings);
	settings_add(&settings, "allow-write", "~/cache", "test");
	pin_places_init(&places, &context, &settings, "/no/home", "/no/state", "isolation = copy");
	settings_finish(&settings);
}

static int tear_down(void **state)
{
	pin_places_finish(&places);
	return 0;
}

/* NULL: it is accepted. */
static void assert_refused(const char *path, const char *names)
{
	struct error err;
	bool is_fine = pin_places_check(&places, path, path, &err);
	assert_int_equal(is_fine, names == NULL);
	if (names) {
		assert_int_equal(err.code, ERROR_CONFIG);
		assert_names(err.text, path);
		assert_names(err.text, names);
	}
}

static void test_folders_that_would_undo_the_confinement(void **state)
{
	begin((const char *[]){"XDG_CONFIG_HOME=/no/config", NULL});
	assert_refused("/no/work", NULL);
	assert_refused("/no/home/work", NULL);
	assert_refused("/no/home", "contains /no/home");
	assert_refused("/", "contains");
	assert_refused("/tmp", "contains /tmp");
	assert_refused("/no/state/x", "lies in /no/state");
	assert_refused("/no/config", "contains /no/config/acp-broker");
	assert_refused("/no/home/cache/x", "lies in /no/home/cache");
	assert_refused("/no/work/.git/x", "lies in");
	assert_refused("/no/work/.gitx/x", NULL);
}

static void test_the_files_of_engines_and_services(void **state)
{
	begin((const char *[]){"DOCKER_HOST=unix:///no/docker/engine.sock",
		"CONTAINER_HOST=unix:/no/podman/engine.sock", NULL});
	assert_refused("/run", "contains");
	assert_refused("/run/user/1000", "lies in | /run");
	assert_refused("/run/user/1000/work", "lies in | /run");
	assert_refused("/run/media/user/disk", NULL);
	assert_refused("/runs/work", NULL);
	assert_refused("/var/lib/docker", "contains | /var/lib/docker");
	assert_refused("/var/lib/docker/volumes/x/_data", "lies in | /var/lib/docker");
	assert_refused("/var/lib", "contains | /var/lib/docker");
	assert_refused("/var/lib/containers/storage", "lies in | /var/lib/containers");
	assert_refused("/var/lib/other", NULL);
	assert_refused("/no/home/.local/share/containers/x", "lies in | .local/share/containers");
	assert_refused("/no/home/.local", "contains | .local/share/docker");
	assert_refused("/no/docker", "contains | /no/docker/engine.sock");
	assert_refused("/no/podman", "contains | /no/podman/engine.sock");
}

static void test_a_worktrees_repository_contains_none_of_them(void **state)
{
	begin((const char *[]){NULL});
	assert_true(pin_places_take_repository(&places, "/no/home/main/.git"));
	assert_false(pin_places_take_repository(&places, "/no/home"));
	assert_false(pin_places_take_repository(&places, "/no"));
	assert_false(pin_places_take_repository(&places, "/"));
	assert_false(pin_places_take_repository(&places, "/no/home/.local/share"));
	assert_false(pin_places_take_repository(&places, "/run"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_folders_that_would_undo_the_confinement, tear_down),
		cmocka_unit_test_teardown(test_the_files_of_engines_and_services, tear_down),
		cmocka_unit_test_teardown(
			test_a_worktrees_repository_contains_none_of_them, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
