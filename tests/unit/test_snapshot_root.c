/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sync/snapshot.h"
#include "tests/unit/store_fixture.h"

static void assert_refused(const char *root, const char *home)
{
	struct error err;
	if (snapshot_root_check(root, home, &err)) {
		fail_msg("%s is taken", root);
	}
	assert_int_equal(err.code, ERROR_DENIED);
}

static void test_system_directories_are_refused(void **state)
{
	static const char *const roots[] = {"/", "/etc", "/usr", "/usr/lib", "/usr/share",
		"/usr/bin", "/proc", "/proc/self", "/sys", "/dev", "/var", "/var/lib", "/tmp",
		"/home", "/bin", "/lib", "/root", "/opt", "//", "/usr/../etc", "/etc/"};
	for (size_t i = 0; i < ARRAY_LENGTH(roots); i++) {
		assert_refused(roots[i], NULL);
	}
}

static void test_home_and_what_holds_it_are_refused(void **state)
{
	struct place *place = *state;
	struct error err;
	place_run(place, "mkdir -p home/me/project; ln -s home/me link; ln -s me home/alias");
	char home[FIXTURE_PATH_MAX], alias[FIXTURE_PATH_MAX];
	snprintf(home, sizeof(home), "%.400s/home/me", place->root);
	snprintf(alias, sizeof(alias), "%.400s/home/alias", place->root);
	assert_refused(place_path(place, "home/me"), home);
	assert_refused(place_path(place, "home/me/"), home);
	assert_refused(place_path(place, "home"), home);
	assert_refused(place_path(place, "link"), home);
	assert_refused(place_path(place, "home/me"), alias);
	assert_true(snapshot_root_check(place_path(place, "home/me/project"), home, &err));
	assert_true(snapshot_root_check(place_path(place, "home/me"), NULL, &err));
}

static void test_a_root_that_is_no_directory_is_refused(void **state)
{
	struct place *place = *state;
	struct error err;
	place_write(place, "file", "x");
	assert_refused(place_path(place, "file"), NULL);
	assert_false(snapshot_root_check(place_path(place, "none"), NULL, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
}

static void test_a_snapshot_of_a_refused_root_is_refused(void **state)
{
	struct place *place = *state;
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = "/etc"};
	assert_false(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(err.code, ERROR_DENIED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_system_directories_are_refused),
		TEST(test_home_and_what_holds_it_are_refused),
		TEST(test_a_root_that_is_no_directory_is_refused),
		TEST(test_a_snapshot_of_a_refused_root_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
