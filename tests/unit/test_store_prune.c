/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync/store.h"
#include "tests/unit/store_fixture.h"

enum { BIG_FILE_BYTES = 100000, GRACE_S = 1000 };

static int setup(void **state)
{
	struct error err;
	place_setup(state);
	struct place *place = *state;
	store_close(&place->store);
	if (!store_open(&place->store, place->store_path, BIG_FILE_BYTES, &err)) {
		fail_msg("%s", err.text);
	}
	return 0;
}

/* Makes all objects look as if they had been put in before the grace period. */
static void make_old(struct place *place)
{
	place_run(place, "find ../state/store/objects ../state/store/big -type f -exec touch -d "
			 "'-1 hour' {} +");
}

static struct store_pruned prune(struct place *place)
{
	struct error err;
	struct store_pruned pruned;
	if (!store_prune(&place->store, GRACE_S, 0, &pruned, &err)) {
		fail_msg("%s", err.text);
	}
	return pruned;
}

static void keep(struct place *place, const char *name, const git_oid *tree)
{
	struct error err;
	git_oid commit;
	assert_true(store_keep(&place->store, name, tree, NULL, "x", &commit, &err));
}

/* Opens the store again, so that libgit2 forgets what it has in memory. */
static void assert_whole(struct place *place, const git_oid *tree)
{
	struct error err;
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), tree);
	snprintf(script, sizeof(script),
		"cd ../state/store; git fsck --strict --full; git archive %s >/dev/null", hex);
	place_run(place, script);
	store_close(&place->store);
	assert_true(store_open(&place->store, place->store_path, BIG_FILE_BYTES, &err));
}

/* A snapshot without a stat cache. */
static git_oid take(struct place *place)
{
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = place->root};
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	return snapshot.tree;
}

static void test_what_only_a_forgotten_name_kept_goes(void **state)
{
	struct place *place = *state;
	struct error err;
	place_run(place, "mkdir d; echo 1 >d/a; echo b >b; seq 1 40000 >big");
	git_oid first = take(place);
	keep(place, "checkpoints/1", &first);
	place_run(place, "echo 2 >d/a; seq 1 40001 >big");
	git_oid second = take(place);
	keep(place, "checkpoints/2", &second);
	make_old(place);
	assert_int_equal(prune(place).objects, 0);
	assert_true(store_forget(&place->store, "checkpoints/1", &err));
	struct store_pruned pruned = prune(place);
	assert_int_equal(pruned.objects, 5); // commit, two trees, d/a, big
	assert_true(pruned.bytes > 0);
	struct store_entry gone = {ENTRY_FILE, first};
	assert_whole(place, &second);
	assert_false(store_has(&place->store, &gone));
	place_run(place, "[ $(find ../state/store/big -type f | wc -l) = 1 ]");
}

static void test_what_a_conflict_or_a_delivery_names_stays(void **state)
{
	struct place *place = *state;
	struct error err;
	static const char *const names[] = {"conflicts/20260131T101503-0123abcd",
		"deliveries/0123456789abcdef", "bases/0123456789abcdef"};
	git_oid trees[ARRAY_LENGTH(names)];
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char script[128];
		snprintf(script, sizeof(script),
			"mkdir -p d; echo %zu >d/a; seq 1 4000%zu >big; echo same >same", i, i);
		place_run(place, script);
		trees[i] = take(place);
		keep(place, names[i], &trees[i]);
	}
	make_old(place);
	assert_int_equal(prune(place).objects, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		struct store_entry tree = {ENTRY_FILE, trees[i]};
		assert_whole(place, &trees[i]);
		assert_true(store_forget(&place->store, names[i], &err));
		/* commit, two trees, d/a, big: no other name leads to these */
		bool is_last = i + 1 == ARRAY_LENGTH(names);
		assert_int_equal(prune(place).objects, is_last ? 6 : 5);
		store_close(&place->store);
		assert_true(store_open(&place->store, place->store_path, BIG_FILE_BYTES, &err));
		assert_false(store_has(&place->store, &tree));
	}
	place_run(place, "[ $(find ../state/store/big -type f | wc -l) = 0 ]");
}

static void test_what_is_young_stays(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; echo 1 >d/a; seq 1 40000 >big");
	git_oid tree = take(place);
	assert_int_equal(prune(place).objects, 0);
	make_old(place);
	git_oid again = take(place); // puts in what is there already
	assert_memory_equal(&again, &tree, sizeof(tree));
	assert_int_equal(prune(place).objects, 0);
	make_old(place);
	assert_int_equal(prune(place).objects, 4);
}

static void test_what_a_stat_cache_knows_stays(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; echo 1 >d/a; seq 1 40000 >big");
	git_oid tree = place_take(place, NULL);
	make_old(place);
	assert_int_equal(prune(place).objects, 0);
	assert_whole(place, &tree);
	place_run(place, "rm ../state/store/cache/work");
	assert_int_equal(prune(place).objects, 4);
}

static void test_packs_go_as_a_whole_or_stay(void **state)
{
	struct place *place = *state;
	struct error err;
	place_run(place, "mkdir d; echo 1 >d/a; echo 1 >b");
	git_oid first = take(place);
	keep(place, "checkpoints/1", &first);
	place_run(place,
		"cd ../state/store; git repack -adq; [ $(ls objects/pack/*.pack | wc -l) = 1 ]");
	place_run(place, "echo 2 >b");
	git_oid second = take(place);
	keep(place, "checkpoints/2", &second);
	assert_true(store_forget(&place->store, "checkpoints/1", &err));
	make_old(place);
	assert_int_equal(prune(place).packs, 0); // d is in it
	place_run(place, "rm -r d");
	git_oid third = take(place);
	keep(place, "checkpoints/2", &third);
	make_old(place);
	place_run(place, "touch $(ls ../state/store/objects/pack/*.pack | sed s/pack$/keep/)");
	assert_int_equal(prune(place).packs, 0);
	place_run(place, "rm ../state/store/objects/pack/*.keep");
	assert_int_equal(prune(place).packs, 1);
	assert_whole(place, &third);
}

static void test_a_damaged_store_is_not_pruned(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_pruned pruned;
	place_run(place, "mkdir d; echo 1 >d/a");
	git_oid tree = take(place);
	keep(place, "checkpoints/1", &tree);
	place_run(place, "echo 1 >unnamed");
	take(place);
	make_old(place);
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), &tree);
	snprintf(script, sizeof(script),
		"cd ../state/store; rm -f objects/$(git rev-parse %s:d | sed 's,..,&/,'); "
		"find objects -type f | wc -l",
		hex);
	char *before = place_ask(place, script);
	store_close(&place->store);
	assert_true(store_open(&place->store, place->store_path, 0, &err));
	assert_false(store_prune(&place->store, GRACE_S, 0, &pruned, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	char *after = place_ask(place, "find ../state/store/objects -type f | wc -l");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* Nothing is removed, and the text names the file, the reason, and what to do. */
static void expect_standstill(struct place *place, const char *path, const char *why)
{
	struct error err;
	struct store_pruned pruned;
	char removal[FIXTURE_PATH_MAX * 2];
	store_close(&place->store); // libgit2 remembers objects
	assert_true(store_open(&place->store, place->store_path, BIG_FILE_BYTES, &err));
	char *before = place_ask(place, "find ../state/store/objects -type f | sort");
	assert_false(store_prune(&place->store, GRACE_S, 0, &pruned, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	char *after = place_ask(place, "find ../state/store/objects -type f | sort");
	assert_string_equal(before, after);
	snprintf(removal, sizeof(removal), "remove %s/%s:", place->store_path, path);
	if (!strstr(err.text, removal) || !strstr(err.text, why)) {
		fail_msg("%s", err.text);
	}
	free(before);
	free(after);
}

static void keep_two_and_lose_a_third(struct place *place)
{
	place_run(place, "mkdir d; echo 1 >d/a");
	git_oid first = take(place);
	keep(place, "checkpoints/00000001", &first);
	place_run(place, "echo 2 >d/a");
	git_oid second = take(place);
	keep(place, "checkpoints/00000002", &second);
	place_run(place, "echo unnamed >unnamed");
	take(place);
	make_old(place);
}

static void test_a_ref_that_cannot_be_read_keeps_everything_until_it_is_mended(void **state)
{
	struct place *place = *state;
	static const char one[] = "refs/acp-broker/checkpoints/00000001";
	static const struct {
		const char *damage, *why;
	} cases[] = {
		{"echo rubbish >$ref", "00000001 holds no id"},
		{": >$ref", "00000001 holds no id"},
		{"ln -sfn . $ref", "00000001 holds no id"},
		{"ln -sfn 00000001 $ref", "Too many levels of symbolic links"},
	};
	keep_two_and_lose_a_third(place);
	git_oid tree;
	struct error err;
	assert_true(store_find(&place->store, "checkpoints/00000001", &tree, &err));
	place_run(place, "cp ../state/store/refs/acp-broker/checkpoints/00000001 ../good");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char script[FIXTURE_PATH_MAX];
		snprintf(script, sizeof(script), "ref=../state/store/%s; %s", one, cases[i].damage);
		place_run(place, script);
		expect_standstill(place, one, cases[i].why);
	}
	place_run(place, "cp --remove-destination ../good "
			 "../state/store/refs/acp-broker/checkpoints/00000001");
	assert_int_equal(prune(place).objects, 2); // unnamed, and its tree
	assert_whole(place, &tree);
}

static void test_a_ref_that_is_given_up_is_in_the_way_no_more(void **state)
{
	struct place *place = *state;
	static const char one[] = "refs/acp-broker/checkpoints/00000001";
	keep_two_and_lose_a_third(place);
	place_run(place, "cd ../state/store; git rev-parse "
			 "acp-broker/checkpoints/00000001:d >../../lost; "
			 "rm -f objects/$(sed 's,..,&/,' ../../lost)");
	expect_standstill(place, one, "not found");
	place_run(place, "rm ../state/store/refs/acp-broker/checkpoints/00000001");
	assert_int_equal(
		prune(place).objects, 5); // its commit, tree and file, unnamed and its tree
}

static void test_refs_are_found_in_folders_and_a_lock_is_none(void **state)
{
	struct place *place = *state;
	keep_two_and_lose_a_third(place);
	place_run(place, "cd ../state/store/refs/acp-broker; mkdir -p agent/x/empty agent/a/b; "
			 "cp checkpoints/00000001 agent/a/b/c; rm checkpoints/00000001; "
			 "echo rubbish >agent/a/b/c.lock");
	assert_int_equal(prune(place).objects, 2);
	place_run(place, "echo rubbish >../state/store/refs/acp-broker/agent/a/b/c");
	expect_standstill(place, "refs/acp-broker/agent/a/b/c", "holds no id");
}

static void test_a_stat_cache_of_what_is_gone_is_named(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; echo 1 >d/a");
	git_oid tree = place_take(place, NULL);
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), &tree);
	snprintf(script, sizeof(script),
		"cd ../state/store; rm -f objects/$(git rev-parse %s:d | sed 's,..,&/,')", hex);
	place_run(place, script);
	expect_standstill(place, "cache/work", "not found");
	place_run(place, "rm ../state/store/cache/work");
	prune(place);
}

/* Somebody puts the same objects in over and over, while they are old and are pruned. */
static void test_pruning_beside_a_writer_loses_nothing(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; for i in $(seq 1 30); do echo $i >d/$i; done");
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 40; i++) {
			struct store store;
			struct error err;
			struct snapshot snapshot;
			git_oid commit;
			struct snapshot_request request = {.root = place->root};
			if (!store_open(&store, place->store_path, BIG_FILE_BYTES, &err) ||
				!snapshot_take(&store, &request, &snapshot, &err) ||
				!store_keep(&store, "base/x", &snapshot.tree, NULL, "x", &commit,
					&err)) {
				_exit(1);
			}
			store_close(&store);
		}
		_exit(0);
	}
	int status = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct error err;
		struct store_pruned pruned;
		assert_true(store_prune(&place->store, GRACE_S, 0, &pruned, &err));
	}
	assert_int_equal(status, 0);
	place_run(place, "cd ../state/store; git fsck --strict --full; git archive "
			 "acp-broker/base/x | tar t | wc -l");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_what_only_a_forgotten_name_kept_goes),
		TEST(test_what_a_conflict_or_a_delivery_names_stays),
		TEST(test_what_is_young_stays),
		TEST(test_what_a_stat_cache_knows_stays),
		TEST(test_packs_go_as_a_whole_or_stay),
		TEST(test_a_damaged_store_is_not_pruned),
		TEST(test_a_ref_that_cannot_be_read_keeps_everything_until_it_is_mended),
		TEST(test_a_ref_that_is_given_up_is_in_the_way_no_more),
		TEST(test_refs_are_found_in_folders_and_a_lock_is_none),
		TEST(test_a_stat_cache_of_what_is_gone_is_named),
		TEST(test_pruning_beside_a_writer_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
