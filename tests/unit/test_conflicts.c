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

static void note_parked(
	void *data, const struct conflict *conflict, const char *parked, const char *why)
{
	char *notes = data;
	size_t len = strlen(notes);
	snprintf(notes + len, NOTES_MAX - len, "%s %s\n", conflict->path, parked ? "there" : why);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Merges, and parks with the work tree as the local side has it. */
static void park(
	struct place *place, const struct merge_trees *trees, const char *when, char *notes)
{
	struct error err;
	struct merge merge;
	struct park_request request = {
		.root = place->root, .stamp = when, .on_parked = note_parked, .data = notes};
	*notes = '\0';
	if (!merge_run(&merge, &place->store, trees, &err) ||
		!conflicts_park(&place->store, &merge, &request, &err)) {
		fail_msg("%s", err.text);
	}
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

static void test_versions_are_parked_beside_their_files(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = usual(place);
	park(place, &trees, stamp, notes);
	assert_string_equal(notes, "a there\nd/x there\nf/g/h there\ngone/x there\n");
	char *found =
		place_ask(place, "find . -name '*.acp-conflict' | sed 's/-[0-9a-f]*.acp/-ID.acp/'"
				 " | LC_ALL=C sort");
	assert_string_equal(found, "./a.20260131T101502-ID.acp-conflict\n"
				   "./d/x.20260131T101502-ID.acp-conflict\n"
				   "./f.g.h.20260131T101502-ID.acp-conflict\n"
				   "./gone/x.20260131T101502-ID.acp-conflict\n");
	free(found);
	found = place_ask(place, "cat ./a.*.acp-conflict; test -x ./a.*.acp-conflict; "
				 "readlink d/x.*.acp-conflict; cat a d/x f");
	assert_string_equal(found, "runtimeruntime\nlocallocallocal");
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
	assert_int_equal(tree_count(place->root, ".acp-conflict", NULL), 4);
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
	assert_int_equal(tree_count(place->root, ".acp-conflict", NULL), 1);
	git_oid now = tree_of_folder(&place->store, place->root);
	git_oid expected =
		TREE(&place->store, "a*=runtime", "d/x=local", "f=local", "gone/x=runtime");
	assert_true(tree_equal(&now, &expected));
	assert_false(take(place, "f/g/h", CONFLICT_RUNTIME, &err));
	assert_true(take(place, "f/g/h", CONFLICT_LOCAL, &err));
	assert_int_equal(count_all(place), 0);
	assert_int_equal(tree_count(place->root, ".acp-conflict", NULL), 0);
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
	place_run(place, "for file in a.*.acp-conflict; do echo edited >\"$file\"; done");
	assert_true(take(place, "a", CONFLICT_LOCAL, &err));
	assert_int_equal(count_all(place), 3);
	assert_int_equal(tree_count(place->root, "a.2026", "edited\n"), 1);
}

static void test_a_parked_file_that_cannot_be_written_is_in_the_store(void **state)
{
	struct place *place = *state;
	char notes[NOTES_MAX];
	struct merge_trees trees = {TREE(&place->store, "d/a=base"),
		TREE(&place->store, "d/a=local"), TREE(&place->store, "d/a=runtime")};
	place_run(place, "mkdir ../elsewhere && ln -s ../elsewhere d && ln -s ../elsewhere d.a");
	char *file = place_ask(place, "id=$(printf runtime | git hash-object --stdin | cut -c1-6); "
				      "printf 'd.a.20260131T101502-%s.acp-conflict' $id");
	place_write(place, file, "another's");
	park(place, &trees, stamp, notes);
	assert_string_equal(notes, "d/a something is there now\n");
	assert_int_equal(count_all(place), 1);
	char *found = place_ask(place, "ls ../elsewhere");
	assert_string_equal(found, "");
	free(found);
	free(file);
}

/* Another try of the same sync finds more, and what the user has changed meanwhile. */
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
	assert_int_equal(access(place_path(place, parked->file), F_OK), 0);
	conflicts_finish(&list);
	assert_int_equal(tree_count(place->root, ".acp-conflict", "runtime"), 1);
}

/* What cannot be read is no reason to park nothing. */
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
		TEST(test_versions_are_parked_beside_their_files),
		TEST(test_a_conflict_that_is_found_again_is_parked_once),
		TEST(test_a_batch_that_is_damaged_keeps_nobody_from_parking),
		TEST(test_the_same_again_parks_nothing_twice),
		TEST(test_without_conflicts_nothing_is_kept),
		TEST(test_a_version_is_found_and_shown),
		TEST(test_taking_a_side_ends_the_conflict),
		TEST(test_what_was_edited_since_is_not_replaced_or_removed),
		TEST(test_a_parked_file_that_cannot_be_written_is_in_the_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
