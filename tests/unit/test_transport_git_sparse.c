/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"

/* Big files with holes, on their way by git. Data is in the middle; a hole is at the end. */
static const char make_sparse[] =
	"truncate -s 12M s; seq 1 20000 | dd of=s bs=64k seek=80 conv=notrunc status=none";

enum { DATA_MAX = 256 << 10, PART_MAX = 2 << 20 };

static int setup(void **state)
{
	stage_setup(state);
	struct stage *stage = *state;
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	return 0;
}

/* The disk space of the file there, and of the only big file in the store. */
static long long held_there(struct stage *stage)
{
	char *said = stage_ask(stage, "echo $(($(stat -c '%b * %B' s)))");
	long long held = strtoll(said, NULL, 10);
	free(said);
	return held;
}

static long long held_in_store(struct stage *stage)
{
	char *said = place_ask(stage->place,
		"echo $(($(find ../state/store/big -type f -exec stat -c '%b * %B' {} +)))");
	long long held = strtoll(said, NULL, 10);
	free(said);
	return held;
}

static void assert_arrives(struct stage *stage)
{
	git_oid tree = stage_send_first(stage, make_sparse);
	stage_assert_equal(stage);
	stage_there(stage, "test -z \"$(ls -A | grep tmp$)\"");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
}

/* Collects a file that was made there; the store had nothing of it. */
static git_oid collect_sparse(struct stage *stage)
{
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, make_sparse);
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, make_sparse);
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
	return there;
}

static void test_holes_arrive_as_holes_and_zeros_stay_here(void **state)
{
	struct stage *stage = *state;
	assert_arrives(stage);
	assert_true(stage->delivered.sent_bytes < DATA_MAX);
	assert_true(held_there(stage) <= DATA_MAX);
}

static void test_holes_come_as_holes_and_zeros_stay_there(void **state)
{
	struct stage *stage = *state;
	collect_sparse(stage);
	assert_true(stage->collected.received_bytes < PART_MAX);
	assert_true(held_in_store(stage) <= DATA_MAX);
}

static void test_a_file_that_is_nothing_but_a_hole_travels(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "truncate -s 3000001 s");
	stage_assert_equal(stage);
	assert_true(stage->delivered.sent_bytes < 5000);
	assert_int_equal(held_there(stage), 0);
	stage_there(stage, "truncate -s 5000001 s");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, "truncate -s 5000001 s");
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
}

static void test_data_at_both_ends_and_beside_holes_travels(void **state)
{
	struct stage *stage = *state;
	static const char script[] = "truncate -s 30000001 s; for at in 0 65535 65536 1048575 "
				     "9999999 10485760 29999999; do printf '%s' $at |"
				     "dd of=s bs=1 seek=$at conv=notrunc status=none; done;"
				     "head -c 300000 /dev/urandom >> s";
	git_oid tree = stage_send_first(stage, script);
	stage_assert_equal(stage);
	stage_there(stage, "printf x | dd of=s bs=1 seek=20000000 conv=notrunc status=none;"
			   "echo end >> s; truncate -s +3M s; cp --sparse=always s t");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, "cp --sparse=always \"$PLACE/runtime/0/s\" s; cp s t");
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
}

/* ---- programs in the sandbox ---- */

static void test_where_dd_takes_no_full_blocks_all_is_sent(void **state)
{
	struct stage *stage = *state;
	stage_program(stage, "dd",
		"case $* in *fullblock*) exit 1 ;; esac\n"
		"exec /usr/bin/dd \"$@\"");
	assert_arrives(stage);
	assert_true(stage->delivered.sent_bytes > 12 << 20);
}

static void test_where_nothing_compares_all_comes_and_holes_are_made_here(void **state)
{
	struct stage *stage = *state;
	stage_program(stage, "cmp", "exit 2");
	collect_sparse(stage);
	assert_true(stage->collected.received_bytes >= 12 << 20);
	assert_true(held_in_store(stage) <= DATA_MAX);
}

static void test_busybox_there_is_enough(void **state)
{
	struct stage *stage = *state;
	static const char *const programs[] = {"sh", "dd", "cmp", "cat", "stat", "rm"};
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
		char script[64];
		snprintf(script, sizeof(script), "exec busybox %s \"$@\"", programs[i]);
		stage_program(stage, programs[i], script);
	}
	assert_arrives(stage);
	assert_true(held_there(stage) <= DATA_MAX);
	stage_there(stage, "printf x >> s; mv s t");
	git_oid there = stage_collect(stage, &store_empty_tree);
	place_run(stage->place, "printf x >> s; mv s t");
	git_oid here = place_take(stage->place, &store_empty_tree);
	stage_assert_same(&there, &here);
}

/* Hashing a large file takes longer than the time without a byte that ends a sync. */
static void test_a_large_file_is_given_the_time_to_be_hashed(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_program(stage, "sleep", "exec /usr/bin/sleep 0.1");
	stage_program(stage, "git",
		"case $* in *hash-object*s|*hash-object*tmp) end=$(($(date +%s) + 7))\n"
		"while [ \"$(date +%s)\" -lt \"$end\" ]; do :; done ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	stage->request.timeout_ms = 6000;
	stage_restart(stage);
	stage_prepare(stage);
	place_run(stage->place, "truncate -s 70M s");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_there(stage, "printf x >> s");
	git_oid there = stage_collect(stage, &next);
	place_run(stage->place, "printf x >> s");
	git_oid here = place_take(stage->place, &next);
	stage_assert_same(&there, &here);
	stage_there(stage, "truncate -s 1M s");
	stage_collect_fails(stage, &here, ERROR_TIMEOUT, "for 6000 ms");
}

static void test_a_file_whose_reading_hangs_is_not_waited_for(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_program(stage, "sleep", "exec /usr/bin/sleep 0.1");
	stage_program(stage, "git",
		"case $* in *hash-object*s) exec /usr/bin/sleep 1000 ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	stage->request.timeout_ms = 2000;
	stage_restart(stage);
	stage_prepare(stage);
	stage_there(stage, "truncate -s 70M s");
	stage_collect_fails(stage, &tree, ERROR_TIMEOUT, "for 2000 ms");
}

/* ---- files that cannot be synced ---- */

static void tell_of_holes(struct stage *stage, const char *told)
{
	char script[512];
	snprintf(script, sizeof(script),
		"case $2 in *'cmp -s'*) cd \"$5\"; path=$6; %s; exit ;; esac\n"
		"exec /bin/sh \"$@\"",
		told);
	stage_program(stage, "sh", script);
}

static void test_one_that_ends_early_stays_as_it_was(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, make_sparse);
	tell_of_holes(stage, "echo '0 2'; echo; head -c 65536 \"$path\"");
	stage_collect(stage, &tree);
	assert_int_equal(stage->collected.left.count, 1);
	assert_string_equal(stage->collected.left.first, "s");
}

static void test_what_is_told_wrongly_is_refused(void **state)
{
	struct stage *stage = *state;
	static const struct {
		const char *told, *words;
		enum error_code code;
	} wrong[] = {
		{"echo '0 193'; echo; exec cat \"$path\"", "beyond its end", ERROR_PROTOCOL},
		{"echo '-1 3'; echo", "not two numbers", ERROR_PROTOCOL},
		{"echo '0 99999999999999999999'; echo", "not two numbers", ERROR_PROTOCOL},
		{"echo '1 2'; echo '2 1'; echo; cat \"$path\"", "overlap", ERROR_PROTOCOL},
		{"yes '0 1'", "overlap", ERROR_PROTOCOL},
		{"exec cat /dev/zero", "too long", ERROR_PROTOCOL},
		{"exit 0", "ended", ERROR_UNAVAILABLE},
	};
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, make_sparse);
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		tell_of_holes(stage, wrong[i].told);
		stage_collect_fails(stage, &tree, wrong[i].code, wrong[i].words);
		assert_non_null(strstr(stage->err.text, "fetching s"));
	}
	stage_program(stage, "sh", "exec /bin/sh \"$@\"");
	stage_collect(stage, &tree);
	assert_true(held_in_store(stage) <= DATA_MAX);
}

/* A file that grows while it is sent arrives in its announced size, even a sparse one. */
static void test_a_sparse_file_may_grow_meanwhile(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, make_sparse);
	stage_program(stage, "stat",
		"case $* in *%B*) printf more >> s ;; esac\n"
		"exec /usr/bin/stat \"$@\"");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, make_sparse);
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
	stage_there(stage, "test $(tail -c 4 s) = more");
}

/* A hole costs nothing to make. */
static void test_holes_count_for_what_may_come(void **state)
{
	struct stage *stage = *state;
	stage->request.bytes_max = 100 << 20;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_program(stage, "git",
		"case $* in *hash-object*--no-filters*) echo read >\"$0.read\" ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	stage_there(stage, "truncate -s 1T s");
	stage_collect_fails(stage, &tree, ERROR_LIMIT, "more than 100 MiB (max-size)");
	assert_non_null(strstr(stage->err.text, "1048576 MiB"));
	stage_there(stage, "truncate -s 60M s; truncate -s 60000001 t");
	stage_collect_fails(stage, &tree, ERROR_LIMIT, "the largest is s");
	place_run(stage->place, "! test -e ../bin/git.read"); // the script has read none of it
	stage_there(stage, "truncate -s 10M s; truncate -s 10000001 t");
	stage_collect(stage, &tree);
	place_run(stage->place, "test -e ../bin/git.read");
}

/* The script also finds the ones that the sandbox has had since the last sync. */
static void test_a_big_file_that_is_known_counts_once(void **state)
{
	struct stage *stage = *state;
	stage->request.bytes_max = 100 << 20;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, "echo a > a; truncate -s 60M s");
	stage_there(stage, "echo b > a");
	git_oid there = stage_collect(stage, &tree);
	stage_program(stage, "git",
		"case $* in *hash-object*--no-filters*) echo read >>\"$0.read\" ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	stage_there(stage, "echo c > a; echo c >> s");
	stage_collect(stage, &there);
	place_run(stage->place, "test $(grep -c read ../bin/git.read) = 1");
	stage_there(stage, "truncate -s 50M t");
	stage_collect_fails(stage, &there, ERROR_LIMIT, "more than 100 MiB (max-size)");
	assert_non_null(strstr(stage->err.text, "110 MiB"));
	assert_non_null(strstr(stage->err.text, "the largest is s"));
}

/* Some file systems have files of 8 EiB: a shell cannot add two of them. */
static void test_holes_of_more_than_can_be_counted_are_told(void **state)
{
	struct stage *stage = *state;
	stage->request.bytes_max = 100 << 20;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_program(stage, "git",
		"case $* in *hash-object*--no-filters*) echo read >\"$0.read\" ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	stage_program(stage, "stat",
		"case $2 in\n"
		"%s) shift 2; for path do echo 9223372036854775807; done ;;\n"
		"*) exec /usr/bin/stat \"$@\" ;;\n"
		"esac");
	stage_there(stage, "truncate -s 10M s");
	stage_collect_fails(stage, &tree, ERROR_LIMIT, "the largest is s");
	stage_there(stage, "truncate -s 10M t");
	stage_collect_fails(stage, &tree, ERROR_LIMIT, "more than 100 MiB (max-size)");
	place_run(stage->place, "! test -e ../bin/git.read");
}

#define SPARSE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPARSE_TEST(test_holes_arrive_as_holes_and_zeros_stay_here),
		SPARSE_TEST(test_holes_come_as_holes_and_zeros_stay_there),
		SPARSE_TEST(test_a_file_that_is_nothing_but_a_hole_travels),
		SPARSE_TEST(test_data_at_both_ends_and_beside_holes_travels),
		SPARSE_TEST(test_where_dd_takes_no_full_blocks_all_is_sent),
		SPARSE_TEST(test_where_nothing_compares_all_comes_and_holes_are_made_here),
		SPARSE_TEST(test_busybox_there_is_enough),
		SPARSE_TEST(test_a_large_file_is_given_the_time_to_be_hashed),
		SPARSE_TEST(test_a_file_whose_reading_hangs_is_not_waited_for),
		SPARSE_TEST(test_one_that_ends_early_stays_as_it_was),
		SPARSE_TEST(test_what_is_told_wrongly_is_refused),
		SPARSE_TEST(test_a_sparse_file_may_grow_meanwhile),
		SPARSE_TEST(test_holes_count_for_what_may_come),
		SPARSE_TEST(test_a_big_file_that_is_known_counts_once),
		SPARSE_TEST(test_holes_of_more_than_can_be_counted_are_told),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
