/* SPDX-License-Identifier: MIT */
#include "sync/renames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sync/settled.h"
#include "sync/tree_view.h"
#include "tests/unit/tree_fixture.h"

enum { LINES_MAX = 10, TEXT_MAX = 4096 };

/* The part of a moved file that stays the same, so that the file is found again. */
#define REST "\n2\n3\n4\n5\n6\n7\n8\n"

struct rename_case {
	const char *what;
	const char *base[LINES_MAX], *local[LINES_MAX], *runtime[LINES_MAX];
	const char *merged;
	const char *conflicts; // lines "PATH" + the sides that have something: B, L, R
};

static const struct rename_case cases[] = {
	{"the user renames, the agent edits", {"d/a=1" REST}, {"e/a=1" REST}, {"d/a=A" REST},
		"e/a=A" REST "\n", ""},
	{"the agent renames, the user edits", {"d/a=1" REST}, {"d/a=U" REST}, {"e/a=1" REST},
		"e/a=U" REST "\n", ""},
	{"the user renames and edits", {"d/a=1" REST}, {"e/a=1" REST "9\n"}, {"d/a=A" REST},
		"e/a=A" REST "9\n\n", ""},
	{"the agent renames and edits", {"d/a=1" REST}, {"d/a=U" REST}, {"e/a=1" REST "9\n"},
		"e/a=U" REST "9\n\n", ""},
	{"both edit the same line", {"d/a=1" REST}, {"e/a=U" REST}, {"d/a=A" REST},
		"e/a=U" REST "\n", "e/a BLR\n"},
	{"the same, the agent renames", {"d/a=1" REST}, {"d/a=U" REST}, {"e/a=A" REST},
		"e/a=U" REST "\n", "e/a BLR\n"},
	{"modes follow", {"d/a=1" REST}, {"e/a=1" REST}, {"d/a*=1" REST}, "e/a*=1" REST "\n", ""},
	{"both rename alike and edit", {"d/a=1" REST}, {"e/a=U" REST}, {"e/a=1" REST "9\n"},
		"e/a=U" REST "9\n\n", ""},
	{"both rename differently", {"d/a=1" REST}, {"e/a=1" REST}, {"f/a=A" REST},
		"e/a=1" REST "\nf/a=A" REST "\n", ""},
	{"renamed and deleted", {"d/a=1" REST, "z=1"}, {"e/a=1" REST, "z=1"}, {"z=1"},
		"e/a=1" REST "\nz=1\n", ""},
	{"renamed, and nothing done to it", {"d/a=1" REST}, {"e/a=1" REST}, {"d/a=1" REST, "z=1"},
		"e/a=1" REST "\nz=1\n", ""},
	{"onto what was there before", {"a=1" REST, "b=0"}, {"b=1" REST}, {"a=A" REST, "b=0"},
		"b=1" REST "\n", "a BR\n"},
	{"onto what the other side has made", {"a=1" REST}, {"b=1" REST}, {"a=A" REST, "b=0"},
		"b=1" REST "\n", "a BR\nb LR\n"},
	{"below what the other side has made", {"a=1" REST}, {"b/c=1" REST}, {"a=A" REST, "b=0"},
		"b/c=1" REST "\n", "a BR\nb R\n"},
	{"below itself", {"a=1" REST}, {"a/b=1" REST}, {"a=A" REST}, "a/b=1" REST "\n", "a BR\n"},
	{"the folder became a file", {"a/b=1" REST}, {"a=1" REST}, {"a/b=A" REST}, "a=1" REST "\n",
		"a/b BR\n"},
	{"in its other case", {"Read=1" REST}, {"read=1" REST}, {"Read=A" REST}, "read=A" REST "\n",
		""},
	{"half of it is another", {"a=1\n2\n3\n4\n"}, {"b=1\n2\n3\n4\n5\n6\n"}, {"a=1\nA\n3\n4\n"},
		"b=1\nA\n3\n4\n5\n6\n\n", ""},
	{"more than half of it is another", {"a=1\n2\n3\n4\n"}, {"b=1\n2\n7\n8\n9\n"},
		{"a=1\nA\n3\n4\n"}, "b=1\n2\n7\n8\n9\n\n", "a BR\n"},
	{"empty files are all alike", {"a="}, {"b="}, {"a=1"}, "b=\n", "a BR\n"},
	{"a link", {"a@=x"}, {"b@=x"}, {"a@=y"}, "b@=x\n", "a BR\n"},
	{"a big file", {"a#=1"}, {"b#=1"}, {"a#=2"}, "b#=\n", ""},
	{"the one of two with the same name", {"d/a=1" REST, "d/b=1" REST},
		{"e/a=1" REST, "e/b=1" REST}, {"d/a=1" REST, "d/b=A" REST},
		"e/a=1" REST "\ne/b=A" REST "\n", ""},
	{"the one that is more alike", {"a=1" REST "9\n"}, {"b=1" REST "9\n", "c=1" REST},
		{"a=A" REST "9\n"}, "b=A" REST "9\n\nc=1" REST "\n", ""},
	{"new in a folder that the user renamed", {"d/a=1" REST, "d/s/b=2"},
		{"e/a=1" REST, "e/s/b=2"}, {"d/a=1" REST, "d/new=3", "d/s/b=2", "d/s/new=4"},
		"e/a=1" REST "\ne/new=3\ne/s/b=2\ne/s/new=4\n", ""},
	{"new in a folder that the agent renamed", {"d/a=1" REST}, {"d/a=1" REST, "d/new=3"},
		{"x/e/a=1" REST}, "x/e/a=1" REST "\nx/e/new=3\n", ""},
	{"the folder went to the root", {"d/a=1" REST}, {"a=1" REST}, {"d/a=1" REST, "d/new=3"},
		"a=1" REST "\nnew=3\n", ""},
	{"the folder is there still", {"d/a=1" REST, "d/b=2"}, {"d/b=2", "e/a=1" REST},
		{"d/a=1" REST, "d/b=2", "d/new=3"}, "d/b=2\nd/new=3\ne/a=1" REST "\n", ""},
	{"the folder went to two", {"d/a=1" REST, "d/b=2"}, {"e/a=1" REST, "f/b=2"},
		{"d/a=1" REST, "d/b=2", "d/new=3"}, "d/new=3\ne/a=1" REST "\nf/b=2\n", ""},
	{"most of the folder went to one", {"d/a=1" REST, "d/b=2", "d/c=3"},
		{"e/a=1" REST, "f/b=2", "f/c=3"}, {"d/a=1" REST, "d/b=2", "d/c=3", "d/new=4"},
		"e/a=1" REST "\nf/b=2\nf/c=3\nf/new=4\n", ""},
	{"both have something new there", {"d/a=1" REST}, {"e/a=1" REST, "e/new=3"},
		{"d/a=1" REST, "d/new=4"}, "d/new=4\ne/a=1" REST "\ne/new=3\n", ""},
	{"two of one name would meet", {"d/a=1" REST, "e/b=2" REST}, {"f/a=1" REST, "f/b=2" REST},
		{"d/a=1" REST, "d/new=3", "e/b=2" REST, "e/new=4"},
		"d/new=3\ne/new=4\nf/a=1" REST "\nf/b=2" REST "\n", ""},
	{"the one would be a folder of the other", {"d/a=1" REST, "e/b=2" REST},
		{"f/a=1" REST, "f/b=2" REST},
		{"d/a=1" REST, "d/p=3", "d/p-x=5", "e/b=2" REST, "e/p/q=4"},
		"d/p=3\ne/p/q=4\nf/a=1" REST "\nf/b=2" REST "\nf/p-x=5\n", ""},
	{"what would complete a repository of git's", {"d/a=1" REST}, {"e/a=1" REST},
		{"d/HEAD=3", "d/a=1" REST}, "d/HEAD=3\ne/a=1" REST "\n", ""},
	{"each renames what the other edits", {"a=1" REST, "b=x" REST}, {"b=U" REST, "c=1" REST},
		{"a=A" REST, "d=x" REST}, "c=A" REST "\nd=U" REST "\n", ""},
};

static struct merge_trees make_trees(struct store *store, const struct rename_case *one)
{
	return (struct merge_trees){.base = tree_make(store, one->base),
		.local = tree_make(store, one->local),
		.runtime = tree_make(store, one->runtime)};
}

static void find(
	struct renames *renames, struct store *store, const struct renames_request *request)
{
	struct error err;
	if (!renames_find(renames, store, request, &err)) {
		fail_msg("%s", err.text);
	}
}

static struct merge_trees align(
	const struct renames *renames, struct store *store, const struct merge_trees *trees)
{
	struct error err;
	struct merge_trees aligned;
	assert_true(renames_align(renames, store, RENAME_BASE, &trees->base, &aligned.base, &err));
	assert_true(
		renames_align(renames, store, RENAME_LOCAL, &trees->local, &aligned.local, &err));
	assert_true(renames_align(
		renames, store, RENAME_RUNTIME, &trees->runtime, &aligned.runtime, &err));
	return aligned;
}

static void assert_merge(struct store *store, const char *what, const struct merge *merge,
	const char *wanted, const char *wanted_conflicts)
{
	char conflicts[TEXT_MAX] = "";
	char *merged = tree_text(store, &merge->merged);
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		text_append(conflicts, sizeof(conflicts), "%s %s%s%s\n", conflict->path,
			conflict->base.mode ? "B" : "", conflict->local.mode ? "L" : "",
			conflict->runtime.mode ? "R" : "");
	}
	if (strcmp(merged, wanted) != 0 || strcmp(conflicts, wanted_conflicts) != 0) {
		fail_msg("%s:\n%sconflicts:\n%s", what, merged, conflicts);
	}
	free(merged);
}

static void test_edits_follow_what_was_renamed(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		struct merge merge;
		struct renames renames;
		struct merge_trees trees = make_trees(store, &cases[i]);
		find(&renames, store, &(struct renames_request){.trees = trees});
		struct merge_trees aligned = align(&renames, store, &trees);
		assert_true(merge_run(&merge, store, &aligned, &err));
		assert_merge(store, cases[i].what, &merge, cases[i].merged, cases[i].conflicts);
		merge_finish(&merge);
		renames_finish(&renames);
	}
}

/* The base after the merge was applied. `left` NULL: judged by what the local directory is now. */
static git_oid settle(struct store *store, const struct renames *renames,
	const struct merge_trees *trees, const git_oid *merged, const git_oid *now,
	struct stuck *left)
{
	struct error err;
	struct merge_trees aligned = align(renames, store, trees);
	struct settled_trees real = {trees->local, *merged, trees->runtime, *now};
	struct settled_trees settled = {aligned.local, *merged, aligned.runtime, *now};
	git_oid base = aligned.base;
	assert_true(settled_base(store, &settled, left, &base, &err));
	assert_true(renames_restore(renames, store, &real, left, &base, &err));
	return base;
}

enum how_far { ALL_APPLIED, ALL_APPLIED_AND_CUT, NEW_PLACES_APPLIED_AND_CUT, HOW_FAR_COUNT };

/*
 * An apply did the whole merge, or was cut off before it removed the old places; then the sync is
 * repeated. Both sides must get what they would have got, with the same conflicts.
 */
static void merge_again(struct store *store, const struct rename_case *one, enum how_far how_far)
{
	struct error err;
	struct merge merge;
	struct merge again;
	struct renames renames;
	struct stuck left = {0};
	struct merge_trees trees = make_trees(store, one);
	find(&renames, store, &(struct renames_request){.trees = trees});
	struct merge_trees aligned = align(&renames, store, &trees);
	assert_true(merge_run(&merge, store, &aligned, &err));
	git_oid now = merge.merged;
	if (how_far == NEW_PLACES_APPLIED_AND_CUT) {
		assert_true(renames_keep_old(&renames, store, NULL, &merge.merged, &now, &err));
	}
	trees.base = settle(store, &renames, &trees, &merge.merged, &now,
		how_far == ALL_APPLIED ? &left : NULL);
	renames_finish(&renames);
	trees.local = now;
	find(&renames, store, &(struct renames_request){.trees = trees});
	aligned = align(&renames, store, &trees);
	assert_true(merge_run(&again, store, &aligned, &err));
	assert_merge(store, one->what, &again, one->merged, one->conflicts);
	merge_finish(&merge);
	merge_finish(&again);
	renames_finish(&renames);
}

static void test_a_merge_that_was_applied_is_not_made_twice(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		for (int how_far = 0; how_far < HOW_FAR_COUNT; how_far++) {
			merge_again(store, &cases[i], (enum how_far)how_far);
		}
	}
}

/* No edit follows a rename from or to a path that an apply could not change. */
static void test_what_is_stuck_stays_where_it_is(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	static const char *const paths[] = {"d/a", "e/a"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		struct renames renames;
		struct stuck stuck = {0};
		stuck_add(&stuck, paths[i], "");
		find(&renames, store,
			&(struct renames_request){
				.trees = make_trees(store, &cases[0]), .stuck = &stuck});
		assert_int_equal(renames.count, 0);
		renames_finish(&renames);
		stuck_finish(&stuck);
	}
}

static const struct guarded_case {
	const char *from, *to;
	size_t count;
} guarded_cases[] = {
	{"d/a", "e/a", 1},
	{"d/a", ".vscode/tasks.json", 0},
	{".vscode/tasks.json", "d/a", 0},
};

/* No rename leads into a guarded place, or out of one. */
static void test_nothing_follows_into_a_guarded_place_or_out_of_it(void **state)
{
	struct place *place = *state;
	struct store *store = &place->store;
	struct error err;
	struct guard_paths *guard = guard_paths_create(NULL, &err);
	for (size_t i = 0; i < ARRAY_LENGTH(guarded_cases); i++) {
		const struct guarded_case *one = &guarded_cases[i];
		char lines[3][128];
		struct renames renames;
		text_whole(lines[0], sizeof(lines[0]), "%s=1" REST, one->from);
		text_whole(lines[1], sizeof(lines[1]), "%s=1" REST, one->to);
		text_whole(lines[2], sizeof(lines[2]), "%s=A" REST, one->from);
		find(&renames, store,
			&(struct renames_request){
				.trees = {TREE(store, lines[0]), TREE(store, lines[1]),
					TREE(store, lines[2])},
				.guard = guard,
				.root = place->root});
		assert_int_equal(renames.count, one->count);
		renames_finish(&renames);
	}
	guard_paths_destroy(guard);
}

/* The user's own change had arrived there, so the agent has not changed the file. */
static void test_what_a_cut_delivery_has_brought_follows_nothing(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct renames renames;
	git_oid delivered = TREE(store, "d/a=U" REST);
	find(&renames, store,
		&(struct renames_request){
			.trees = {TREE(store, "d/a=1" REST), TREE(store, "e/a=U" REST),
				TREE(store, "d/a=U" REST)},
			.delivered = &delivered});
	assert_int_equal(renames.count, 0);
	renames_finish(&renames);
}

/* A sync that does not need this content must not fail because of it. */
static void test_a_content_that_cannot_be_read_is_like_no_other(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct renames renames;
	struct error err;
	struct tree_view_entry missing = {
		.name = SPAN_LITERAL("a"), .mode = ENTRY_FILE, .id = {{7}}};
	struct merge_trees trees = {
		.local = TREE(store, "b=1" REST), .runtime = TREE(store, "a=A" REST)};
	assert_true(tree_view_write(store, &missing, 1, &trees.base, &err));
	find(&renames, store, &(struct renames_request){.trees = trees});
	assert_int_equal(renames.count, 0);
	renames_finish(&renames);
}

/* The apply removes a user's file from its old place only if it has arrived at the new one. */
static void test_a_file_that_did_not_arrive_stays(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct renames renames;
	struct stuck left = {0};
	struct error err;
	git_oid merged = TREE(store, "e/a=U" REST, "e/b=V" REST);
	git_oid made;
	find(&renames, store,
		&(struct renames_request){.trees = {TREE(store, "d/a=1" REST, "d/b=2" REST),
						  TREE(store, "d/a=U" REST, "d/b=V" REST),
						  TREE(store, "e/a=1" REST, "e/b=2" REST)}});
	assert_true(renames_move_local(&renames));
	assert_true(renames_keep_old(&renames, store, NULL, &merged, &made, &err));
	git_oid both = TREE(store, "d/a=U" REST, "d/b=V" REST, "e/a=U" REST, "e/b=V" REST);
	assert_true(tree_equal(&made, &both));
	stuck_add(&left, "e/b", "");
	assert_true(renames_keep_old(&renames, store, &left, &merged, &made, &err));
	git_oid rest = TREE(store, "d/b=V" REST, "e/a=U" REST, "e/b=V" REST);
	assert_true(tree_equal(&made, &rest));
	stuck_finish(&left);
	renames_finish(&renames);
}

/*
 * A folder whose files the user has edited while it was renamed, and more of them than are compared
 * with all others; and some that are all alike.
 */
static void test_one_of_many_files_is_known_again(void **state)
{
	struct place *place = *state;
	struct renames renames;
	place_run(place,
		"mkdir d; for i in $(seq 510); do printf \"1\\n2\\n3\\n$i\\n\" > d/f$i; done; "
		"for i in $(seq 30); do echo same > d/g$i; done");
	struct merge_trees trees = {.base = place_take(place, NULL)};
	place_run(place, "echo agent >> d/f77; echo agent >> d/g7");
	trees.runtime = place_take(place, NULL);
	place_run(place, "mv d e; echo same > e/g7; "
			 "for i in $(seq 510); do printf \"user\\n2\\n3\\n$i\\n\" > e/f$i; done");
	trees.local = place_take(place, NULL);
	find(&renames, &place->store, &(struct renames_request){.trees = trees});
	assert_int_equal(renames.count, 2);
	assert_string_equal(renames.items[0].from, "d/f77");
	assert_string_equal(renames.items[0].to, "e/f77");
	assert_string_equal(renames.items[1].from, "d/g7");
	assert_string_equal(renames.items[1].to, "e/g7");
	renames_finish(&renames);
}

/* Comparisons that would take too much memory or time are not made, and a cancel ends them. */
static void test_a_comparison_of_many_pieces_is_none(void **state)
{
	struct place *place = *state;
	struct store *store = &place->store;
	atomic_bool is_cancelled = false;
	for (int i = 0; i < 5; i++) {
		static const struct {
			const char *files, *lines; // this many files, each of this many lines
			bool cancels;
			size_t count;
		} sizes[] = {{"2", "65000", false, 2}, {"2", "70000", false, 0},
			{"60", "30000", false, 0}, {"300", "1000", false, 0},
			{"2", "1000", true, 0}};
		struct renames renames;
		struct error err;
		char script[256];
		struct renames_request request = {.is_cancelled = &is_cancelled};
		text_whole(script, sizeof(script),
			"rm -f *; seq %s > ../lines; for i in $(seq %s); do "
			"{ echo $i; cat ../lines; } > a$i; done",
			sizes[i].lines, sizes[i].files);
		place_run(place, script);
		request.trees.base = place_take(place, NULL);
		place_run(place, "for i in *; do echo agent >> $i; done");
		request.trees.runtime = place_take(place, NULL);
		place_run(place, "for i in *; do echo user >> $i; mv $i b$i; done");
		request.trees.local = place_take(place, NULL);
		is_cancelled = sizes[i].cancels;
		assert_int_equal(renames_find(&renames, store, &request, &err), !is_cancelled);
		assert_int_equal(renames.count, sizes[i].count);
		renames_finish(&renames);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_edits_follow_what_was_renamed),
		TEST(test_a_merge_that_was_applied_is_not_made_twice),
		TEST(test_what_is_stuck_stays_where_it_is),
		TEST(test_nothing_follows_into_a_guarded_place_or_out_of_it),
		TEST(test_what_a_cut_delivery_has_brought_follows_nothing),
		TEST(test_a_content_that_cannot_be_read_is_like_no_other),
		TEST(test_a_file_that_did_not_arrive_stays),
		TEST(test_one_of_many_files_is_known_again),
		TEST(test_a_comparison_of_many_pieces_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
