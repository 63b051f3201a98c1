/* SPDX-License-Identifier: MIT */
/* Changes between two snapshots, or during one, and what the stat cache makes of them. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/snapshot.h"
#include "tests/unit/store_fixture.h"

enum { LATER_S = 10 }; // longer than the time in which a change counts as too recent

/* Takes a snapshot as if it were later, so that all present files count as settled. */
static git_oid take_later(struct place *place, const git_oid *base)
{
	return place_take_as(
		place, (struct snapshot_request){.base = base, .clock_offset_s = LATER_S});
}

static void assert_content(
	struct place *place, const git_oid *tree, const char *name, const char *expected)
{
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), tree);
	snprintf(script, sizeof(script), "git --git-dir=../state/store show %s:%s", hex, name);
	char *said = place_ask(place, script);
	assert_string_equal(said, expected);
	free(said);
}

/* Writes new content of the same size, and sets back the old time of modification. */
static void change_secretly(struct place *place, const char *name, const char *content)
{
	struct stat status;
	const char *path = place_path(place, name);
	assert_int_equal(stat(path, &status), 0);
	place_write(place, name, content);
	struct timespec times[] = {status.st_atim, status.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_an_unchanged_tree_is_not_read_again(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; echo 1 >a; echo 2 >d/b; ln -s a l");
	git_oid first = take_later(place, NULL);
	assert_int_equal(place->last.read_files, 3);
	git_oid second = take_later(place, &first);
	assert_int_equal(place->last.read_files, 0);
	assert_memory_equal(&first, &second, sizeof(first));
	place_run(place, "echo 3 >d/b");
	git_oid third = take_later(place, &first);
	assert_int_equal(place->last.read_files, 1);
	assert_content(place, &third, "d/b", "3\n");
}

static void test_a_change_with_the_old_size_and_time_is_seen(void **state)
{
	struct place *place = *state;
	place_write(place, "a", "one");
	git_oid first = take_later(place, NULL);
	take_later(place, &first);
	assert_int_equal(place->last.read_files, 0);
	change_secretly(place, "a", "two");
	git_oid second = take_later(place, &first);
	assert_content(place, &second, "a", "two");
}

static void test_a_change_in_the_same_tick_is_seen(void **state)
{
	struct place *place = *state;
	place_write(place, "a", "000");
	for (int i = 0; i < 100; i++) {
		char content[8];
		snprintf(content, sizeof(content), "%03d", i);
		change_secretly(place, "a", content);
		git_oid tree = place_take(place, NULL);
		char next[8];
		snprintf(next, sizeof(next), "%03d", i + 500);
		change_secretly(place, "a", next);
		git_oid after = place_take(place, &tree);
		assert_content(place, &after, "a", next);
	}
}

static void test_a_time_in_the_future_is_not_trusted(void **state)
{
	struct place *place = *state;
	place_run(place, "echo 1 >a; echo 1 >b; touch -d '2100-01-01' b");
	git_oid tree = take_later(place, NULL);
	take_later(place, &tree);
	assert_int_equal(place->last.read_files, 1);
	struct snapshot_request request = {.base = &tree, .clock_offset_s = -3600};
	place_run(place, "echo 2 >a");
	place_take_as(place, request);
	place_take_as(place, request);
	assert_int_equal(place->last.read_files, 2);
}

static void test_another_file_of_the_same_name_size_and_time_is_seen(void **state)
{
	struct place *place = *state;
	place_run(place, "printf one >a; printf two >b; touch -d '2020-01-01' a b");
	git_oid first = take_later(place, NULL);
	place_run(place, "mv b a");
	git_oid second = take_later(place, &first);
	assert_content(place, &second, "a", "two");
	assert_paths(place, &second, "a\n");
}

static void test_kinds_change(void **state)
{
	struct place *place = *state;
	place_run(place, "echo 1 >f; mkdir d; echo 1 >d/x; ln -s f l; echo 1 >e; echo 1 >a.b; "
			 "mkdir a; echo >a/x");
	git_oid tree = take_later(place, NULL);
	place_run(place, "rm f l; mkdir f; echo 1 >f/y; rm -r d; echo 1 >d; echo 1 >l; chmod +x e; "
			 "rm -r a; echo 1 >a");
	tree = take_later(place, &tree);
	assert_tree(
		place, &tree, "100644 a\n100644 a.b\n100644 d\n100755 e\n100644 f/y\n100644 l\n");
	tree = take_later(place, &tree);
	assert_int_equal(place->last.read_files, 0);
}

static void test_a_damaged_cache_is_no_cache(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; echo 1 >d/a; echo 2 >b");
	git_oid first = take_later(place, NULL);
	static const char *const damages[] = {"truncate -s 100 $c", ": >$c", "truncate -s -1 $c",
		"printf X | dd of=$c bs=1 seek=200 conv=notrunc status=none",
		"head -c 5000 /dev/urandom >$c", "rm $c"};
	for (size_t i = 0; i < ARRAY_LENGTH(damages); i++) {
		char script[FIXTURE_PATH_MAX];
		snprintf(script, sizeof(script), "c=../state/store/cache/work; %s", damages[i]);
		place_run(place, script);
		git_oid tree = take_later(place, &first);
		assert_memory_equal(&tree, &first, sizeof(tree));
		assert_int_equal(place->last.read_files, 2);
	}
}

static void test_a_cache_whose_objects_are_gone_is_no_cache(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d; echo 1 >d/a; echo 2 >b");
	git_oid first = take_later(place, NULL);
	place_run(place, "rm -rf ../state/store/objects/??");
	git_oid tree = take_later(place, NULL);
	assert_memory_equal(&tree, &first, sizeof(tree));
	assert_content(place, &tree, "d/a", "1\n");
}

static void test_a_base_that_differs_from_the_cache_counts(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d e; echo 1 >d/a; echo 1 >d/b; echo 1 >e/c");
	git_oid all = take_later(place, NULL);
	place_run(place, "rm d/b; echo 'd/\ne/' >.gitignore");
	git_oid less = take_later(place, NULL);
	assert_paths(place, &less, ".gitignore\n");
	place_run(place, "echo 2 >d/b");
	git_oid tree = take_later(place, &all);
	assert_paths(place, &tree, ".gitignore\nd/a\nd/b\ne/c\n");
}

/* Root may read everything, so another user takes the snapshot. */
static void become_nobody(struct place *place)
{
	if (geteuid() == 0) {
		place_run(place, "chown -R 65534:65534 \"$PLACE\"");
		assert_int_equal(seteuid(65534), 0);
	}
}

static void test_what_cannot_be_read_stays_as_in_the_base(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p d/e; echo 1 >d/e/a; echo 1 >f; echo 1 >g; chmod 644 f");
	git_oid base = take_later(place, NULL);
	place_run(place, "echo 2 >d/e/a; echo 2 >f; echo 2 >g; echo 2 >new; chmod 0 d new f");
	become_nobody(place);
	git_oid tree = take_later(place, &base);
	git_oid again = take_later(place, &tree);
	assert_int_equal(seteuid(getuid()), 0);
	assert_non_null(strstr(place->last.note, "could not be read"));
	assert_memory_equal(&again, &tree, sizeof(tree));
	assert_paths(place, &tree, "d/e/a\nf\ng\n");
	assert_content(place, &tree, "d/e/a", "1\n");
	assert_content(place, &tree, "f", "1\n");
	assert_content(place, &tree, "g", "2\n");
	place_run(place, "chmod 755 d; chmod 644 f new");
	tree = take_later(place, &tree);
	assert_paths(place, &tree, "d/e/a\nf\ng\nnew\n");
	assert_content(place, &tree, "d/e/a", "2\n");
}

/* A writer that never rests until the test stops it. */
struct writer {
	const char *path;
	atomic_bool is_done;
};

static void *write_on(void *data)
{
	struct writer *writer = data;
	int fd = open(writer->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	while (!writer->is_done) {
		if (write(fd, "line\n", 5) != 5 || lseek(fd, 0, SEEK_END) > 1 << 20) {
			(void)!ftruncate(fd, 0);
		}
	}
	close(fd);
	return NULL;
}

static void test_a_file_that_changes_all_the_time_stops_nothing(void **state)
{
	struct place *place = *state;
	place_run(place, "echo 1 >a; echo line >log");
	git_oid base = take_later(place, NULL);
	char path[FIXTURE_PATH_MAX];
	snprintf(path, sizeof(path), "%.400s/log", place->root);
	struct writer writer = {.path = path};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, write_on, &writer), 0);
	for (int i = 0; i < 20; i++) {
		git_oid tree = place_take(place, &base);
		assert_paths(place, &tree, "a\nlog\n");
	}
	writer.is_done = true;
	pthread_join(thread, NULL);
	git_oid tree = place_take(place, &base);
	char *said = place_ask(place, "cat log");
	assert_content(place, &tree, "log", said);
	free(said);
}

/* One of two brokers on the workspace, with its own store and thread. */
struct broker {
	struct place *place;
	git_oid tree;
	bool is_good;
};

static void *take_in_thread(void *data)
{
	struct broker *broker = data;
	struct store store;
	struct snapshot snapshot;
	struct error err;
	struct snapshot_request request = {
		.root = broker->place->root, .home = broker->place->folder, .cache = "shared"};
	broker->is_good = store_open(&store, broker->place->store_path, 0, &err);
	for (int i = 0; broker->is_good && i < 10; i++) {
		broker->is_good = snapshot_take(&store, &request, &snapshot, &err);
		broker->tree = snapshot.tree;
	}
	store_close(&store);
	return NULL;
}

static void test_two_may_take_snapshots_of_one_root_at_once(void **state)
{
	struct place *place = *state;
	struct broker brokers[2] = {{.place = place}, {.place = place}};
	pthread_t threads[2];
	place_run(place, "git init -q; echo '*.o' >.gitignore; mkdir d; for i in $(seq 1 50); do "
			 "echo $i >d/$i; echo $i >d/$i.o; done; git add .gitignore d/1");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, take_in_thread, &brokers[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_true(brokers[i].is_good);
	}
	git_oid tree = place_take(place, NULL);
	assert_memory_equal(&brokers[0].tree, &tree, sizeof(tree));
	assert_memory_equal(&brokers[1].tree, &tree, sizeof(tree));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_an_unchanged_tree_is_not_read_again),
		TEST(test_a_change_with_the_old_size_and_time_is_seen),
		TEST(test_a_change_in_the_same_tick_is_seen),
		TEST(test_a_time_in_the_future_is_not_trusted),
		TEST(test_another_file_of_the_same_name_size_and_time_is_seen),
		TEST(test_kinds_change),
		TEST(test_a_damaged_cache_is_no_cache),
		TEST(test_a_cache_whose_objects_are_gone_is_no_cache),
		TEST(test_a_base_that_differs_from_the_cache_counts),
		TEST(test_what_cannot_be_read_stays_as_in_the_base),
		TEST(test_a_file_that_changes_all_the_time_stops_nothing),
		TEST(test_two_may_take_snapshots_of_one_root_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
