/* SPDX-License-Identifier: MIT */
#include "broker/ledger/store_place.h"

#include <fcntl.h>
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

#include "base/attr.h"
#include "base/buf.h"
#include "broker/ledger/state_folder.h"

enum { PATH_SIZE = 256 };

/* FOLDER/state, and FOLDER/a/b/c, with FOLDER/link as a link to FOLDER/a. */
struct world {
	char folder[PATH_SIZE];
	char state[PATH_SIZE];
};

static const char *path_in(const struct world *world, const char *name)
{
	static char paths[4][2 * PATH_SIZE];
	static unsigned next;
	char *path = paths[next++ % ARRAY_LENGTH(paths)];
	snprintf(path, sizeof(paths[0]), "%s/%s", world->folder, name);
	return path;
}

static void run(const char *format, const char *folder)
{
	char command[2 * PATH_SIZE];
	snprintf(command, sizeof(command), "cd '%s' && %s", folder, format);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a test's own words
}

static int setup(void **state)
{
	struct world *world = mem_alloc_zero(sizeof(*world));
	char made[] = "/tmp/acp-place-XXXXXX";
	assert_non_null(mkdtemp(made));
	char *real = realpath(made, NULL);
	snprintf(world->folder, sizeof(world->folder), "%.200s", real);
	free(real);
	snprintf(world->state, sizeof(world->state), "%.200s/state", world->folder);
	run("mkdir -p a/b/c && ln -s a link", world->folder);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	run("rm -rf a link state", world->folder);
	assert_int_equal(rmdir(world->folder), 0);
	free(world);
	return 0;
}

/* Makes a folder that store_place_find takes for a store. */
static void add_store(const struct world *world, const char *root)
{
	char *folder = state_folder_store(world->state, root);
	char command[3 * PATH_SIZE];
	snprintf(command, sizeof(command), "mkdir -p '%s' && touch '%s/HEAD'", folder, folder);
	run(command, world->folder);
	free(folder);
}

static void expect(const struct world *world, const char *directory, const char *pwd,
	const char *root, const char *below)
{
	struct store_place place;
	struct error err;
	if (!store_place_find(&place, world->state, directory, pwd, &err)) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(place.root, root);
	assert_string_equal(place.below, below);
	char *folder = state_folder_store(world->state, root);
	assert_string_equal(place.store_folder, folder);
	free(folder);
	store_place_finish(&place);
}

static void test_the_directory_itself_comes_first(void **state)
{
	struct world *world = *state;
	add_store(world, path_in(world, "a"));
	add_store(world, path_in(world, "a/b"));
	expect(world, path_in(world, "a/b"), NULL, path_in(world, "a/b"), "");
	expect(world, path_in(world, "a/b/"), NULL, path_in(world, "a/b"), "");
	expect(world, path_in(world, "a/b/../b/."), NULL, path_in(world, "a/b"), "");
	expect(world, path_in(world, "a"), NULL, path_in(world, "a"), "");
}

static void test_directories_above_come_next(void **state)
{
	struct world *world = *state;
	add_store(world, path_in(world, "a"));
	expect(world, path_in(world, "a/b/c"), NULL, path_in(world, "a"), "b/c");
}

static void test_a_workspace_goes_by_the_users_spelling_and_the_real_one(void **state)
{
	struct world *world = *state;
	add_store(world, path_in(world, "link"));
	expect(world, path_in(world, "link/b"), NULL, path_in(world, "link"), "b");
	assert_int_equal(chdir(path_in(world, "a")), 0);
	expect(world, "b", path_in(world, "link"), path_in(world, "link"), "b");
	assert_int_equal(chdir("/"), 0);
	add_store(world, path_in(world, "a/b"));
	expect(world, path_in(world, "link/b/c"), NULL, path_in(world, "a/b"), "c");
}

static void test_the_working_directory_is_the_default(void **state)
{
	struct world *world = *state;
	add_store(world, path_in(world, "a"));
	assert_int_equal(chdir(path_in(world, "a/b")), 0);
	expect(world, NULL, NULL, path_in(world, "a"), "b");
	expect(world, NULL, "/", path_in(world, "a"), "b");
	expect(world, "c", "relative", path_in(world, "a"), "b/c");
	add_store(world, path_in(world, "link"));
	expect(world, NULL, path_in(world, "link/b"), path_in(world, "link"), "b");
	assert_int_equal(chdir("/"), 0);
}

static void test_nothing_found_is_an_error_that_names_the_places(void **state)
{
	struct world *world = *state;
	struct store_place place;
	struct error err = {0};
	assert_false(store_place_find(&place, world->state, path_in(world, "a"), NULL, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_non_null(strstr(err.text, path_in(world, "a")));
	assert_non_null(strstr(err.text, path_in(world, "state/stores")));
	assert_false(store_place_find(&place, world->state, path_in(world, "x"), NULL, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_false(store_place_find(&place, NULL, NULL, NULL, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static char root[] = "/w";
static char real_root[] = "/real";

static void expect_path(const struct store_place *place, const char *word, const char *expected)
{
	struct error err;
	char *path = store_place_path(place, word, &err);
	if (!path) {
		fail_msg("%s: %s", word, err.text);
	}
	assert_string_equal(path, expected);
	free(path);
}

static void test_paths_are_seen_from_the_directory(void **state)
{
	char below[] = "s/t";
	struct store_place place = {.root = root, .real_root = real_root, .below = below};
	expect_path(&place, "f", "s/t/f");
	expect_path(&place, "./f//g/", "s/t/f/g");
	expect_path(&place, "../f", "s/f");
	expect_path(&place, "../../f", "f");
	expect_path(&place, "../..", "");
	expect_path(&place, "..f", "s/t/..f");
	expect_path(&place, "/w/x/../y", "y");
	expect_path(&place, "/w", "");
	expect_path(&place, "/real/z", "z");
	below[0] = '\0';
	expect_path(&place, "f", "f");
	expect_path(&place, ".", "");
	expect_path(&place, "a/./b/../c", "a/c");
}

static void test_paths_out_of_the_workspace_are_refused(void **state)
{
	static const char *const outside[] = {
		"../../..", "../../../w2/f", "/", "/w2/f", "/w/../f", "../../../..", "/../f"};
	char below[] = "s/t";
	struct store_place place = {.root = root, .real_root = real_root, .below = below};
	for (size_t i = 0; i < ARRAY_LENGTH(outside); i++) {
		struct error err = {0};
		assert_null(store_place_path(&place, outside[i], &err));
		assert_int_equal(err.code, ERROR_CONFIG);
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_the_directory_itself_comes_first),
		CASE(test_directories_above_come_next),
		CASE(test_a_workspace_goes_by_the_users_spelling_and_the_real_one),
		CASE(test_the_working_directory_is_the_default),
		CASE(test_nothing_found_is_an_error_that_names_the_places),
		cmocka_unit_test(test_paths_are_seen_from_the_directory),
		cmocka_unit_test(test_paths_out_of_the_workspace_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
