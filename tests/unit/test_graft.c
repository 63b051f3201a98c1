/* SPDX-License-Identifier: MIT */
#include "sync/graft.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/tree_fixture.h"

static struct graft find(struct store *store, const git_oid *tree, const char *path)
{
	struct error err;
	struct graft graft;
	if (!graft_find(store, tree, path, &graft, &err)) {
		fail_msg("%s", err.text);
	}
	return graft;
}

static git_oid set(
	struct store *store, const git_oid *tree, const char *path, const struct graft *graft)
{
	struct error err;
	git_oid out;
	if (!graft_set(store, tree, path, graft, &out, &err)) {
		fail_msg("%s", err.text);
	}
	return out;
}

static void test_files_links_and_folders_are_found(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1", "d/e/f*=2", "d/l@=a");
	assert_int_equal(find(store, &tree, "a").mode, ENTRY_FILE);
	assert_int_equal(find(store, &tree, "d/e/f").mode, ENTRY_EXECUTABLE);
	assert_int_equal(find(store, &tree, "d/l").mode, ENTRY_LINK);
	assert_int_equal(find(store, &tree, "d/e").mode, TREE_VIEW_FOLDER);
	struct graft all = find(store, &tree, "");
	assert_true(tree_equal(&all.id, &tree));
}

static void test_what_is_not_there_is_said_with_its_path(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1", "d/e=2");
	static const char *const missing[] = {"b", "a/b", "d/x", "d/e/x", "..", "d/\n"};
	for (size_t i = 0; i < ARRAY_LENGTH(missing); i++) {
		struct error err = {0};
		struct graft graft;
		assert_false(graft_find(store, &tree, missing[i], &graft, &err));
		assert_int_equal(err.code, ERROR_NOT_FOUND);
		assert_null(strchr(err.text, '\n'));
	}
	struct error err;
	struct graft graft;
	assert_false(graft_find(store, &tree, "d/x", &graft, &err));
	assert_string_equal(err.text, "there is no d/x");
}

static void expect_set(struct store *store, const git_oid *tree, const char *path,
	const struct graft *graft, const char *expected)
{
	git_oid out = set(store, tree, path, graft);
	char *text = tree_text(store, &out);
	assert_string_equal(text, expected);
	free(text);
}

static void test_one_place_is_replaced_and_the_rest_stays(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1", "d/e=2", "d/f=3", "z=4");
	git_oid other = TREE(store, "a=new", "n/x=5", "n/y=6");
	struct graft file = find(store, &other, "a");
	struct graft folder = find(store, &other, "n");
	expect_set(store, &tree, "a", &file, "a=new\nd/e=2\nd/f=3\nz=4\n");
	expect_set(store, &tree, "d/e", &file, "a=1\nd/e=new\nd/f=3\nz=4\n");
	expect_set(store, &tree, "d", &folder, "a=1\nd/x=5\nd/y=6\nz=4\n");
	expect_set(store, &tree, "d", &file, "a=1\nd=new\nz=4\n");
}

static void test_folders_on_the_way_are_made(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1");
	struct graft file = find(store, &tree, "a");
	expect_set(store, &tree, "n/o/p", &file, "a=1\nn/o/p=1\n");
	expect_set(store, &store_empty_tree, "n/o", &file, "n/o=1\n");
}

static void test_a_file_in_the_way_gives_way(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1", "b=2");
	struct graft file = find(store, &tree, "b");
	expect_set(store, &tree, "a/x", &file, "a/x=2\nb=2\n");
}

static void test_a_path_that_no_snapshot_holds_is_refused(void **state)
{
	static const char *const unsafe[] = {"", "..", "a/../b", "/a", ".git/config", "a//b", "a/"};
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1");
	struct graft file = find(store, &tree, "a");
	for (size_t i = 0; i < ARRAY_LENGTH(unsafe); i++) {
		struct error err = {0};
		git_oid out;
		assert_false(graft_set(store, &tree, unsafe[i], &file, &out, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
	}
}

static void test_what_is_missing_comes_and_the_rest_stays(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct error err;
	git_oid out;
	git_oid from = TREE(store, "a=1", "d/e=2", "d/f/g=3", "k/x=4", "l=5", "z*=6");
	git_oid into = TREE(store, "a=mine", "d/h=new", "k=file", "l/y=folder");
	assert_true(graft_missing(store, &from, &into, &out, &err));
	char *text = tree_text(store, &out);
	assert_string_equal(text, "a=mine\nd/e=2\nd/f/g=3\nd/h=new\nk=file\nl/y=folder\nz*=6\n");
	free(text);
	assert_true(graft_missing(store, &from, &from, &out, &err));
	assert_true(tree_equal(&out, &from));
	assert_true(graft_missing(store, &from, &store_empty_tree, &out, &err));
	assert_true(tree_equal(&out, &from));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_files_links_and_folders_are_found),
		CASE(test_what_is_not_there_is_said_with_its_path),
		CASE(test_one_place_is_replaced_and_the_rest_stays),
		CASE(test_what_is_missing_comes_and_the_rest_stays),
		CASE(test_folders_on_the_way_are_made),
		CASE(test_a_file_in_the_way_gives_way),
		CASE(test_a_path_that_no_snapshot_holds_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
