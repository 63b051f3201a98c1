/* SPDX-License-Identifier: MIT */
/* Snapshots that have to store so many files that they go into packs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync/store_impl.h"
#include "tests/support/campaign.h"
#include "tests/unit/moment_fixture.h"

enum { FILES = 500, GRACE_S = 1000 };

static const char make_files[] = "mkdir -p a b; for i in $(seq 250); do echo a $i >a/$i; "
				 "echo b $i >b/$i; done";

static git_oid take(struct place *place)
{
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = place->root};
	if (!snapshot_take(&place->store, &request, &snapshot, &err)) {
		fail_msg("%s", err.text);
	}
	return snapshot.tree;
}

static void assert_said(struct place *place, const char *script, const char *expected)
{
	char *said = place_ask(place, script);
	assert_string_equal(said, expected);
	free(said);
}

/* For git, the store is sound, has the tree, and its files are those of the work tree. */
static void assert_whole(struct place *place, const git_oid *tree)
{
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), tree);
	snprintf(script, sizeof(script),
		"set -e; rm -rf ../out; mkdir ../out; cd ../state/store;"
		"git fsck --strict --full; for i in objects/pack/*.idx; do"
		" [ ! -e $i ] || git verify-pack $i; done;"
		"git archive %s | tar x -C ../../out; diff -r ../../work ../../out",
		hex);
	place_run(place, script);
}

static void test_many_new_files_are_one_pack(void **state)
{
	struct place *place = *state;
	struct store other;
	struct error err;
	assert_true(store_open(&other, place->store_path, 0, &err));
	place_run(place, make_files);
	git_oid tree = take(place);
	assert_whole(place, &tree);
	assert_said(place, "cd ../state/store/objects; ls pack | sed 's/.*[.]//'", "idx\npack\n");
	assert_said(place, "cd ../state/store; git show-index <$(ls objects/pack/*.idx) | wc -l",
		"500\n");
	assert_said(place, "cd ../state/store; find objects/?? -type f | wc -l", "4\n"); // trees
	assert_said(place, "ls ../state/store/tmp", "");
	/* A store that was open before finds the files, too. */
	struct store_entry entry;
	struct buf content;
	buf_init(&content, 100);
	entry.mode = ENTRY_FILE;
	assert_int_equal(other.git->odb_hash(&entry.id, "a 77\n", 5, GIT_OBJECT_BLOB), 0);
	assert_true(store_has(&other, &entry));
	assert_true(store_read(&other, &entry.id, 100, &content, &err));
	assert_true(span_is(buf_span(&content), "a 77\n"));
	buf_finish(&content);
	store_close(&other);
}

static void test_fewer_files_are_loose_objects(void **state)
{
	struct place *place = *state;
	place_run(place, make_files);
	place_run(place, "rm a/1");
	git_oid tree = take(place);
	assert_whole(place, &tree);
	assert_said(place, "ls ../state/store/objects/pack", "");
}

/* Of all sizes: empty, of several blocks of the stream, of more pieces than one call writes. */
static void test_equal_and_large_files_and_links_are_packed(void **state)
{
	struct place *place = *state;
	place_run(place, make_files);
	place_run(place, "for i in $(seq 250); do echo same >a/$i; done; : >empty; ln -s a/1 link;"
			 "for i in 1 15 16 127 128 65534 65535 65536 131071 3000000; do"
			 " seq 1 600000 | head -c $i >size-$i; done");
	git_oid tree = take(place);
	assert_whole(place, &tree);
	assert_said(place, "cd ../state/store; git show-index <$(ls objects/pack/*.idx) | wc -l",
		"263\n");
}

static void test_what_is_in_a_pack_is_not_stored_again(void **state)
{
	struct place *place = *state;
	place_run(place, make_files);
	git_oid first = take(place);
	git_oid second = take(place); // reads all files again
	assert_memory_equal(&first, &second, sizeof(first));
	place_run(place, "echo new >new");
	git_oid third = take(place);
	assert_whole(place, &third);
	assert_said(place,
		"cd ../state/store; for i in objects/pack/*.idx; do"
		" git show-index <$i | wc -l; done | sort",
		"1\n500\n");
	place_run(place, "touch -d '-1 hour' ../state/store/objects/pack/*");
	take(place);
	assert_said(place, "find ../state/store/objects/pack -name '*.pack' -mmin -30 | wc -l",
		"2\n"); // store_prune spares them
}

static void test_a_full_pack_is_followed_by_another(void **state)
{
	struct place *place = *state;
	place->store.pack_bytes_max = 4096;
	place_run(place, make_files);
	git_oid tree = take(place);
	assert_whole(place, &tree);
	char *count = place_ask(place, "ls ../state/store/objects/pack/*.pack | wc -l");
	assert_true(strtol(count, NULL, 10) > 2);
	free(count);
	assert_said(place,
		"cd ../state/store; for i in objects/pack/*.idx; do"
		" git show-index <$i; done | wc -l",
		"500\n");
}

/* ---- pruning ---- */

static struct store_pruned prune(struct place *place)
{
	struct error err;
	struct store_pruned pruned;
	place_run(place, "find ../state/store/objects -type f -exec touch -d '-1 hour' {} +");
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

static void test_a_pack_loses_what_most_of_it_no_longer_needs(void **state)
{
	struct place *place = *state;
	struct error err;
	place_run(place, make_files);
	git_oid all = take(place);
	keep(place, "checkpoints/1", &all);
	assert_int_equal(prune(place).packs, 0);
	place_run(place, "rm -r b");
	git_oid half = take(place);
	keep(place, "checkpoints/2", &half);
	assert_true(store_forget(&place->store, "checkpoints/1", &err));
	assert_int_equal(prune(place).packs, 0); // half of it is in use
	place_run(place, "rm a/1");
	git_oid less = take(place);
	keep(place, "checkpoints/3", &less);
	assert_true(store_forget(&place->store, "checkpoints/2", &err));
	struct store_pruned pruned = prune(place);
	assert_int_equal(pruned.packs, 1);
	assert_true(pruned.bytes > 0);
	assert_whole(place, &less);
	assert_said(place, "cd ../state/store; git show-index <$(ls objects/pack/*.idx) | wc -l",
		"249\n");
	git_oid again = take(place); // the same store goes on with the new pack
	assert_memory_equal(&again, &less, sizeof(less));
	assert_true(store_forget(&place->store, "checkpoints/3", &err));
	assert_int_equal(prune(place).packs, 1);
	assert_said(place, "ls ../state/store/objects/pack ../state/store/tmp | grep -v :$ | xargs",
		"\n");
}

/* ---- cut off, and without room ---- */

static int count_calls(struct place *place)
{
	place_run(place, make_files);
	calls_begin(0);
	git_oid tree = take(place);
	calls_end();
	assert_whole(place, &tree);
	return calls.count;
}

static void forget_objects(struct place *place)
{
	struct error err;
	store_close(&place->store);
	place_run(place, "rm -rf ../state/store");
	assert_true(store_open(&place->store, place->store_path, 0, &err));
}

/* The calls of the first files, and all calls after the last file. */
static int next_call(int at, int count)
{
	int tail = count - 60;
	return at < 20 || at >= tail ? at + campaign_step(7) : tail;
}

static void test_killed_anywhere_the_next_snapshot_is_whole(void **state)
{
	struct place *place = *state;
	int count = count_calls(place);
	for (int at = 1; at <= count; at = next_call(at, count)) {
		forget_objects(place);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			calls_begin(at);
			calls.before = moment_be_killed;
			take(place);
			_exit(0);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		git_oid tree = take(place);
		assert_whole(place, &tree);
	}
}

static void test_a_failure_leaves_nothing_behind(void **state)
{
	struct place *place = *state;
	struct error err;
	int count = count_calls(place);
	int failed = 0;
	for (int at = 1; at <= count; at = next_call(at, count)) {
		struct snapshot snapshot;
		struct snapshot_request request = {.root = place->root};
		forget_objects(place);
		calls_begin(at);
		calls.fail_with = ENOSPC;
		bool taken = snapshot_take(&place->store, &request, &snapshot, &err);
		calls_end();
		assert_true(taken || strstr(err.text, "No space left on device"));
		assert_null(place->store.pack);
		failed += !taken;
		char *left = place_ask(
			place, "cd ../state/store; ls tmp; ls objects/pack | sed 's/.*[.]//'");
		bool is_packed = strcmp(left, "idx\npack\n") == 0;
		assert_true(is_packed || (!taken && strcmp(left, "") == 0));
		free(left);
		git_oid tree = take(place);
		assert_whole(place, &tree);
	}
	assert_true(failed > 1);
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(test_many_new_files_are_one_pack),
		PLACE_TEST(test_fewer_files_are_loose_objects),
		PLACE_TEST(test_equal_and_large_files_and_links_are_packed),
		PLACE_TEST(test_what_is_in_a_pack_is_not_stored_again),
		PLACE_TEST(test_a_full_pack_is_followed_by_another),
		PLACE_TEST(test_a_pack_loses_what_most_of_it_no_longer_needs),
		PLACE_TEST(test_killed_anywhere_the_next_snapshot_is_whole),
		PLACE_TEST(test_a_failure_leaves_nothing_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
