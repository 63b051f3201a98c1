/* SPDX-License-Identifier: MIT */
/* Several processes with one store, and what killed ones have left. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/store.h"
#include "tests/support/campaign.h"
#include "tests/unit/store_fixture.h"

enum { PROCESSES = 6, ROUNDS = 20, ROUNDS_PART = 4, OBJECTS = 40 };

static bool put_numbers(struct store *store, int from, int count)
{
	struct error err;
	git_oid id;
	for (int i = from; i < from + count; i++) {
		char text[32];
		snprintf(text, sizeof(text), "number %d\n", i);
		if (!store_put_bytes(store, span_of(text), &id, &err)) {
			return false;
		}
	}
	return true;
}

/* In a child: opens the store, puts what the others put, too, and makes a name. */
static int work(const char *path, int number)
{
	struct store store;
	struct error err;
	git_oid id;
	char name[32];
	if (!store_open(&store, path, 0, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	snprintf(name, sizeof(name), "base/%d", number);
	bool good = put_numbers(&store, number, OBJECTS) &&
	            store_keep(&store, name, &store_empty_tree, NULL, "x", &id, &err);
	store_close(&store);
	return good ? 0 : 1;
}

static pid_t start(const char *path, int number)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(work(path, number));
	}
	return pid;
}

static void check(struct place *place, const char *path)
{
	char script[FIXTURE_PATH_MAX + 64];
	snprintf(script, sizeof(script), "git --git-dir='%.400s' fsck --strict --full 2>&1", path);
	place_run(place, script);
}

static void test_many_make_and_fill_a_store_at_once(void **state)
{
	struct place *place = *state;
	for (int round = 0; round < campaign_count(ROUNDS_PART, ROUNDS); round++) {
		char path[FIXTURE_PATH_MAX];
		snprintf(path, sizeof(path), "%.400s/many/%d/store", place->folder, round);
		pid_t pids[PROCESSES];
		for (int i = 0; i < PROCESSES; i++) {
			pids[i] = start(path, i);
		}
		for (int i = 0; i < PROCESSES; i++) {
			int status;
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0);
		}
		check(place, path);
	}
}

/* Killed after this many microseconds: anywhere between the first directory and the last ref. */
static void test_a_store_works_after_any_kill(void **state)
{
	struct place *place = *state;
	char path[FIXTURE_PATH_MAX];
	for (int round = 0; round < 3 * ROUNDS; round += campaign_step(4)) {
		snprintf(path, sizeof(path), "%.400s/killed/%d/store", place->folder, round % 10);
		pid_t pid = start(path, round);
		usleep((useconds_t)(round * 500));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(work(path, 0), 0);
		check(place, path);
	}
}

static void set_age(struct place *place, const char *name, int seconds)
{
	char path[2 * FIXTURE_PATH_MAX];
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec -= seconds;
	snprintf(path, sizeof(path), "%s/%s", place->store_path, name);
	struct timespec times[] = {now, now};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_only_stale_litter_is_removed(void **state)
{
	struct place *place = *state;
	struct error err;
	static const char *const names[] = {"tmp/a", "tmp/git-x", "objects/tmp_object_git2_x",
		"objects/pack/pack_git2_x", "objects/pack/tmp_pack"};
	place_run(place, "cd ../state/store; mkdir tmp/git-x tmp/git-x/refs tmp/git-y; touch "
			 "tmp/git-x/index "
			 "tmp/a tmp/b objects/tmp_object_git2_x objects/tmp_object_git2_y "
			 "objects/pack/pack_git2_x objects/pack/tmp_pack objects/pack/pack-1.pack");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		set_age(place, names[i], 3700);
	}
	set_age(place, "objects/pack/pack-1.pack", 3700);
	store_close(&place->store);
	assert_true(store_open(&place->store, place->store_path, 0, &err));
	char *left = place_ask(place, "cd ../state/store; ls -d tmp/* objects/tmp* objects/pack/*");
	assert_string_equal(
		left, "objects/pack/pack-1.pack\nobjects/tmp_object_git2_y\ntmp/b\ntmp/git-y\n");
	free(left);
}

static void test_an_empty_object_is_written_again(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_entry entry = {.mode = ENTRY_FILE};
	assert_true(store_put_bytes(&place->store, SPAN_LITERAL("x"), &entry.id, &err));
	place_run(place, "cd ../state/store/objects/c1; chmod 600 *; : >$(echo *)");
	assert_true(store_put_bytes(&place->store, SPAN_LITERAL("x"), &entry.id, &err));
	check(place, place->store_path);
}

static void test_a_store_that_cannot_be_made_says_why(void **state)
{
	struct place *place = *state;
	struct store store;
	struct error err;
	place_write(place, "file", "x");
	assert_false(store_open(&store, place_path(place, "file/store"), 0, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_non_null(strstr(err.text, "file"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_many_make_and_fill_a_store_at_once),
		TEST(test_a_store_works_after_any_kill),
		TEST(test_only_stale_litter_is_removed),
		TEST(test_an_empty_object_is_written_again),
		TEST(test_a_store_that_cannot_be_made_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
