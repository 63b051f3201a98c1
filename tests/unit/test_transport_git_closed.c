/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"

/*
 * Read-only folders in the sandbox, for a user whom they restrict. Root is one here, without the
 * capabilities that make root special.
 */
static int set_up(void **state)
{
	int failed = stage_setup(state);
	stage_program(*state, "sh",
		"[ \"$(id -u)\" = 0 ] || exec /bin/sh \"$@\"\n"
		"exec setpriv --bounding-set=-dac_override,-dac_read_search /bin/sh \"$@\"");
	return failed;
}

/* Makes the folders writable, so that they can be removed. */
static int tear_down(void **state)
{
	stage_there(*state, "chmod -R u+rwX .");
	return stage_teardown(state);
}

static const char first[] = "mkdir -p ro/deep gen/sub; echo a > a; echo r > ro/r; ln -s r ro/link\n"
			    "echo d > ro/deep/d; for n in 1 2 3; do echo $n > gen/sub/$n; done\n";

static git_oid change_here(struct stage *stage, const git_oid *base, const char *script)
{
	place_run(stage->place, script);
	return place_take(stage->place, base);
}

static void assert_delivered(struct stage *stage, const git_oid *tree)
{
	stage_assert_equal(stage);
	git_oid there = stage_collect(stage, tree);
	stage_assert_same(&there, tree);
}

static void test_few_changes_in_a_read_only_folder_are_delivered(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	stage_there(stage, "chmod 555 ro ro/deep .");
	git_oid next = change_here(stage, &tree,
		"echo rr > ro/r; ln -sf x ro/link; echo n > ro/new; mkdir -p ro/deep/a/b;"
		"echo b > ro/deep/a/b/c; echo top > top");
	stage_deliver(stage, &tree, &next);
	assert_delivered(stage, &next);
	stage_there(stage, "test $(stat -c %a ro ro/deep . | sort -u) = 555");
}

static void test_a_deletion_in_a_read_only_folder_is_delivered(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	stage_there(stage, "chmod 555 gen/sub gen ro");
	git_oid next = change_here(stage, &tree, "rm -r gen; echo rr > ro/r");
	stage_deliver(stage, &tree, &next);
	assert_delivered(stage, &next);
	stage_there(stage, "test ! -e gen; test $(stat -c %a ro) = 555");
}

static void test_big_files_of_a_read_only_folder_are_delivered(void **state)
{
	struct stage *stage = *state;
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	git_oid tree = stage_send_first(
		stage, "mkdir big; for n in 1 2 3; do head -c 9000 /dev/zero > big/$n; done");
	stage_there(stage, "chmod 555 big");
	git_oid next = change_here(stage, &tree,
		"printf x >> big/1; rm big/2; echo small > big/3; head -c 6000 /dev/zero > big/4");
	stage_deliver(stage, &tree, &next);
	assert_delivered(stage, &next);
	stage_there(stage, "test $(stat -c %a big) = 555");
}

/* The folder belongs to another user, for example, or its file system is mounted read-only. */
static void test_what_cannot_be_made_writable_is_named(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	stage_there(stage, "chmod 555 ro gen/sub");
	stage_program(stage, "chmod", "exit 1");
	git_oid next = change_here(stage, &tree, "echo aa > a; echo rr > ro/r");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "ro/r");
	assert_string_equal(stage->err.reason, "RUNTIME_CHANGED");
	assert_string_equal(stage->stuck, "ro/r\n");
	assert_true(stage->delivered.is_lasting);
	stage_there(stage, "test $(cat a) = a; test $(cat ro/r) = r");
	git_oid last = change_here(stage, &tree, "git init -q; rm -r gen; echo r > ro/r");
	stage_deliver_fails(stage, &tree, &last, ERROR_UNAVAILABLE, "gen/sub/1");
	stage_there(stage, "test $(cat gen/sub/3) = 3; rm ../../bin/chmod");
	stage_deliver(stage, &tree, &last);
	assert_delivered(stage, &last);
}

/* The list of opened folders names only folders of the root, whoever has written it. */
static void test_what_a_killed_delivery_has_opened_is_closed_by_the_next_sync(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	stage_there(stage, "mkdir ../out; ln -s ../out way\n"
			   "printf '/ro\\0/gone\\0/way\\0/../out\\0' > \"$(echo "
			   "../.acp-broker/sync/*)/opened\"");
	git_oid there = stage_collect(stage, &tree);
	stage_there(stage, "test $(stat -c %a ro ../out | paste -sd,) = 555,755; rm way\n"
			   "test ! -e \"$(echo ../.acp-broker/sync/*)/opened\"");
	assert_paths(stage->place, &there,
		"a\ngen/sub/1\ngen/sub/2\ngen/sub/3\nro/deep/d\nro/link\nro/r\nway\n");
}

#define CLOSED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLOSED_TEST(test_few_changes_in_a_read_only_folder_are_delivered),
		CLOSED_TEST(test_a_deletion_in_a_read_only_folder_is_delivered),
		CLOSED_TEST(test_big_files_of_a_read_only_folder_are_delivered),
		CLOSED_TEST(test_what_cannot_be_made_writable_is_named),
		CLOSED_TEST(test_what_a_killed_delivery_has_opened_is_closed_by_the_next_sync),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
