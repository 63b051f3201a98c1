/* SPDX-License-Identifier: MIT */
#include "sync/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/tree_fixture.h"

enum { LINES_MAX = 8, TEXT_MAX = 4096 };

struct merge_case {
	const char *what;
	const char *base[LINES_MAX], *local[LINES_MAX], *runtime[LINES_MAX];
	const char *merged;
	const char *conflicts; // lines "PATH" + the sides that have something: B, L, R
};

static const struct merge_case cases[] = {
	{"nothing changed", {"a=1"}, {"a=1"}, {"a=1"}, "a=1\n", ""},
	{"nothing is there", {NULL}, {NULL}, {NULL}, "", ""},
	{"local changed", {"a=1"}, {"a=2"}, {"a=1"}, "a=2\n", ""},
	{"the runtime changed", {"a=1"}, {"a=1"}, {"a=2"}, "a=2\n", ""},
	{"both changed to the same", {"a=1"}, {"a=2"}, {"a=2"}, "a=2\n", ""},
	{"both changed", {"a=1"}, {"a=2"}, {"a=3"}, "a=2\n", "a BLR\n"},
	{"both added", {NULL}, {"a=2"}, {"a=3"}, "a=2\n", "a LR\n"},
	{"both added the same", {NULL}, {"d/a=2"}, {"d/a=2"}, "d/a=2\n", ""},
	{"local deleted", {"a=1", "b=1"}, {"b=1"}, {"a=1", "b=1"}, "b=1\n", ""},
	{"the runtime deleted", {"a=1", "b=1"}, {"a=1", "b=1"}, {"b=1"}, "b=1\n", ""},
	{"both deleted", {"d/a=1", "b=1"}, {"b=1"}, {"b=1"}, "b=1\n", ""},
	{"all deleted", {"d/a=1"}, {NULL}, {"d/a=1"}, "", ""},
	{"deleted and changed", {"a=1"}, {NULL}, {"a=2"}, "", "a BR\n"},
	{"changed and deleted", {"a=1"}, {"a=2"}, {NULL}, "a=2\n", "a BL\n"},
	{"each added one", {NULL}, {"d/a=1"}, {"d/b=2"}, "d/a=1\nd/b=2\n", ""},
	{"deep folders", {"d/e/f/a=1", "d/x=1"}, {"d/e/f/a=2", "d/x=1"}, {"d/e/f/a=1", "d/x=2"},
		"d/e/f/a=2\nd/x=2\n", ""},
	{"modes and contents apart", {"a=1"}, {"a*=1"}, {"a=2"}, "a*=2\n", ""},
	{"contents and modes apart", {"a*=1"}, {"a*=2"}, {"a=1"}, "a=2\n", ""},
	{"both changed the mode", {"a=1"}, {"a*=1"}, {"a*=1"}, "a*=1\n", ""},
	{"both added with other modes", {NULL}, {"a*=1"}, {"a=1"}, "a*=1\n", ""},
	{"a link to elsewhere", {"l@=x"}, {"l@=x"}, {"l@=y"}, "l@=y\n", ""},
	{"two links", {"l@=x"}, {"l@=y"}, {"l@=z"}, "l@=y\n", "l BLR\n"},
	{"a file that became a link", {"a=1"}, {"a=1"}, {"a@=1"}, "a@=1\n", ""},
	{"a link against a change", {"a=1"}, {"a=2"}, {"a@=1"}, "a=2\n", "a BLR\n"},
	{"a file that became a folder", {"a=1"}, {"a=1"}, {"a/x=1"}, "a/x=1\n", ""},
	{"a folder that became a file", {"a/x=1"}, {"a/x=1"}, {"a=1"}, "a=1\n", ""},
	{"a local folder for a file", {"a=1"}, {"a/x=1"}, {"a=1"}, "a/x=1\n", ""},
	{"a folder against a changed file", {"a=1"}, {"a=2"}, {"a/x=1", "a/y/z=2"}, "a=2\n",
		"a BL\na/x R\na/y/z R\n"},
	{"a changed file against a folder", {"a=1"}, {"a/x=1"}, {"a=2"}, "a/x=1\n", "a BR\n"},
	{"a file against a changed folder", {"a/x=1", "a/y=1"}, {"a/x=2", "a/y=1"}, {"a=3"},
		"a/x=2\n", "a R\na/x BL\n"},
	{"a changed folder against a file", {"a/x=1", "a/y=1"}, {"a=3"}, {"a/x=2", "a/y=1"},
		"a=3\n", "a/x BR\n"},
	{"a new file and a new folder", {NULL}, {"a=1"}, {"a/b/c=1", "a/d=2"}, "a=1\n",
		"a/b/c R\na/d R\n"},
	{"a new folder and a new file", {NULL}, {"a/b/c=1"}, {"a=1"}, "a/b/c=1\n", "a R\n"},
	{"a link in the way of a folder", {NULL}, {"a@=/tmp"}, {"a/b=1"}, "a@=/tmp\n", "a/b R\n"},
	{"another case of a name", {"Read=1"}, {"Read=1"}, {"read=1"}, "read=1\n", ""},
	{"another case on both sides", {"Read=1"}, {"READ=1"}, {"read=1"}, "READ=1\nread=1\n", ""},
	{"a file before its folder's name", {"a=1", "a.b=1"}, {"a=1", "a.b=2"}, {"a/c=1", "a.b=1"},
		"a/c=1\na.b=2\n", ""},
	{"a big file", {"b#=1"}, {"b#=1"}, {"b#=2"}, "b#=\n", ""},
	{"two big files", {"b#=1"}, {"b#=2"}, {"b#=3"}, "b#=\n", "b BLR\n"},
	{"a big file that may be run", {"b#=1"}, {"b!=1"}, {"b#=4"}, "b!=\n", ""},
	{"a file that grew big", {"b=1"}, {"b=1"}, {"b#=2"}, "b#=\n", ""},
	{"a file that grew big and one that changed", {"b=1"}, {"b=3"}, {"b#=2"}, "b=3\n",
		"b BLR\n"},
	{"texts merge", {"a=1\n2\n3\n4\n5\n"}, {"a=one\n2\n3\n4\n5\n"}, {"a=1\n2\n3\n4\nfive\n"},
		"a=one\n2\n3\n4\nfive\n\n", ""},
	{"texts and modes merge", {"a=1\n2\n3\n4\n5\n"}, {"a=one\n2\n3\n4\n5\n"},
		{"a*=1\n2\n3\n4\nfive\n"}, "a*=one\n2\n3\n4\nfive\n\n", ""},
	{"the same lines changed", {"a=1\n2\n3\n"}, {"a=one\n2\n3\n"}, {"a=eins\n2\n3\n"},
		"a=one\n2\n3\n\n", "a BLR\n"},
};

/*
 * A delivery was cut off: `base` is what both sides had before, `delivered` is what it was to
 * bring.
 */
static const struct cut_case {
	const char *what;
	const char *base[LINES_MAX], *delivered[LINES_MAX], *local[LINES_MAX], *runtime[LINES_MAX];
	const char *merged;
	const char *conflicts;
} cut_cases[] = {
	{"edited again", {"a=1"}, {"a=2"}, {"a=3"}, {"a=2"}, "a=3\n", ""},
	{"edited again, nothing had arrived", {"a=1"}, {"a=2"}, {"a=3"}, {"a=1"}, "a=3\n", ""},
	{"taken back", {"a=1"}, {"a=2"}, {"a=1"}, {"a=2"}, "a=1\n", ""},
	{"deleted after it had arrived", {NULL}, {"d/a=2"}, {NULL}, {"d/a=2"}, "", ""},
	{"made again after its deletion", {"d/a=1"}, {NULL}, {"d/a=1"}, {NULL}, "d/a=1\n", ""},
	{"made anew after its deletion", {"a=1"}, {NULL}, {"a=3"}, {NULL}, "a=3\n", ""},
	{"one of two has arrived", {"a=1", "b=1"}, {"a=2", "b=2"}, {"a=3", "b=3"}, {"a=2", "b=1"},
		"a=3\nb=3\n", ""},
	{"the agent has edited what arrived", {"a=1"}, {"a=2"}, {"a=2"}, {"a=4"}, "a=2\n",
		"a BLR\n"},
	{"both have edited what arrived", {"a=1"}, {"a=2"}, {"a=3"}, {"a=4"}, "a=3\n", "a BLR\n"},
	{"the agent has edited another", {"a=1", "b=1"}, {"a=2", "b=1"}, {"a=3", "b=1"},
		{"a=2", "b=4"}, "a=3\nb=4\n", ""},
	{"a folder in place of a file", {"a=1"}, {"a/x=1"}, {"a/x=2"}, {"a/x=1"}, "a/x=2\n", ""},
};

static char *conflict_text(const struct merge *merge)
{
	char *text = mem_alloc_zero(TEXT_MAX);
	size_t len = 0;
	size_t count = 0;
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s %s%s%s\n", conflict->path,
			conflict->base.mode ? "B" : "", conflict->local.mode ? "L" : "",
			conflict->runtime.mode ? "R" : "");
		count++;
	}
	assert_int_equal(count, merge->conflict_count);
	return text;
}

static void assert_merge(struct store *store, const char *what, struct merge *merge,
	const char *wanted, const char *wanted_conflicts)
{
	char *merged = tree_text(store, &merge->merged);
	char *conflicts = conflict_text(merge);
	if (strcmp(merged, wanted) != 0 || strcmp(conflicts, wanted_conflicts) != 0) {
		fail_msg("%s:\n%sconflicts:\n%s", what, merged, conflicts);
	}
	free(merged);
	free(conflicts);
	merge_finish(merge);
}

static void run_case(struct store *store, const struct merge_case *one)
{
	struct error err;
	struct merge merge;
	struct merge_trees trees = {tree_make(store, one->base), tree_make(store, one->local),
		tree_make(store, one->runtime)};
	if (!merge_run(&merge, store, &trees, &err)) {
		fail_msg("%s: %s", one->what, err.text);
	}
	assert_merge(store, one->what, &merge, one->merged, one->conflicts);
}

static void test_what_a_cut_delivery_has_brought_is_no_change_of_the_runtimes(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(cut_cases); i++) {
		const struct cut_case *one = &cut_cases[i];
		struct error err;
		struct merge merge;
		git_oid delivered = tree_make(store, one->delivered);
		struct merge_options options = {.delivered = &delivered};
		struct merge_trees trees = {tree_make(store, one->base),
			tree_make(store, one->local), tree_make(store, one->runtime)};
		if (!merge_run_as(&merge, store, &trees, &options, &err)) {
			fail_msg("%s: %s", one->what, err.text);
		}
		assert_merge(store, one->what, &merge, one->merged, one->conflicts);
	}
}

static void test_every_pair_of_changes_merges_as_designed(void **state)
{
	struct place *place = *state;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		run_case(&place->store, &cases[i]);
	}
}

static void assert_counts(
	const struct merge_counts *counts, size_t added, size_t changed, size_t deleted)
{
	assert_int_equal(counts->added, added);
	assert_int_equal(counts->changed, changed);
	assert_int_equal(counts->deleted, deleted);
}

static void test_both_sides_are_told_what_changes_for_them(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct error err;
	struct merge merge;
	struct merge_trees trees = {
		TREE(store, "a=1", "b=1", "c=1", "d/e=1", "t=1\n2\n3\n4\n"),
		TREE(store, "a=2", "b=1", "d/e=1", "new=1", "t=one\n2\n3\n4\n"),
		TREE(store, "a=1", "c=1", "t=1\n2\n3\nfour\n", "x/y=1", "x/z=1"),
	};
	assert_true(merge_run(&merge, store, &trees, &err));
	assert_counts(&merge.to_local, 2, 1, 2);
	assert_counts(&merge.to_runtime, 1, 2, 1);
	assert_int_equal(merge.text_merges, 1);
	merge_finish(&merge);
}

static void test_a_side_that_has_the_result_is_not_written_anew(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct error err;
	struct merge merge;
	struct merge_trees trees = {TREE(store, "d/a=1", "e/b=1"), TREE(store, "d/a=1", "e/b=1"),
		TREE(store, "d/a=2", "e/b=1")};
	assert_true(merge_run(&merge, store, &trees, &err));
	assert_true(tree_equal(&merge.merged, &trees.runtime));
	merge_finish(&merge);
}

/* The result of a merge becomes the base of the next one, and then nothing changes. */
static void test_the_merge_of_a_merge_is_itself(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		struct merge first;
		struct merge second;
		struct merge_trees trees = {tree_make(store, cases[i].base),
			tree_make(store, cases[i].local), tree_make(store, cases[i].runtime)};
		assert_true(merge_run(&first, store, &trees, &err));
		struct merge_trees again = {first.merged, first.merged, first.merged};
		assert_true(merge_run(&second, store, &again, &err));
		assert_true(tree_equal(&first.merged, &second.merged));
		assert_counts(&second.to_local, 0, 0, 0);
		assert_counts(&second.to_runtime, 0, 0, 0);
		assert_int_equal(second.conflict_count, 0);
		merge_finish(&first);
		merge_finish(&second);
	}
}

static void test_a_tree_that_is_not_there_is_an_error(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct error err;
	struct merge merge;
	struct merge_trees trees = {TREE(store, "a=1"), TREE(store, "a=2"), {{7}}};
	assert_false(merge_run(&merge, store, &trees, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	merge_finish(&merge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_every_pair_of_changes_merges_as_designed, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_what_a_cut_delivery_has_brought_is_no_change_of_the_runtimes,
			place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_both_sides_are_told_what_changes_for_them,
			place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(test_a_side_that_has_the_result_is_not_written_anew,
			place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_the_merge_of_a_merge_is_itself, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_tree_that_is_not_there_is_an_error, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
