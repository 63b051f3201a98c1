/* SPDX-License-Identifier: MIT */
#include "sync/conflicts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/tree_fixture.h"

enum { NOTES_MAX = 2048 };

static const char stamp[] = "20260131T101502";

/* Whether each version that is parked has its file. */
static void note_parked(const struct merge *merge, char *notes)
{
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		if (!conflict->runtime.mode) {
			continue;
		}
		size_t len = strlen(notes);
		bool is_there = access(conflict->file, F_OK) == 0;
		snprintf(notes + len, NOTES_MAX - len, "%s %s\n", conflict->path,
			is_there ? "there" : "not there");
	}
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Merges, and parks with the work tree as the local side has it. */
static void park(
	struct place *place, const struct merge_trees *trees, const char *when, char *notes)
{
	struct error err;
	struct merge merge;
	*notes = '\0';
	if (!merge_run(&merge, &place->store, trees, &err) ||
		!conflicts_park(&place->store, &merge, when, &err)) {
		fail_msg("%s", err.text);
	}
	note_parked(&merge, notes);
	merge_finish(&merge);
}

static struct merge_trees usual(struct place *place)
{
	tree_write(place->root, LINES("a=local", "d/x=local", "f=local"));
	return (struct merge_trees){TREE(&place->store, "a=base", "d/x=base", "gone/x=base"),
		tree_of_folder(&place->store, place->root),
		TREE(&place->store, "a*=runtime", "d/x@=runtime", "f/g/h=runtime",
			"gone/x=runtime")};
}

static struct parked *find(struct place *place, struct list *list, const char *id)
{
	struct error err;
	if (!conflicts_list(&place->store, list, &err)) {
		fail_msg("%s", err.text);
	}
	return conflicts_find(list, id);
}

static size_t count_all(struct place *place)
{
	struct list list;
	size_t count = 0;
	find(place, &list, "");
	LIST_FOR_EACH(parked, &list, struct parked, link) {
		count++;
	}
	conflicts_finish(&list);
	return count;
}

/* How many versions lie in the folder of parked files. */
static char *parked_files(struct place *place, const char *version)
{
	char script[256];
	snprintf(script, sizeof(script),
		"cd ../state/store/parked && find . -path '*/%s/*' | cut -d/ -f3- | LC_ALL=C sort",
		version);
	return place_ask(place, script);
}

static void expect_parked(struct place *place, const char *version, const char *expected)
{
	char *found = parked_files(place, version);
	assert_string_equal(found, expected);
	free(found);
}

static void test_versions_are_parked_outside_the_workspace(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	assert_string_equal(notes, "a there\nd/x there\nf/g/h there\ngone/x there\n");
	expect_parked(place, "runtime",
		"000001/runtime/a\n000002/runtime/x\n000003/runtime/h\n000004/runtime/x\n");
	char *found = place_ask(place, "find . -type f | LC_ALL=C sort; cat a d/x f");
	assert_string_equal(found, "./a\n./d/x\n./f\nlocallocallocal");
	free(found);
}

static void test_the_same_again_parks_nothing_twice(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	park(place, &trees, "20260131T101503", notes);
	assert_int_equal(count_all(place), 4);
	expect_parked(place, "runtime",
		"000001/runtime/a\n000002/runtime/x\n000003/runtime/h\n000004/runtime/x\n");
}

static void test_without_conflicts_nothing_is_kept(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = {TREE(&place->store, "a=1", "b=1"),
		TREE(&place->store, "a=2", "b=1"), TREE(&place->store, "b=2")};
	trees.local = TREE(&place->store, "a=2", "b=1");
	park(place, &trees, stamp, notes);
	assert_string_equal(notes, "");
	assert_int_equal(count_all(place), 0);
}

static void test_a_version_is_found_and_shown(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct error err;
	struct list list;
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	struct parked *parked = find(place, &list, "a");
	assert_non_null(parked);
	assert_ptr_equal(conflicts_find(&list, parked->id), parked);
	assert_null(conflicts_find(&list, "b"));
	static const char *const expected[] = {"local", "runtime"};
	for (int side = CONFLICT_LOCAL; side <= CONFLICT_RUNTIME; side++) {
		char text[16] = "";
		int fd = memfd_create("shown", MFD_CLOEXEC);
		assert_true(
			conflicts_show(&place->store, parked, (enum conflict_side)side, fd, &err));
		assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
		assert_string_equal(text, expected[side]);
		close(fd);
	}
	parked = conflicts_find(&list, "gone/x");
	assert_false(conflicts_show(&place->store, parked, CONFLICT_LOCAL, -1, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	conflicts_finish(&list);
}

static bool take(struct place *place, const char *path, enum conflict_side side, struct error *err)
{
	struct list list;
	struct parked *parked = find(place, &list, path);
	assert_non_null(parked);
	bool taken = conflicts_take(&place->store, place->root, parked, side, err);
	conflicts_finish(&list);
	return taken;
}

static void test_taking_a_side_ends_the_conflict(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct error err;
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	assert_true(take(place, "a", CONFLICT_RUNTIME, &err));
	assert_true(take(place, "d/x", CONFLICT_LOCAL, &err));
	assert_true(take(place, "gone/x", CONFLICT_RUNTIME, &err));
	assert_int_equal(count_all(place), 1);
	expect_parked(place, "runtime", "000002/runtime/x\n000003/runtime/h\n");
	expect_parked(place, "local", "000001/local/a\n");
	git_oid now = tree_of_folder(&place->store, place->root);
	git_oid expected =
		TREE(&place->store, "a*=runtime", "d/x=local", "f=local", "gone/x=runtime");
	assert_true(tree_equal(&now, &expected));
	assert_false(take(place, "f/g/h", CONFLICT_RUNTIME, &err));
	assert_true(take(place, "f/g/h", CONFLICT_LOCAL, &err));
	assert_int_equal(count_all(place), 0);
}

static void test_what_was_edited_since_is_not_replaced_or_removed(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct error err;
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	place_write(place, "a", "edited");
	assert_false(take(place, "a", CONFLICT_RUNTIME, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_int_equal(count_all(place), 4);
	place_run(place, "echo edited >$(echo ../state/store/parked/*/000001/runtime/a)");
	assert_true(take(place, "a", CONFLICT_LOCAL, &err));
	assert_int_equal(count_all(place), 3);
	char *found = place_ask(place, "cat ../state/store/parked/*/000001/runtime/a");
	assert_string_equal(found, "edited\n");
	free(found);
}

static void test_a_parked_file_that_cannot_be_written_is_in_the_store(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = {TREE(&place->store, "d/a=base"),
		TREE(&place->store, "d/a=local"), TREE(&place->store, "d/a=runtime")};
	place_write(place, "../state/store/parked", "no folder");
	park(place, &trees, stamp, notes);
	assert_string_equal(notes, "d/a not there\n");
	assert_int_equal(count_all(place), 1);
}

/* ---- one of both ---- */

static struct parked *begin_edit(
	struct place *place, struct list *list, const char *path, struct conflict_edit *edit)
{
	struct error err;
	struct parked *parked = find(place, list, path);
	assert_non_null(parked);
	if (!conflicts_edit_begin(&place->store, place->root, parked, edit, &err)) {
		fail_msg("%s", err.text);
	}
	return parked;
}

static void expect_file(const char *file, const char *expected)
{
	char text[256] = "";
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, expected);
}

static void write_file(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void test_an_edit_begins_with_all_versions(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct list list;
	struct conflict_edit edit;
	struct merge_trees trees = {TREE(&place->store, "a=1\n2\n3\n"),
		TREE(&place->store, "a=1\nmine\n3\n"), TREE(&place->store, "a=1\nits\n3\n")};
	tree_write(place->root, LINES("a=1\nmine\n3\n"));
	park(place, &trees, stamp, notes);
	begin_edit(place, &list, "a", &edit);
	expect_file(edit.files[PARKED_BASE], "1\n2\n3\n");
	expect_file(edit.files[PARKED_LOCAL], "1\nmine\n3\n");
	expect_file(edit.files[PARKED_RUNTIME], "1\nits\n3\n");
	expect_file(edit.files[PARKED_MERGED],
		"1\n<<<<<<< yours\nmine\n||||||| before\n2\n=======\nits\n>>>>>>> the agent's\n"
		"3\n");
	conflicts_edit_finish(&edit);
	conflicts_finish(&list);
}

static void test_an_edit_takes_the_files_place(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct error err;
	struct list list;
	struct conflict_edit edit;
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	struct parked *parked = begin_edit(place, &list, "a", &edit);
	assert_false(conflicts_edit_end(&place->store, place->root, parked, &edit, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	write_file(edit.files[PARKED_MERGED], "both");
	assert_true(conflicts_edit_end(&place->store, place->root, parked, &edit, &err));
	expect_file(place_path(place, "a"), "both");
	expect_file(edit.files[PARKED_LOCAL], "local");
	assert_int_equal(count_all(place), 3);
	conflicts_edit_finish(&edit);
	conflicts_finish(&list);
}

/* A save of the user's in the workspace meanwhile stays, and the next edit begins with it. */
static void test_an_edit_does_not_replace_what_changed_meanwhile(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct error err;
	struct list list;
	struct conflict_edit edit;
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	struct parked *parked = begin_edit(place, &list, "a", &edit);
	write_file(edit.files[PARKED_MERGED], "both");
	place_write(place, "a", "saved");
	assert_false(conflicts_edit_end(&place->store, place->root, parked, &edit, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	expect_file(place_path(place, "a"), "saved");
	assert_int_equal(count_all(place), 4);
	conflicts_edit_finish(&edit);
	assert_true(conflicts_edit_begin(&place->store, place->root, parked, &edit, &err));
	expect_file(edit.files[PARKED_MERGED],
		"<<<<<<< yours\nsaved\n||||||| before\nbase\n=======\nruntime\n"
		">>>>>>> the agent's\n");
	expect_file(edit.files[PARKED_LOCAL], "saved");
	char *found = place_ask(place, "cat ../state/store/parked/*/000001/merged/a.before-*");
	assert_string_equal(found, "both");
	free(found);
	conflicts_edit_finish(&edit);
	conflicts_finish(&list);
}

/*
 * Another try of the same sync finds more conflicts, and a change that the user has made meanwhile.
 */
static void test_a_conflict_that_is_found_again_is_parked_once(void **state)
{
	struct place *place = *state;
	struct list list;
	char notes[NOTES_MAX];
	tree_write(place->root, LINES("a=local", "z=z"));
	struct merge_trees trees = {TREE(&place->store, "a=base", "z=z"),
		tree_of_folder(&place->store, place->root),
		TREE(&place->store, "a=runtime", "z=z")};
	park(place, &trees, stamp, notes);
	assert_int_equal(count_all(place), 1);
	tree_write(place->root, LINES("z=mine"));
	trees.local = TREE(&place->store, "a=local", "z=mine");
	trees.runtime = TREE(&place->store, "a=runtime", "z=theirs");
	park(place, &trees, "20260131T101503", notes);
	assert_string_equal(notes, "a there\nz there\n");
	assert_int_equal(count_all(place), 2);
	assert_non_null(find(place, &list, "a"));
	conflicts_finish(&list);
	trees.local = TREE(&place->store, "a=later", "z=mine");
	park(place, &trees, stamp, notes);
	assert_int_equal(count_all(place), 2);
	struct parked *parked = find(place, &list, "a");
	git_oid later = TREE(&place->store, "a=later");
	struct leaf leaf;
	assert_int_equal(tree_leaves(&place->store, &later, &leaf, 1), 1);
	assert_true(store_entry_equal(&parked->conflict.local, &leaf.entry));
	assert_int_equal(access(parked->file, F_OK), 0);
	conflicts_finish(&list);
}

/* A batch that cannot be read does not prevent a new one. */
static void test_a_batch_that_is_damaged_keeps_nobody_from_parking(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = usual(place);
	place_run(place, "mkdir -p ../state/store/refs/acp-broker/conflicts\n"
			 "echo rubbish >../state/store/refs/acp-broker/conflicts/x-1");
	park(place, &trees, stamp, notes);
	assert_string_equal(notes, "a there\nd/x there\nf/g/h there\ngone/x there\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_versions_are_parked_outside_the_workspace),
		TEST(test_a_conflict_that_is_found_again_is_parked_once),
		TEST(test_a_batch_that_is_damaged_keeps_nobody_from_parking),
		TEST(test_the_same_again_parks_nothing_twice),
		TEST(test_without_conflicts_nothing_is_kept),
		TEST(test_a_version_is_found_and_shown),
		TEST(test_taking_a_side_ends_the_conflict),
		TEST(test_what_was_edited_since_is_not_replaced_or_removed),
		TEST(test_a_parked_file_that_cannot_be_written_is_in_the_store),
		TEST(test_an_edit_begins_with_all_versions),
		TEST(test_an_edit_takes_the_files_place),
		TEST(test_an_edit_does_not_replace_what_changed_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
