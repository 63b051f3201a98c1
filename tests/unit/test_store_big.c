/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/store.h"
#include "tests/unit/store_fixture.h"

enum { BIG_FILE_BYTES = 1 << 20, SPARSE_MIB = 200 };

static const struct store_before nothing = {.entry = {.mode = ENTRY_NONE}};

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

static struct store_entry put(struct place *place, const char *name)
{
	struct error err;
	struct store_entry entry;
	struct stat status;
	int fd ATTR_CLEANUP(fd_cleanup) = open(place_path(place, name), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &status), 0);
	if (!store_put_file(&place->store, fd, &status, &entry, &err)) {
		fail_msg("%s", err.text);
	}
	return entry;
}

static void copy_out(struct place *place, const struct store_entry *entry, const char *name)
{
	struct error err;
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(place_path(place, name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (!store_copy_out(&place->store, entry, fd, &err)) {
		fail_msg("%s", err.text);
	}
}

static long long blocks_of(const char *path)
{
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	return (long long)status.st_blocks * 512;
}

static long peak_kib(void)
{
	char line[256];
	long kib = 0;
	FILE *file = fopen("/proc/self/status", "re");
	while (kib == 0 && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "VmHWM:", strlen("VmHWM:")) == 0) {
			kib = strtol(line + strlen("VmHWM:"), NULL, 10);
		}
	}
	fclose(file);
	return kib;
}

static void test_holes_stay_holes_and_memory_small(void **state)
{
	struct place *place = *state;
	long before = peak_kib();
	char script[200];
	snprintf(script, sizeof(script),
		"truncate -s %dM s; printf x | dd of=s bs=1 seek=90000001 "
		"conv=notrunc status=none; printf y >>s",
		SPARSE_MIB);
	place_run(place, script);
	struct store_entry entry = put(place, "s");
	assert_int_equal(entry.mode, ENTRY_BIG);
	copy_out(place, &entry, "copy");
	place_run(place, "cmp s copy");
	assert_true(blocks_of(place_path(place, "copy")) < 16 << 20);
	char *stored = place_ask(place, "find $PLACE/state/store/big -type f | tr -d '\\n'");
	assert_true(blocks_of(stored) < 16 << 20);
	free(stored);
	assert_true(peak_kib() - before < 48 << 10);
}

static void test_the_id_is_gits(void **state)
{
	struct place *place = *state;
	place_run(place, "seq 1 300000 >b");
	struct store_entry entry = put(place, "b");
	char *said = place_ask(place, "git hash-object b");
	git_oid wanted;
	said[strcspn(said, "\n")] = '\0';
	assert_int_equal(place->store.git->oid_fromstr(&wanted, said), 0);
	struct store_entry expected = store_big_entry(&wanted, false);
	assert_true(store_entry_equal(&entry, &expected));
	free(said);
}

/* Puts what `cat` prints, like a stream from a runtime. */
static bool put_stream(struct place *place, const char *name, uint64_t size,
	struct store_entry *entry, struct error *err)
{
	int fds[2];
	assert_true(fd_pipe(fds, err));
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execlp("cat", "cat", place_path(place, name), (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	struct extents all;
	extents_of_all(&all, size);
	bool good = store_put_big(&place->store, fds[0], &all, &nothing, entry, err);
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return good;
}

static size_t big_count(struct place *place)
{
	char *said = place_ask(place, "find ../state/store/big ../state/store/tmp -type f | wc -l");
	size_t count = strtoul(said, NULL, 10);
	free(said);
	return count;
}

static void test_a_stream_is_taken_as_it_is_where_there_is_as_much_as_was_announced(void **state)
{
	struct place *place = *state;
	struct error err;
	place_run(place, "seq 1 300000 >b; seq 1 299999 >short; (cat b; echo more) >long; "
			 "sed s/9/8/ b >other");
	struct store_entry entry = put(place, "b");
	uint64_t size;
	assert_true(store_size(&place->store, &entry, &size, &err));
	place_run(place, "rm -rf ../state/store/big/*");
	assert_false(put_stream(place, "short", size, &entry, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_int_equal(big_count(place), 0);
	struct store_entry announced = entry;
	assert_true(put_stream(place, "long", size, &entry, &err));
	assert_true(store_entry_equal(&entry, &announced));
	copy_out(place, &entry, "copy");
	place_run(place, "cmp b copy");
	assert_true(put_stream(place, "other", size, &entry, &err));
	assert_false(store_entry_equal(&entry, &announced));
	copy_out(place, &entry, "copy");
	place_run(place, "cmp other copy");
}

/* A file with data in the middle and a hole at its end, and a file with no data. */
static const char make_sparse[] =
	"truncate -s 20M s n; seq 1 30000 | dd of=s bs=64k seek=77 conv=notrunc status=none";

static void test_only_the_data_of_a_sparse_file_is_sent_and_taken(void **state)
{
	struct place *place = *state;
	static const struct {
		const char *name;
		size_t count;
		uint64_t bytes;
	} files[] = {{"s", 1, 3 * EXTENT_BLOCK}, {"n", 0, 0}};
	place_run(place, make_sparse);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		struct error err;
		struct extents extents;
		struct stat status;
		struct store_entry entry = put(place, files[i].name);
		assert_true(store_big_extents(&place->store, &entry, &extents, &err));
		assert_int_equal(extents.count, files[i].count);
		assert_int_equal(extents_bytes(&extents), files[i].bytes);
		int fd ATTR_CLEANUP(fd_cleanup) = open(
			place_path(place, "sent"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		assert_true(store_send_big(&place->store, &entry, &extents, fd, &err));
		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(status.st_size, files[i].bytes);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		place_run(place, "rm -rf ../state/store/big/*");
		assert_true(store_put_big(&place->store, fd, &extents, &nothing, &entry, &err));
		copy_out(place, &entry, "copy");
		assert_true(blocks_of(place_path(place, "copy")) <= (long long)files[i].bytes);
		char script[64];
		snprintf(script, sizeof(script), "cmp %s copy", files[i].name);
		place_run(place, script);
	}
}

static void test_zeros_that_come_are_holes_here(void **state)
{
	struct place *place = *state;
	struct error err;
	place_run(place, make_sparse);
	place_run(place, "(cat s; echo end) >dense");
	struct store_entry entry = put(place, "dense");
	place_run(place, "rm -rf ../state/store/big/*");
	assert_true(put_stream(place, "dense", (20 << 20) + 4, &entry, &err));
	char *stored = place_ask(place, "find $PLACE/state/store/big -type f | tr -d '\\n'");
	assert_true(blocks_of(stored) <= 6 * EXTENT_BLOCK);
	free(stored);
	copy_out(place, &entry, "copy");
	place_run(place, "cmp dense copy");
}

static void test_data_in_another_place_is_another_file(void **state)
{
	struct place *place = *state;
	struct error err;
	struct extents extents;
	place_run(place, make_sparse);
	struct store_entry entry = put(place, "s"), announced = entry;
	assert_true(store_big_extents(&place->store, &entry, &extents, &err));
	place_run(place, "rm -rf ../state/store/big/*");
	extents.items[0].offset += EXTENT_BLOCK;
	int fd ATTR_CLEANUP(fd_cleanup) = open(place_path(place, "s"), O_RDWR | O_CLOEXEC);
	off_t data = 77 * EXTENT_BLOCK, end = (20 << 20) - 9;
	assert_int_equal(lseek(fd, end, SEEK_SET), end);
	assert_false(store_put_big(&place->store, fd, &extents, &nothing, &entry, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_int_equal(big_count(place), 0);
	assert_int_equal(lseek(fd, data, SEEK_SET), data);
	assert_true(store_put_big(&place->store, fd, &extents, &nothing, &entry, &err));
	assert_false(store_entry_equal(&entry, &announced));
	copy_out(place, &entry, "copy");
	place_run(place, "dd if=s bs=64k skip=77 count=3 status=none >one;"
			 "dd if=copy bs=64k skip=78 count=3 status=none | cmp - one;"
			 "test $(stat -c %s copy) = $(stat -c %s s)");
}

static void test_a_change_while_reading_is_told(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_entry entry;
	struct stat status;
	static const char *const names[] = {"small", "streamed", "big"};
	place_run(place, "echo 1 >small; seq 1 160000 >big; seq 1 150000 >streamed");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *path = place_path(place, names[i]);
		int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(write(fd, "more", 4), 4);
		assert_false(store_put_file(&place->store, fd, &status, &entry, &err));
		assert_int_equal(err.code, ERROR_UNAVAILABLE);
		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(ftruncate(fd, 1), 0);
		assert_false(store_put_file(&place->store, fd, &status, &entry, &err));
		assert_int_equal(err.code, ERROR_UNAVAILABLE);
		assert_int_equal(fstat(fd, &status), 0);
		assert_true(store_put_file(&place->store, fd, &status, &entry, &err));
	}
	char *left = place_ask(place, "ls ../state/store/tmp");
	assert_string_equal(left, "");
	free(left);
}

/* Otherwise the store would have a log that is written all the time three times after each sync. */
static void test_what_changes_while_it_is_read_is_not_kept(void **state)
{
	struct place *place = *state;
	static const char count[] =
		"find ../state/store/objects ../state/store/big -type f | wc -l";
	static const struct {
		const char *name;
		uint64_t big_file_bytes;
	} files[] = {{"whole", 16 << 20}, {"streamed", 16 << 20}, {"big", 1 << 20}};
	place_run(place, "echo 1 >whole; seq 1 800000 >streamed; seq 1 160000 >big");
	char *before = place_ask(place, count);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		struct error err;
		struct store_entry entry;
		struct stat status;
		int fd ATTR_CLEANUP(fd_cleanup) =
			open(place_path(place, files[i].name), O_RDWR | O_CLOEXEC);
		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(pwrite(fd, "x", 1, 0), 1);
		place->store.big_file_bytes = files[i].big_file_bytes;
		assert_false(store_put_file(&place->store, fd, &status, &entry, &err));
		assert_int_equal(err.code, ERROR_UNAVAILABLE);
	}
	char *after = place_ask(place, count);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_holes_stay_holes_and_memory_small),
		TEST(test_the_id_is_gits),
		TEST(test_a_stream_is_taken_as_it_is_where_there_is_as_much_as_was_announced),
		TEST(test_only_the_data_of_a_sparse_file_is_sent_and_taken),
		TEST(test_zeros_that_come_are_holes_here),
		TEST(test_data_in_another_place_is_another_file),
		TEST(test_a_change_while_reading_is_told),
		TEST(test_what_changes_while_it_is_read_is_not_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
