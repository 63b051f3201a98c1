/* SPDX-License-Identifier: MIT */
#include "sync/deletions.h"

#include <stdio.h>

#include "sync/id.h"
#include "tests/unit/tree_fixture.h"

static struct deletions find(struct place *place, const git_oid *from, const git_oid *to)
{
	struct deletions found;
	struct error err;
	assert_true(deletions_find(&found, &place->store, from, to, NULL, &err));
	return found;
}

static void test_files_that_are_gone_are_counted_and_named(void **state)
{
	struct place *place = *state;
	git_oid from = TREE(&place->store, "a=1", "d/b=1", "d/e/c*=1", "l@=x", "s=1", "t=1");
	git_oid to = TREE(&place->store, "d/new=1", "l=1", "s=2", "t/x=1");
	struct deletions found = find(place, &from, &to);
	assert_int_equal(found.count, 4); // t, too: a folder is there now
	assert_string_equal(found.named[0], "a");
	assert_string_equal(found.named[1], "d/b");
	assert_string_equal(found.named[2], "d/e/c");
	assert_string_equal(found.named[3], "t");
	assert_null(found.named[4]);
	deletions_finish(&found);
	found = find(place, &from, &from);
	assert_int_equal(found.count, 0);
	assert_null(found.named);
	deletions_finish(&found);
}

static void test_the_same_paths_have_the_same_id_and_others_another(void **state)
{
	struct place *place = *state;
	git_oid from = TREE(&place->store, "a=1", "b=1", "c=1");
	git_oid changed = TREE(&place->store, "a=2", "b=3", "c=4", "d=5");
	git_oid left_c = TREE(&place->store, "c=1");
	git_oid left_a = TREE(&place->store, "a=1");
	git_oid left_d = TREE(&place->store, "c=7", "d=5");
	struct deletions first = find(place, &from, &left_c);
	struct deletions same = find(place, &changed, &left_d);
	struct deletions other = find(place, &from, &left_a);
	assert_true(id_equal(&first.id, &same.id));
	assert_false(id_equal(&first.id, &other.id));
	deletions_finish(&first);
	deletions_finish(&same);
	deletions_finish(&other);
}

static void test_only_some_are_named(void **state)
{
	struct place *place = *state;
	char text[50][16];
	const char *lines[51] = {NULL};
	for (int i = 0; i < 50; i++) {
		snprintf(text[i], sizeof(text[i]), "f%02d=%d", i, i);
		lines[i] = text[i];
	}
	git_oid from = tree_make(&place->store, lines);
	struct deletions found = find(place, &from, &store_empty_tree);
	size_t named = 0;
	while (found.named[named]) {
		named++;
	}
	assert_int_equal(found.count, 50);
	assert_int_equal(named, DELETIONS_NAMED_MAX);
	deletions_finish(&found);
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(test_files_that_are_gone_are_counted_and_named),
		PLACE_TEST(test_the_same_paths_have_the_same_id_and_others_another),
		PLACE_TEST(test_only_some_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
