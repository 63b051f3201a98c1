/* SPDX-License-Identifier: MIT */
#include "sync/held.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/tree_fixture.h"

enum { LINES_MAX = 8 };

/* `held` is a tree of what each path is made; its paths are held, with nothing as their base. */
static const struct graft_case {
	const char *what;
	const char *tree[LINES_MAX], *held[LINES_MAX];
	const char *with, *without;
} cases[] = {
	{"nothing is held", {"a=1", "d/b=2"}, {NULL}, "a=1\nd/b=2\n", "a=1\nd/b=2\n"},
	{"into nothing", {NULL}, {"d/e/a=1"}, "d/e/a=1\n", ""},
	{"a file", {"a=1", "b=1"}, {"a=2"}, "a=2\nb=1\n", "b=1\n"},
	{"the last of its folders", {"a=1", "d/e/b=1"}, {"d/e/b=2"}, "a=1\nd/e/b=2\n", "a=1\n"},
	{"several of a folder", {"d/b=1", "d/f/x=1", "e=1"}, {"d/a=2", "d/c*=2", "d/f/y@=2"},
		"d/a=2\nd/b=1\nd/c*=2\nd/f/x=1\nd/f/y@=2\ne=1\n", "d/b=1\nd/f/x=1\ne=1\n"},
	{"names that others begin with", {"a.b=1", "a/x=1", "ab/y=1"},
		{"a/z=2", "a-b/x=2", "ab/y=2"}, "a/x=1\na/z=2\na-b/x=2\na.b=1\nab/y=2\n",
		"a/x=1\na.b=1\n"},
	{"a file in the way of a folder", {"d=1"}, {"d/a=2"}, "d/a=2\n", ""},
	{"a folder in the way of a file", {"d/a=1"}, {"d=2"}, "d=2\n", ""},
};

static void hold(struct list *held, const struct leaf *leaf)
{
	struct held_change *one = mem_alloc_zero(sizeof(*one));
	one->path = mem_strdup(leaf->path);
	one->runtime = leaf->entry;
	list_append(held, &one->link);
}

static void check(struct store *store, const struct graft_case *one, const struct list *held,
	enum held_version version, const char *wanted)
{
	struct error err;
	git_oid tree = tree_make(store, one->tree);
	if (!held_graft(store, held, version, &tree, &tree, &err)) {
		fail_msg("%s: %s", one->what, err.text);
	}
	char *text = tree_text(store, &tree);
	if (strcmp(text, wanted) != 0) {
		fail_msg("%s:\n%s", one->what, text);
	}
	free(text);
}

static void test_what_is_held_is_put_into_a_tree_and_taken_out_of_it(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct leaf leaves[LINES_MAX];
		struct list held;
		git_oid tree = tree_make(store, cases[i].held);
		size_t count = tree_leaves(store, &tree, leaves, LINES_MAX);
		list_init(&held);
		while (count > 0) {
			hold(&held, &leaves[--count]); // in whatever order
		}
		check(store, &cases[i], &held, HELD_RUNTIME, cases[i].with);
		check(store, &cases[i], &held, HELD_BASE, cases[i].without);
		held_finish(&held);
	}
}

static const struct clash_case {
	const char *lines[2];
	const char *wanted; // NULL: it fails
} clash_cases[] = {
	{{NULL, "d/a=2"}, "d/a=2\nd/x=1\nd.b=3\n"},
	{{"d=2", "d/a=2"}, NULL},
};

/*
 * Paths that would become a folder, and paths that would become both: nothing is dropped silently.
 */
static void test_a_file_and_a_folder_of_one_name_do_not_go_together(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(clash_cases); i++) {
		const struct clash_case *one = &clash_cases[i];
		struct leaf leaf = {.path = "d"};
		struct list held;
		struct error err;
		git_oid tree;
		list_init(&held);
		if (one->lines[0]) {
			tree = TREE(store, one->lines[0]);
			assert_int_equal(tree_leaves(store, &tree, &leaf, 1), 1);
		}
		hold(&held, &leaf);
		tree = TREE(store, "d.b=3");
		assert_int_equal(tree_leaves(store, &tree, &leaf, 1), 1);
		hold(&held, &leaf);
		tree = TREE(store, one->lines[1]);
		assert_int_equal(tree_leaves(store, &tree, &leaf, 1), 1);
		hold(&held, &leaf);
		tree = TREE(store, "d/x=1");
		assert_int_equal(held_graft(store, &held, HELD_RUNTIME, &tree, &tree, &err),
			one->wanted != NULL);
		if (one->wanted) {
			char *text = tree_text(store, &tree);
			assert_string_equal(text, one->wanted);
			free(text);
		}
		held_finish(&held);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_is_held_is_put_into_a_tree_and_taken_out_of_it, place_setup,
			place_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_and_a_folder_of_one_name_do_not_go_together, place_setup,
			place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
