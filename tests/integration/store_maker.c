/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/ledger/state_folder.h"
#include "sync/checkpoint.h"
#include "sync/conflicts.h"
#include "sync/held.h"
#include "sync/merge.h"
#include "sync/snapshot.h"

/*
 * Fills the store of a workspace as a broker's syncs do, for the tests of the commands that work on
 * a store:
 *
 *     store-maker STATE ROOT path                     prints where the store is
 *     store-maker STATE ROOT checkpoint REASON [SESSION [BIG-FILE]]
 *     store-maker STATE ROOT conflict|held STAMP BASE RUNTIME
 *
 * "conflict" merges ROOT with the directory RUNTIME over the directory BASE, and parks the
 * conflicts. "held" does the same with the default guard, and parks the guarded files that were
 * held.
 */
struct maker {
	struct store store;
	const char *root;
};

static git_oid take(struct maker *maker, const char *root)
{
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = root, .limits = snapshot_default_limits};
	if (!snapshot_take(&maker->store, &request, &snapshot, &err)) {
		fprintf(stderr, "store-maker: %s\n", err.text);
		exit(1);
	}
	return snapshot.tree;
}

static bool add_checkpoint(struct maker *maker, char **words, struct error *err)
{
	unsigned number;
	git_oid tree = take(maker, maker->root);
	if (!checkpoint_add(
		    &maker->store, &tree, words[0], words[1] ? words[1] : "", &number, err)) {
		return false;
	}
	printf("%u\n", number);
	return true;
}

static bool park(struct maker *maker, char **words, struct error *err)
{
	struct merge merge;
	struct merge_trees trees = {.base = take(maker, words[1]),
		.local = take(maker, maker->root),
		.runtime = take(maker, words[2])};
	bool ok = merge_run(&merge, &maker->store, &trees, err) &&
	          conflicts_park(&maker->store, &merge, words[0], err);
	merge_finish(&merge);
	return ok;
}

static bool park_held(struct maker *maker, char **words, struct error *err)
{
	struct merge merge;
	struct guard_paths *guard = guard_paths_create((const char *const[]){"default", NULL}, err);
	struct merge_options options = {.guard = guard, .root = maker->root};
	struct merge_trees trees = {.base = take(maker, words[1]),
		.local = take(maker, maker->root),
		.runtime = take(maker, words[2])};
	merge_init(&merge);
	bool ok = guard && merge_run_as(&merge, &maker->store, &trees, &options, err) &&
	          held_park(&maker->store, &merge.held, words[0], err);
	merge_finish(&merge);
	guard_paths_destroy(guard);
	return ok;
}

static bool act(struct maker *maker, int argc, char **argv, struct error *err)
{
	if (strcmp(argv[3], "checkpoint") == 0 && argc >= 5) {
		return add_checkpoint(maker, argv + 4, err);
	}
	if (strcmp(argv[3], "conflict") == 0 && argc == 7) {
		return park(maker, argv + 4, err);
	}
	if (strcmp(argv[3], "held") == 0 && argc == 7) {
		return park_held(maker, argv + 4, err);
	}
	puts(maker->store.path);
	return true;
}

int main(int argc, char **argv)
{
	struct error err;
	if (argc < 4) {
		fputs("usage: store-maker STATE ROOT path|checkpoint|conflict|held ...\n", stderr);
		return 2;
	}
	struct maker maker = {.root = argv[2]};
	uint64_t big =
		argc == 7 && strcmp(argv[3], "checkpoint") == 0 ? strtoull(argv[6], NULL, 10) : 0;
	char *folder = state_folder_store(argv[1], argv[2]);
	bool ok = store_open(&maker.store, folder, big, &err);
	free(folder);
	if (ok) {
		ok = act(&maker, argc, argv, &err);
		store_close(&maker.store);
	}
	if (!ok) {
		fprintf(stderr, "store-maker: %s\n", err.text);
	}
	return ok ? 0 : 1;
}
