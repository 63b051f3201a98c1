/* SPDX-License-Identifier: MIT */
#include "sync/settled.h"

#include <stdlib.h>
#include <string.h>

#include "sync/plan.h"
#include "tests/unit/tree_fixture.h"

static void expect_base(struct place *place, const git_oid *base, const struct settled_trees *trees,
	struct stuck *left, const char *expected)
{
	struct error err;
	git_oid settled = *base;
	if (!settled_base(&place->store, trees, left, &settled, &err)) {
		fail_msg("%s", err.text);
	}
	char *text = tree_text(&place->store, &settled);
	assert_string_equal(text, expected);
	free(text);
}

/*
 * Paths that were merged, taken from the runtime, deleted, or put in a folder's place; and a
 * conflict.
 */
static struct settled_trees usual(struct store *store, git_oid *out_base)
{
	*out_base = TREE(store, "both=b", "conflict=b", "d/gone=b", "e/f=b", "same/x=b", "taken=b");
	return (struct settled_trees){
		.local = TREE(
			store, "both=bl", "conflict=l", "d/gone=b", "e/f=b", "same/x=l", "taken=b"),
		.merged = TREE(
			store, "both=blr", "conflict=l", "e=r", "new/y=r", "same/x=l", "taken=r"),
		.runtime = TREE(
			store, "both=br", "conflict=r", "e=r", "new/y=r", "same/x=b", "taken=r"),
	};
}

static void test_the_base_of_what_was_applied_is_the_runtimes_version(void **state)
{
	struct place *place = *state;
	struct stuck left = {0};
	git_oid base;
	struct settled_trees trees = usual(&place->store, &base);
	trees.now = trees.merged;
	static const char all[] = "both=br\nconflict=b\ne=r\nnew/y=r\nsame/x=b\ntaken=r\n";
	expect_base(place, &base, &trees, &left, all);
	expect_base(place, &base, &trees, NULL, all);
}

static void test_of_what_was_left_the_base_stays(void **state)
{
	struct place *place = *state;
	struct stuck left = {0};
	git_oid base;
	struct settled_trees trees = usual(&place->store, &base);
	stuck_add(&left, "both", "it was saved");
	stuck_add(&left, "d/gone", "it is open");
	stuck_add(&left, "e", "something is there now");
	expect_base(place, &base, &trees, &left,
		"both=b\nconflict=b\nd/gone=b\nnew/y=r\nsame/x=b\ntaken=r\n");
	stuck_finish(&left);
}

/* A killed apply reports nothing. A path that is not as merged may be as it was before. */
static void test_without_a_list_what_is_as_merged_was_applied(void **state)
{
	struct place *place = *state;
	git_oid base;
	struct settled_trees trees = usual(&place->store, &base);
	trees.now = trees.local;
	expect_base(place, &base, &trees, NULL,
		"both=b\nconflict=b\nd/gone=b\ne/f=b\nsame/x=b\ntaken=b\n");
	trees.now = TREE(&place->store, "both=blr", "conflict=l", "d/gone=mine", "new/y=mine",
		"same/x=l", "taken=b");
	expect_base(
		place, &base, &trees, NULL, "both=br\nconflict=b\nd/gone=b\nsame/x=b\ntaken=b\n");
}

static void test_more_than_can_be_listed_is_nothing_that_was_applied(void **state)
{
	struct place *place = *state;
	git_oid base;
	struct settled_trees trees = usual(&place->store, &base);
	struct stuck left = {.count = STUCK_MAX};
	expect_base(place, &base, &trees, &left,
		"both=b\nconflict=b\nd/gone=b\ne/f=b\nsame/x=b\ntaken=b\n");
}

/* ---- the plan ---- */

static void test_a_plan_is_kept_until_it_is_forgotten(void **state)
{
	struct place *place = *state;
	struct error err;
	struct plan found;
	bool is_found = true;
	assert_true(plan_read(&place->store, "box", &found, &is_found, &err));
	assert_false(is_found);
	assert_true(plan_forget(&place->store, "box", &err));
	struct plan plan = {.base = store_empty_tree};
	struct rename followed = {.from = (char *)"d/a",
		.to = (char *)"e",
		.by = RENAME_BY_RUNTIME,
		.base = {ENTRY_BIG, {{1, 2}}},
		.other = {ENTRY_EXECUTABLE, {{3}}}};
	plan.trees = usual(&place->store, &plan.delivered);
	plan.renames.items = &followed;
	for (int i = 0; i < 2; i++) {
		plan.has_delivered = i == 1;
		plan.renames.count = (size_t)i;
		assert_true(plan_keep(&place->store, "box", &plan, &err));
		assert_true(plan_read(&place->store, "box", &found, &is_found, &err));
		assert_true(is_found);
		assert_int_equal(found.has_delivered, plan.has_delivered);
		assert_true(tree_equal(&found.base, &plan.base));
		assert_true(!found.has_delivered || tree_equal(&found.delivered, &plan.delivered));
		assert_true(tree_equal(&found.trees.local, &plan.trees.local));
		assert_true(tree_equal(&found.trees.merged, &plan.trees.merged));
		assert_true(tree_equal(&found.trees.runtime, &plan.trees.runtime));
		assert_int_equal(found.renames.count, i);
		if (i == 1) {
			const struct rename *one = &found.renames.items[0];
			assert_string_equal(one->from, "d/a");
			assert_string_equal(one->to, "e");
			assert_int_equal(one->by, RENAME_BY_RUNTIME);
			assert_true(store_entry_equal(&one->base, &followed.base));
			assert_true(store_entry_equal(&one->other, &followed.other));
		}
		plan_finish(&found);
	}
	assert_true(plan_forget(&place->store, "box", &err));
	assert_true(plan_read(&place->store, "box", &found, &is_found, &err));
	assert_false(is_found);
}

#define SETTLED_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SETTLED_TEST(test_the_base_of_what_was_applied_is_the_runtimes_version),
		SETTLED_TEST(test_of_what_was_left_the_base_stays),
		SETTLED_TEST(test_without_a_list_what_is_as_merged_was_applied),
		SETTLED_TEST(test_more_than_can_be_listed_is_nothing_that_was_applied),
		SETTLED_TEST(test_a_plan_is_kept_until_it_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
