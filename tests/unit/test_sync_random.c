/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/apply.h"
#include "sync/conflicts.h"
#include "sync/renames.h"
#include "sync/snapshot.h"
#include "tests/support/campaign.h"
#include "tests/unit/random_fixture.h"
#include "tests/unit/tree_fixture.h"

/*
 * Random histories of two folders that are synced every now and then, compared with a model that
 * does not know how a merge works: no version of a path may get lost. ACP_SYNC_HISTORIES sets their
 * number, ACP_SYNC_SEED the first seed.
 */
enum {
	HISTORIES = 500,
	HISTORIES_PART = 25,
	SYNCS = 3,
	LEAVES_MAX = 200,
	STEPS_MAX = 8,
	TEXT_MAX = 4096
};

struct leaves {
	struct leaf items[LEAVES_MAX];
	size_t count;
};

struct history {
	struct store *store;
	unsigned long long seed;
	struct random_worker work;
	char roots[2][FIXTURE_PATH_MAX];
	git_oid base;
	size_t conflicts, text_merges, followed; // of all histories
};

/* ---- what users do in a folder ---- */

static void work(struct history *history, const char *root)
{
	random_work(&history->work, root, random_pick(&history->work, STEPS_MAX));
	/* Edits texts that both sides have on both sides. */
	struct leaves leaves;
	leaves.count = tree_leaves(history->store, &history->base, leaves.items, LEAVES_MAX);
	if (leaves.count > 0 && random_pick(&history->work, 2)) {
		char path[FIXTURE_PATH_MAX * 2];
		size_t chosen = random_pick(&history->work, (unsigned)leaves.count);
		snprintf(path, sizeof(path), "%s/%s", root, leaves.items[chosen].path);
		random_edit(&history->work, path);
	}
	/* Sometimes renames one of them, or the whole folder that contains it. */
	if (leaves.count > 0 && random_pick(&history->work, 3) == 0) {
		char path[FIXTURE_PATH_MAX * 2];
		char to[FIXTURE_PATH_MAX * 2];
		const char *leaf =
			leaves.items[random_pick(&history->work, (unsigned)leaves.count)].path;
		snprintf(path, sizeof(path), "%s/%.*s", root, (int)strcspn(leaf, "/"), leaf);
		snprintf(to, sizeof(to), "%s/moved%u", root, history->work.writes++);
		(void)(rename(path, to) == 0); // it may be gone there
	}
}

/* ---- the model ---- */

static const struct store_entry nothing = {.mode = ENTRY_NONE};

static const struct store_entry *find_leaf(const struct leaves *leaves, const char *path)
{
	for (size_t i = 0; i < leaves->count; i++) {
		if (strcmp(leaves->items[i].path, path) == 0) {
			return &leaves->items[i].entry;
		}
	}
	return &nothing;
}

/* Whether one tree has a file where another has a folder. */
static bool is_in_the_way(const struct leaves *leaves, const char *path)
{
	size_t len = strlen(path);
	for (size_t i = 0; i < leaves->count; i++) {
		const char *other = leaves->items[i].path;
		size_t other_len = strlen(other);
		const char *longer = len > other_len ? path : other;
		size_t shorter_len = len > other_len ? other_len : len;
		if (len != other_len && longer[shorter_len] == '/' &&
			strncmp(path, other, shorter_len) == 0) {
			return true;
		}
	}
	return false;
}

struct sides {
	struct leaves base, local, runtime, merged;
	const struct merge *merge;
};

static bool is_conflict(
	const struct sides *sides, const char *path, const struct store_entry *entry)
{
	LIST_FOR_EACH(conflict, &sides->merge->conflicts, struct conflict, link) {
		if (strcmp(conflict->path, path) == 0 &&
			store_entry_equal(&conflict->runtime, entry)) {
			return true;
		}
	}
	return false;
}

static char *content_of(struct history *history, const struct store_entry *entry)
{
	struct buf content;
	struct error err;
	buf_init(&content, TEXT_MAX);
	assert_true(store_read(history->store, &entry->id, TEXT_MAX, &content, &err));
	char *text = mem_strndup(buf_span(&content));
	buf_finish(&content);
	return text;
}

/* Whether every line of `version` that `base` lacks is in `merged`. */
static bool has_lines(const char *base, const char *version, const char *merged)
{
	char line[TEXT_MAX];
	for (const char *at = version; *at; at += strlen(line)) {
		snprintf(line, sizeof(line), "%.*s", (int)(strcspn(at, "\n") + 1), at);
		if (!strstr(base, line) && !strstr(merged, line)) {
			return false;
		}
	}
	return true;
}

static bool is_merged_in(struct history *history, const struct sides *sides, const char *path,
	const struct store_entry *version)
{
	const struct store_entry *base = find_leaf(&sides->base, path);
	const struct store_entry *merged = find_leaf(&sides->merged, path);
	if (!store_entry_is_file(base) || !store_entry_is_file(merged) ||
		!store_entry_is_file(version)) {
		/* Both sides added the same text, and one of them made it executable. */
		return store_entry_same_content(version, merged);
	}
	char *texts[] = {content_of(history, base), content_of(history, version),
		content_of(history, merged)};
	bool has = has_lines(texts[0], texts[1], texts[2]);
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		free(texts[i]);
	}
	return has;
}

static void check_kept(struct history *history, const struct sides *sides,
	const struct leaves *side, const char *what)
{
	for (size_t i = 0; i < side->count; i++) {
		const char *path = side->items[i].path;
		const struct store_entry *entry = &side->items[i].entry;
		bool is_kept = store_entry_equal(find_leaf(&sides->merged, path), entry) ||
		               store_entry_equal(find_leaf(&sides->base, path), entry) ||
		               (side == &sides->runtime && is_conflict(sides, path, entry)) ||
		               is_merged_in(history, sides, path, entry);
		if (!is_kept) {
			fail_msg("seed %llu: %s's %s is lost", history->seed, what, path);
		}
	}
}

/* If no file is in a folder's way, a change of only one side is the result. */
static void check_taken(
	struct history *history, const struct sides *sides, const struct leaves *paths)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i].path;
		const struct store_entry *base = find_leaf(&sides->base, path);
		const struct store_entry *local = find_leaf(&sides->local, path);
		const struct store_entry *runtime = find_leaf(&sides->runtime, path);
		const struct store_entry *expected = store_entry_equal(base, local)      ? runtime
		                                     : store_entry_equal(base, runtime)  ? local
		                                     : store_entry_equal(local, runtime) ? local
		                                                                         : NULL;
		if (expected && !is_in_the_way(&sides->local, path) &&
			!is_in_the_way(&sides->runtime, path) &&
			!store_entry_equal(find_leaf(&sides->merged, path), expected)) {
			fail_msg("seed %llu: %s is not that of the side that changed it",
				history->seed, path);
		}
	}
}

/* ---- a sync ---- */

static git_oid look(struct history *history, int side)
{
	static const char *const caches[] = {"local", "runtime"};
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = history->roots[side],
		.base = &history->base,
		.limits = snapshot_default_limits,
		.cache = caches[side]};
	if (!snapshot_take(history->store, &request, &snapshot, &err)) {
		fail_msg("seed %llu: %s", history->seed, err.text);
	}
	return snapshot.tree;
}

static void load(struct history *history, const git_oid *tree, struct leaves *leaves)
{
	leaves->count = tree_leaves(history->store, tree, leaves->items, LEAVES_MAX);
}

static void check_merge(
	struct history *history, const struct merge_trees *trees, const struct merge *merge)
{
	struct sides *sides = mem_alloc_zero(sizeof(*sides));
	sides->merge = merge;
	load(history, &trees->base, &sides->base);
	load(history, &trees->local, &sides->local);
	load(history, &trees->runtime, &sides->runtime);
	load(history, &merge->merged, &sides->merged);
	check_kept(history, sides, &sides->local, "local");
	check_kept(history, sides, &sides->runtime, "the runtime");
	check_taken(history, sides, &sides->base);
	check_taken(history, sides, &sides->local);
	check_taken(history, sides, &sides->runtime);
	free(sides);
}

static void park(struct history *history, const struct merge *merge)
{
	struct error err;
	struct stat status;
	if (!conflicts_park(history->store, merge, "20260131T101502", &err)) {
		fail_msg("seed %llu: %s", history->seed, err.text);
	}
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		if (conflict->runtime.mode == ENTRY_NONE) {
			assert_null(conflict->file);
		} else if (lstat(conflict->file, &status) < 0) {
			fail_msg("seed %llu: %s is not parked", history->seed, conflict->path);
		}
	}
}

/* The place of a file of the side in the merge. */
static const char *place_of(const struct renames *renames, enum rename_side side, const char *path)
{
	for (size_t i = 0; i < renames->count; i++) {
		const struct rename *one = &renames->items[i];
		const bool moves[RENAME_SIDES] = {[RENAME_BASE] = one->base.mode != ENTRY_NONE,
			[RENAME_LOCAL] = one->by == RENAME_BY_RUNTIME,
			[RENAME_RUNTIME] = one->by == RENAME_BY_LOCAL};
		if (moves[side] && strcmp(one->from, path) == 0) {
			return one->to;
		}
	}
	return path;
}

/*
 * The tree of a side as the merge must see it: it has everything that the side has, and nothing
 * else.
 */
static git_oid align(struct history *history, const struct renames *renames, enum rename_side side,
	const git_oid *tree)
{
	struct error err;
	git_oid aligned;
	struct leaves *before = mem_alloc(sizeof(*before));
	struct leaves *after = mem_alloc(sizeof(*after));
	if (!renames_align(renames, history->store, side, tree, &aligned, &err)) {
		fail_msg("seed %llu: %s", history->seed, err.text);
	}
	load(history, tree, before);
	load(history, &aligned, after);
	assert_int_equal(before->count, after->count);
	for (size_t i = 0; i < before->count; i++) {
		const char *to = place_of(renames, side, before->items[i].path);
		if (!store_entry_equal(find_leaf(after, to), &before->items[i].entry)) {
			fail_msg("seed %llu: %s did not come to %s", history->seed,
				before->items[i].path, to);
		}
	}
	free(before);
	free(after);
	return aligned;
}

/* Like sync/round.c. */
static void make_merge(
	struct history *history, const struct merge_trees *trees, struct merge *out_merge)
{
	struct error err;
	struct renames renames;
	if (!renames_find(
		    &renames, history->store, &(struct renames_request){.trees = *trees}, &err)) {
		fail_msg("seed %llu: %s", history->seed, err.text);
	}
	struct merge_trees aligned = {align(history, &renames, RENAME_BASE, &trees->base),
		align(history, &renames, RENAME_LOCAL, &trees->local),
		align(history, &renames, RENAME_RUNTIME, &trees->runtime)};
	history->followed += renames.count;
	renames_finish(&renames);
	if (!merge_run(out_merge, history->store, &aligned, &err)) {
		fail_msg("seed %llu: %s", history->seed, err.text);
	}
	check_merge(history, &aligned, out_merge);
}

static size_t sync_once(struct history *history)
{
	struct merge merge;
	struct merge_trees trees = {history->base, look(history, 0), look(history, 1)};
	make_merge(history, &trees, &merge);
	park(history, &merge);
	tree_apply(history->store, history->roots[0], &trees.local, &merge.merged);
	tree_apply(history->store, history->roots[1], &trees.runtime, &merge.merged);
	for (int side = 0; side < 2; side++) {
		git_oid now = look(history, side);
		if (!tree_equal(&now, &merge.merged)) {
			fail_msg("seed %llu: side %d is not as merged", history->seed, side);
		}
	}
	history->base = merge.merged;
	history->conflicts += merge.conflict_count;
	history->text_merges += merge.text_merges;
	const struct merge_counts *to[] = {&merge.to_local, &merge.to_runtime};
	size_t changes = merge.conflict_count;
	for (size_t i = 0; i < ARRAY_LENGTH(to); i++) {
		changes += to[i]->added + to[i]->changed + to[i]->deleted;
	}
	merge_finish(&merge);
	return changes;
}

static void run_history(struct history *history)
{
	history->base = store_empty_tree;
	history->work = (struct random_worker){.state = history->seed * 0x9e3779b97f4a7c15ULL + 1};
	tree_clear(history->roots[0]);
	tree_clear(history->roots[1]);
	for (int i = 0; i < SYNCS; i++) {
		work(history, history->roots[0]);
		work(history, history->roots[1]);
		sync_once(history);
		if (sync_once(history) != 0) {
			fail_msg("seed %llu: a second sync changes something", history->seed);
		}
	}
}

static unsigned long long number_of(const char *name, unsigned long long otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_random_histories_lose_nothing_and_agree(void **state)
{
	struct place *place = *state;
	struct history *history = mem_alloc_zero(sizeof(*history));
	history->store = &place->store;
	snprintf(history->roots[0], FIXTURE_PATH_MAX, "%.400s/local", place->folder);
	snprintf(history->roots[1], FIXTURE_PATH_MAX, "%.400s/runtime", place->folder);
	assert_int_equal(mkdir(history->roots[0], 0755), 0);
	assert_int_equal(mkdir(history->roots[1], 0755), 0);
	unsigned long long first = campaign_seed("ACP_SYNC_SEED");
	unsigned long long count = number_of("ACP_SYNC_HISTORIES",
		(unsigned long long)campaign_count(HISTORIES_PART, HISTORIES));
	print_message("%llu histories, ACP_SYNC_SEED=%llu\n", count, first);
	for (unsigned long long i = 0; i < count; i++) {
		history->seed = first + i;
		run_history(history);
	}
	print_message("%zu conflicts, %zu text merges, %zu files followed a rename\n",
		history->conflicts, history->text_merges, history->followed);
	assert_true(count < HISTORIES_PART ||
		    (history->conflicts > 0 && history->text_merges > 0 && history->followed > 0));
	free(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_random_histories_lose_nothing_and_agree, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
