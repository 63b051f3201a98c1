/* SPDX-License-Identifier: MIT */
#include "base/real_path.h"

#include <limits.h>
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
#include "base/words.h"

enum { NAME_MAX_BYTES = 256 };

static char folder[64];

static const char *const links[][2] = {
	{"dir", "to-dir"},
	{"dir/file", "to-file"},
	{"dir/new", "to-new"},
	{"nowhere/new", "to-nowhere"},
	{"loop-2", "loop-1"},
	{"loop-1", "loop-2"},
	{"to-new", "twice"},
	{"..", "dir/up"},
	{"/", "to-root"},
};

static void in_folder(char out[NAME_MAX_BYTES], const char *name)
{
	snprintf(out, NAME_MAX_BYTES, "%s%s%s", folder, name[0] ? "/" : "", name);
}

static int set_up(void **state)
{
	char name[NAME_MAX_BYTES];
	char real[PATH_MAX];
	snprintf(folder, sizeof(folder), "/tmp/test-path-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_non_null(realpath(folder, real));
	assert_in_range(strlen(real), 1, sizeof(folder) - 1);
	memcpy(folder, real, strlen(real) + 1);
	in_folder(name, "dir");
	assert_int_equal(mkdir(name, 0700), 0);
	in_folder(name, "dir/file");
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	fclose(file);
	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		in_folder(name, links[i][1]);
		assert_int_equal(symlink(links[i][0], name), 0);
	}
	return 0;
}

static int tear_down(void **state)
{
	char name[NAME_MAX_BYTES];
	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		in_folder(name, links[i][1]);
		unlink(name);
	}
	in_folder(name, "dir/file");
	unlink(name);
	in_folder(name, "dir");
	rmdir(name);
	assert_int_equal(rmdir(folder), 0);
	return 0;
}

/* Both are below the folder; NULL: unchanged. */
static const struct {
	const char *path;
	const char *expected;
} cases[] = {
	{"", ""},
	{"dir/file", "dir/file"},
	{"dir//file", "dir/file"},
	{"dir/./file", "dir/file"},
	{"dir/../dir/file", "dir/file"},
	{"dir/", "dir"},
	{"to-dir", "dir"},
	{"to-dir/file", "dir/file"},
	{"to-dir/new", "dir/new"},
	{"to-dir/a/b/c", "dir/a/b/c"},
	{"to-file", "dir/file"},
	{"to-new", "dir/new"},
	{"twice", "dir/new"},
	{"to-nowhere", "nowhere/new"},
	{"to-nowhere/x", "nowhere/new/x"},
	{"dir/up/dir/file", "dir/file"},
	{"to-dir/../to-file", "dir/file"},
	{"none", "none"},
	{"none/", "none"},
	{"none/a", "none/a"},
	/* For the kernel this is not a path; a guard takes it as a reader of the names would. */
	{"none/../to-dir/file", "dir/file"},
	{"none/../to-dir/new", "dir/new"},
	{"none/./a", "none/a"},
	{"none/a/../../to-new", "dir/new"},
	{"dir/file/x", NULL},
	{"loop-1", NULL},
	{"loop-1/x", NULL},
};

static void test_links_and_dots_are_resolved(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char path[NAME_MAX_BYTES];
		char expected[NAME_MAX_BYTES];
		in_folder(path, cases[i].path);
		in_folder(expected, cases[i].expected ? cases[i].expected : cases[i].path);
		char *resolved = real_path(path);
		if (strcmp(resolved, expected) != 0) {
			fail_msg("%s is %s", cases[i].path, resolved);
		}
		free(resolved);
	}
}

static void test_what_is_not_absolute_stays(void **state)
{
	static const char *const paths[] = {"", "a", "./a", "..", "C:\\x"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		char *resolved = real_path(paths[i]);
		assert_string_equal(resolved, paths[i]);
		free(resolved);
	}
}

static void test_the_root_and_what_is_missing_in_it(void **state)
{
	static const char *const cases_of_root[][2] = {{"/", "/"}, {"//", "/"},
		{"/no-such-entry-here", "/no-such-entry-here"}, {"/../../", "/"},
		{"/no-such-entry-here/../..", "/"}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases_of_root); i++) {
		char *resolved = real_path(cases_of_root[i][0]);
		assert_string_equal(resolved, cases_of_root[i][1]);
		free(resolved);
	}
}

static void test_parts_of_paths(void **state)
{
	char *path = path_join("/a/b", "c");
	assert_string_equal(path, "/a/b/c");
	free(path);
	assert_string_equal(path_last_part("/a/b"), "b");
	assert_string_equal(path_last_part("b"), "b");
	assert_string_equal(path_last_part("/a/"), "/a/");
}

/* Each place is compared by its name in the folder; "" is the folder itself. */
static void assert_places(const char *name, const char *const *expected)
{
	char path[NAME_MAX_BYTES];
	char **places = NULL;
	size_t count = 0;
	in_folder(path, name);
	path_places(path, &places);
	for (; expected[count]; count++) {
		in_folder(path, expected[count]);
		assert_true(count < words_count(places));
		assert_string_equal(places[count], path);
	}
	assert_int_equal(words_count(places), count);
	words_free(places);
}

static void test_folders_overlap_if_one_contains_the_other(void **state)
{
	static const struct {
		const char *one, *other;
		bool is_overlap;
	} folders[] = {{"/a", "/a", true}, {"/a", "/a/b", true}, {"/", "/a", true},
		{"/", "/", true}, {"/a", "/ab", false}, {"/a/b", "/a/c", false}};
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		assert_int_equal(
			paths_overlap(folders[i].one, folders[i].other), folders[i].is_overlap);
		assert_int_equal(
			paths_overlap(folders[i].other, folders[i].one), folders[i].is_overlap);
	}
}

static void test_the_places_of_a_path_are_its_links_and_the_file(void **state)
{
	assert_places("dir/file", (const char *const[]){"dir/file", NULL});
	assert_places("dir/./../dir//none/x", (const char *const[]){"dir/none/x", NULL});
	assert_places("to-dir/file", (const char *const[]){"to-dir", "dir/file", NULL});
	assert_places("twice", (const char *const[]){"twice", "to-new", "dir/new", NULL});
	assert_places(
		"dir/up/to-file", (const char *const[]){"dir/up", "to-file", "dir/file", NULL});
	assert_places("to-nowhere", (const char *const[]){"to-nowhere", "nowhere/new", NULL});
}

static void test_the_places_of_a_loop_are_bounded(void **state)
{
	char path[NAME_MAX_BYTES];
	char **places = NULL;
	in_folder(path, "loop-1/x");
	path_places(path, &places);
	assert_in_range(words_count(places), 2, 64);
	words_free(places);
	places = NULL;
	path_places("loop-1", &places);
	assert_null(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_of_paths),
		cmocka_unit_test(test_links_and_dots_are_resolved),
		cmocka_unit_test(test_what_is_not_absolute_stays),
		cmocka_unit_test(test_the_root_and_what_is_missing_in_it),
		cmocka_unit_test(test_folders_overlap_if_one_contains_the_other),
		cmocka_unit_test(test_the_places_of_a_path_are_its_links_and_the_file),
		cmocka_unit_test(test_the_places_of_a_loop_are_bounded),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
