/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sync/merge.h"
#include "sync/rsync/shell.h"
#include "tests/support/campaign.h"
#include "tests/unit/random_fixture.h"
#include "tests/unit/transport_fixture.h"
#include "tests/unit/tree_fixture.h"

/*
 * Both sides make random changes; a collect brings what is there, and a delivery reaches that
 * place.
 */
enum { HISTORIES = 4, SYNCS = 4, STEPS_MAX = 12 };

static void assert_there(struct stage *stage, const git_oid *tree, unsigned long long seed)
{
	git_oid there = tree_of_folder(&stage->place->store, stage->root);
	if (!tree_equal(&there, tree)) {
		char *expected = tree_text(&stage->place->store, tree);
		char *found = tree_text(&stage->place->store, &there);
		fail_msg("ACP_SYNC_SEED=%llu: expected\n%s\nfound\n%s", seed, expected, found);
	}
}

static git_oid sync_once(struct stage *stage, const git_oid *base, unsigned long long seed)
{
	struct error err;
	struct merge merge;
	struct store *store = &stage->place->store;
	git_oid there = stage_collect(stage, base);
	assert_there(stage, &there, seed);
	git_oid here = tree_of_folder(store, stage->place->root);
	assert_true(merge_run(&merge, store, &(struct merge_trees){*base, here, there}, &err));
	stage_deliver(stage, &there, &merge.merged);
	assert_there(stage, &merge.merged, seed);
	tree_apply(store, stage->place->root, &here, &merge.merged);
	git_oid merged = merge.merged;
	merge_finish(&merge);
	git_oid again = stage_collect(stage, &merged);
	assert_true(tree_equal(&again, &merged));
	return merged;
}

static void test_random_work_travels_whole(void **state)
{
	struct stage *stage = *state;
	unsigned long long first = campaign_seed("ACP_SYNC_SEED");
	unsigned long long count = (unsigned long long)campaign_count(1, HISTORIES);
	print_message("ACP_SYNC_SEED=%llu\n", first);
	/* The clock there is ahead, so that everything counts as old enough. */
	stage_program(stage, "stat",
		"[ \"$2\" != %Z ] || exec expr \"$(/usr/bin/stat \"$@\")\" + 100\n"
		"exec /usr/bin/stat \"$@\"");
	stage_prepare(stage);
	git_oid base = store_empty_tree;
	for (unsigned long long seed = first; seed < first + count; seed++) {
		struct random_worker worker = {.state = seed * 0x9e3779b97f4a7c15ULL + 1};
		for (int i = 0; i < SYNCS; i++) {
			random_work(&worker, stage->place->root, random_pick(&worker, STEPS_MAX));
			random_work(&worker, stage->root, random_pick(&worker, STEPS_MAX));
			base = sync_once(stage, &base, seed);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], RSYNC_SHELL_WORD) == 0) {
		return rsync_shell_main(argc, argv, (const char *const *)environ);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_random_work_travels_whole, stage_setup_rsync, stage_teardown),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
