/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/delta_impl.h"
#include "tests/unit/store_fixture.h"

enum { BIG_FILE_BYTES = 50000, SIZE = 300000, VERSIONS = 70 };

static const struct store_entry nothing = {.mode = ENTRY_NONE};

/* A file, and its earlier version. */
struct file {
	char *bytes;
	size_t len;
	uint64_t random;
};

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

/* The same numbers in each run (xorshift). */
static uint64_t draw(struct file *file, uint64_t below)
{
	file->random ^= file->random << 13;
	file->random ^= file->random >> 7;
	file->random ^= file->random << 17;
	return (file->random >> 8) % below;
}

static void fill(struct file *file, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		file->bytes[at + i] = (char)draw(file, 256);
	}
}

static void file_init(struct file *file)
{
	*file = (struct file){.bytes = malloc(2 * SIZE), .len = SIZE, .random = 88172645463325252U};
	assert_non_null(file->bytes);
	fill(file, 0, SIZE);
}

static void file_copy(struct file *to, const struct file *from)
{
	*to = *from;
	to->bytes = malloc(2 * SIZE);
	assert_non_null(to->bytes);
	memcpy(to->bytes, from->bytes, from->len);
}

static int write_file(struct place *place, const struct file *file)
{
	struct error err;
	int fd = open(place_path(place, "f"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd_write_all(fd, (struct span){file->bytes, file->len}, &err));
	return fd;
}

static struct store_entry put_after(
	struct place *place, const struct file *file, const struct store_before *before)
{
	struct error err;
	struct store_entry entry;
	struct stat status;
	int fd ATTR_CLEANUP(fd_cleanup) = write_file(place, file);
	assert_int_equal(fstat(fd, &status), 0);
	if (!store_put_version(&place->store, fd, &status, before, &entry, &err)) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(entry.mode, ENTRY_BIG);
	return entry;
}

static struct store_entry put(
	struct place *place, const struct file *file, const struct store_entry *before)
{
	return put_after(place, file, &(struct store_before){.entry = *before});
}

static void assert_content(
	struct place *place, const struct store_entry *entry, const struct file *file)
{
	struct error err;
	uint64_t size = 0;
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(place_path(place, "out"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (!store_copy_out(&place->store, entry, fd, &err)) {
		fail_msg("%s", err.text);
	}
	assert_true(store_has(&place->store, entry));
	assert_true(store_size(&place->store, entry, &size, &err));
	assert_int_equal(size, file->len);
	char *read = malloc(file->len + 1);
	assert_int_equal(pread(fd, read, file->len + 1, 0), file->len);
	assert_memory_equal(read, file->bytes, file->len);
	free(read);
}

static size_t stored(struct place *place, const char *folder, const char *what)
{
	char script[FIXTURE_PATH_MAX];
	snprintf(script, sizeof(script),
		"find ../state/store/%s -type f -printf '%s\\n' | awk '{ n += $1 } END { print n + "
		"0 }'",
		folder, what);
	char *said = place_ask(place, script);
	size_t number = strtoul(said, NULL, 10);
	free(said);
	return number;
}

static size_t bytes_of(struct place *place)
{
	return stored(place, "big", "%s") + stored(place, "delta", "%s");
}

static void test_a_version_takes_what_is_new_in_it(void **state)
{
	struct place *place = *state;
	struct file file;
	file_init(&file);
	struct store_entry first = put(place, &file, &nothing);
	assert_int_equal(bytes_of(place), SIZE);
	for (size_t at = 1000; at < SIZE; at += SIZE / 4) {
		fill(&file, at, 300);
	}
	struct store_entry second = put(place, &file, &first);
	assert_in_range(bytes_of(place), SIZE + 4 * 290, SIZE + 4 * 300 + 1000);
	assert_content(place, &second, &file);
	struct store_entry again = put(place, &file, &nothing);
	assert_true(store_entry_equal(&again, &second));
	assert_in_range(bytes_of(place), SIZE, SIZE + 4 * 300 + 1000);
	free(file.bytes);
}

/* Bytes are written over, put in, taken out, put at the end, moved, and made zeros. */
static void edit(struct file *file)
{
	size_t at = draw(file, file->len - 60000);
	size_t len = 1 + draw(file, 5000);
	char *here = file->bytes + at;
	switch (draw(file, 6)) {
	case 0:
		fill(file, at, len);
		break;
	case 1:
		memmove(here + len, here, file->len - at);
		fill(file, at, len);
		file->len += len;
		break;
	case 2:
		memmove(here, here + len, file->len - at - len);
		file->len -= len;
		break;
	case 3:
		fill(file, file->len, len);
		file->len += len;
		break;
	case 4:
		memmove(file->bytes, here, 50000);
		break;
	default:
		memset(here, 0, len);
	}
}

static void test_many_versions_are_what_they_were(void **state)
{
	struct place *place = *state;
	struct file files[VERSIONS];
	struct store_entry entries[VERSIONS];
	file_init(&files[0]);
	entries[0] = put(place, &files[0], &nothing);
	for (size_t i = 1; i < VERSIONS; i++) {
		file_copy(&files[i], &files[i - 1]);
		edit(&files[i]);
		entries[i] = put(place, &files[i], &entries[i - 1]);
	}
	assert_in_range(bytes_of(place), SIZE, 6 * SIZE);
	for (size_t i = 0; i < VERSIONS; i++) {
		assert_content(place, &entries[i], &files[i]);
		free(files[i].bytes);
	}
}

/* Each version adds some bytes that all later ones have, too: one part for each version. */
static void test_no_version_needs_many_parts(void **state)
{
	struct place *place = *state;
	struct file file;
	file_init(&file);
	struct store_entry entry = put(place, &file, &nothing);
	for (size_t i = 0; i < VERSIONS; i++) {
		fill(&file, 4000 * i, 100);
		entry = put(place, &file, &entry);
	}
	assert_content(place, &entry, &file);
	assert_in_range(bytes_of(place), SIZE, 3 * SIZE);
	assert_int_equal(stored(place, "delta", "1"), VERSIONS);
	char *parts = place_ask(place,
		"for f in ../state/store/delta/*/*; do od -An -tu4 -j12 -N4 $f; done | sort -n | "
		"tail -n 1");
	assert_in_range(strtoul(parts, NULL, 10), 60, 64);
	free(parts);
	free(file.bytes);
}

/* No block is as it was before. */
static void test_changes_in_each_block_are_found(void **state)
{
	struct place *place = *state;
	struct file file;
	file_init(&file);
	struct store_entry first = put(place, &file, &nothing);
	for (size_t at = 0; at < SIZE; at += 1000) {
		fill(&file, at, 4);
	}
	struct store_entry second = put(place, &file, &first);
	assert_int_equal(stored(place, "delta", "1"), 1);
	assert_in_range(stored(place, "big", "%s"), SIZE, SIZE + SIZE / 1000 * 4);
	assert_content(place, &second, &file);
	free(file.bytes);
}

static void test_what_has_little_in_common_is_whole(void **state)
{
	struct place *place = *state;
	struct file file;
	file_init(&file);
	struct store_entry first = put(place, &file, &nothing);
	fill(&file, 0, SIZE / 2 + 100);
	struct store_entry second = put(place, &file, &first);
	assert_int_equal(stored(place, "delta", "1"), 0);
	assert_int_equal(stored(place, "big", "%s"), 2 * SIZE);
	file.len = SIZE / 4; // nothing else needs the older one
	put(place, &file, &second);
	assert_int_equal(stored(place, "delta", "1"), 0);
	free(file.bytes);
}

/* With these numbers, all small sums belong into the first slot. */
static void test_sums_in_one_slot_take_few_probes(void **state)
{
	enum { SUMS = 1000 };
	struct delta_blocks blocks;
	uint32_t number = 0;
	delta_blocks_init(&blocks, SIZE);
	blocks.multiplier = blocks.spread = 1;
	for (uint32_t i = 0; i < SUMS; i++) {
		delta_blocks_add(&blocks, i, i + 1);
	}
	assert_in_range(blocks.probes, SUMS, SUMS * DELTA_PROBES_MAX);
	blocks.probes = 0;
	assert_true(delta_blocks_find(&blocks, DELTA_PROBES_MAX, &number));
	assert_int_equal(number, DELTA_PROBES_MAX - 1);
	assert_int_equal(blocks.probes, DELTA_PROBES_MAX);
	assert_false(delta_blocks_find(&blocks, DELTA_PROBES_MAX + 1, &number));
	assert_false(delta_blocks_find(&blocks, SUMS + 1, &number));
	assert_int_equal(blocks.probes, 3 * DELTA_PROBES_MAX);
	delta_blocks_finish(&blocks);
}

/* Random each time, and odd, so that nobody can make blocks for one slot. */
static void test_the_numbers_of_the_sums_are_random(void **state)
{
	struct delta_blocks blocks[2];
	char bytes[DELTA_BLOCK_MIN + 1] = "abc";
	for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++) {
		delta_blocks_init(&blocks[i], SIZE);
		assert_int_equal(blocks[i].multiplier & 1, 1);
		assert_int_equal(blocks[i].spread & 1, 1);
		uint64_t sum = delta_blocks_sum(&blocks[i], bytes);
		assert_true(delta_blocks_roll(&blocks[i], sum, bytes) ==
			    delta_blocks_sum(&blocks[i], bytes + 1));
		delta_blocks_finish(&blocks[i]);
	}
	assert_true(blocks[0].multiplier != blocks[1].multiplier);
	assert_true(blocks[0].spread != blocks[1].spread);
}

/* Whether a delta is made with this limit of work, and the work that it took. */
static bool make(struct place *place, const struct file *file, const struct store_entry *before,
	uint64_t work_max, uint64_t *out_work)
{
	struct error err;
	git_oid content = {.id = {1}}, older;
	bool made = false;
	int fd ATTR_CLEANUP(fd_cleanup) = write_file(place, file);
	store_big_content(before, &older);
	const struct delta_request request = {.fd = fd,
		.size = file->len,
		.content = &content,
		.before = &older,
		.work_max = work_max};
	assert_true(delta_make(&place->store, &request, &made, out_work, &err));
	return made;
}

static void test_too_much_work_makes_no_delta(void **state)
{
	struct place *place = *state;
	struct file file;
	uint64_t needed = 0, work = 0;
	file_init(&file);
	struct store_entry first = put(place, &file, &nothing);
	memmove(file.bytes + 5000, file.bytes, SIZE);
	fill(&file, 0, 5000);
	file.len += 5000;
	assert_true(make(place, &file, &first, 0, &needed));
	assert_in_range(needed, 2 * SIZE, 8 * SIZE);
	place_run(place, "rm -r ../state/store/delta/*");
	assert_false(make(place, &file, &first, SIZE, &work));
	assert_in_range(work, SIZE, needed);
	assert_int_equal(stored(place, "delta", "1"), 0);
	free(file.bytes);
}

/* Files with one hole: if they were compared, that would take no work. */
static void test_what_is_very_large_is_whole(void **state)
{
	struct place *place = *state;
	struct error err;
	const uint64_t most = (uint64_t)DELTA_SIZE_MAX_GIB << 30;
	const uint64_t sizes[][2] = {{most, most + 1}, {most + 1, most}, {most, most}};
	git_oid content = {.id = {1}}, older = {.id = {2}};
	char path[OBJECT_PATH_SIZE], script[FIXTURE_PATH_MAX];
	big_path(&older, path);
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		bool made = false;
		uint64_t work = 0;
		snprintf(script, sizeof(script),
			"f=../state/store/%s; mkdir -p ${f%%/*} && : >f && truncate -s %" PRIu64
			" $f && truncate -s %" PRIu64 " f",
			path, sizes[i][0], sizes[i][1]);
		place_run(place, script);
		int fd ATTR_CLEANUP(fd_cleanup) = open(place_path(place, "f"), O_RDWR | O_CLOEXEC);
		const struct delta_request request = {
			.fd = fd, .size = sizes[i][1], .content = &content, .before = &older};
		assert_true(delta_make(&place->store, &request, &made, &work, &err));
		assert_int_equal(made, i == 2);
		assert_int_equal(work, 0);
	}
}

static void test_cancelled_it_is_stored_whole(void **state)
{
	struct place *place = *state;
	const atomic_bool is_cancelled = true;
	struct file file;
	file_init(&file);
	struct store_before before = {put(place, &file, &nothing), &is_cancelled};
	fill(&file, 1000, 300);
	struct store_entry second = put_after(place, &file, &before);
	assert_int_equal(stored(place, "delta", "1"), 0);
	assert_int_equal(stored(place, "big", "%s"), 2 * SIZE);
	assert_content(place, &second, &file);
	free(file.bytes);
}

static void test_a_hole_stays_one(void **state)
{
	struct place *place = *state;
	struct error err;
	struct stat status;
	struct store_entry entries[2];
	place_run(place, "seq 1 30000 >f; truncate -s 20M f; seq 1 40000 >>f");
	for (size_t i = 0; i < ARRAY_LENGTH(entries); i++) {
		int fd ATTR_CLEANUP(fd_cleanup) = open(place_path(place, "f"), O_RDWR | O_CLOEXEC);
		assert_int_equal(fstat(fd, &status), 0);
		const struct store_before before = {.entry = i ? entries[0] : nothing};
		assert_true(
			store_put_version(&place->store, fd, &status, &before, &entries[i], &err));
		place_run(place, "echo more >>f");
	}
	place_run(place, "truncate -s -5 f");
	assert_int_equal(stored(place, "delta", "1"), 1);
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(place_path(place, "out"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(store_copy_out(&place->store, &entries[1], fd, &err));
	place_run(place, "cmp f out; [ $(stat -c %b out) -lt 2048 ]");
}

/* No name leads to anything, so everything may go except new objects. */
static void test_a_delta_without_a_part_is_none(void **state)
{
	struct place *place = *state;
	struct error err;
	struct file file;
	file_init(&file);
	struct store_entry first = put(place, &file, &nothing);
	fill(&file, 1000, 300);
	struct store_entry second = put(place, &file, &first);
	place_run(place, "find ../state/store/big -type f -size +100k -delete");
	assert_false(store_has(&place->store, &second));
	int fd ATTR_CLEANUP(fd_cleanup) = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_false(store_copy_out(&place->store, &second, fd, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	struct store_entry again = put(place, &file, &second);
	assert_true(store_entry_equal(&again, &second));
	assert_content(place, &second, &file);
	free(file.bytes);
}

static void keep(struct place *place, const char *name, const git_oid *tree)
{
	struct error err;
	git_oid commit;
	assert_true(store_keep(&place->store, name, tree, NULL, "x", &commit, &err));
}

static bool prune(struct place *place, struct error *err)
{
	struct store_pruned pruned;
	place_run(place, "rm -f ../state/store/cache/*; "
			 "find ../state/store/objects ../state/store/big ../state/store/delta "
			 "-type f -exec touch -d '-1 hour' {} +");
	return store_prune(&place->store, 1000, 0, &pruned, err);
}

static void test_pruning_keeps_what_a_delta_needs_and_no_more(void **state)
{
	struct place *place = *state;
	struct error err;
	git_oid trees[3];
	place_run(place, "seq 1 100000 >f");
	for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
		char script[128], name[32];
		trees[i] = place_take(place, NULL);
		snprintf(name, sizeof(name), "checkpoints/%zu", i);
		keep(place, name, &trees[i]);
		snprintf(script, sizeof(script), "cp f f%zu; sed -i 50%zu00s/$/x%zu/ f", i, i, i);
		place_run(place, script);
		place_run(place, "mv f[0-9] ..");
	}
	assert_int_equal(stored(place, "delta", "1"), 2);
	assert_true(prune(place, &err));
	assert_int_equal(stored(place, "big", "1"), 3);
	assert_true(store_forget(&place->store, "checkpoints/0", &err));
	assert_true(store_forget(&place->store, "checkpoints/1", &err));
	assert_true(prune(place, &err));
	assert_int_equal(stored(place, "delta", "1"), 1);
	assert_int_equal(stored(place, "big", "1"), 3);
	struct store_entry last;
	char hex[GIT_OID_HEXSZ + 1], script[FIXTURE_PATH_MAX];
	place->store.git->oid_tostr(hex, sizeof(hex), &trees[2]);
	snprintf(script, sizeof(script), "git -C ../state/store rev-parse %s:f | tr -d '\\n'", hex);
	char *id = place_ask(place, script);
	last.mode = ENTRY_BIG;
	assert_int_equal(place->store.git->oid_fromstr(&last.id, id), 0);
	free(id);
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(place_path(place, "out"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(store_copy_out(&place->store, &last, fd, &err));
	place_run(place, "cmp out ../f2");
	place_run(place, "for f in ../state/store/delta/*/*; do cp $f ../delta; : >$f; done");
	assert_false(prune(place, &err));
	assert_int_equal(stored(place, "big", "1"), 3);
	place_run(place, "for f in ../state/store/delta/*/*; do cp ../delta $f; done");
	assert_true(store_forget(&place->store, "checkpoints/2", &err));
	assert_true(prune(place, &err));
	assert_int_equal(bytes_of(place), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_version_takes_what_is_new_in_it),
		TEST(test_many_versions_are_what_they_were),
		TEST(test_no_version_needs_many_parts),
		TEST(test_changes_in_each_block_are_found),
		TEST(test_what_has_little_in_common_is_whole),
		cmocka_unit_test(test_sums_in_one_slot_take_few_probes),
		cmocka_unit_test(test_the_numbers_of_the_sums_are_random),
		TEST(test_too_much_work_makes_no_delta),
		TEST(test_what_is_very_large_is_whole),
		TEST(test_cancelled_it_is_stored_whole),
		TEST(test_a_hole_stays_one),
		TEST(test_a_delta_without_a_part_is_none),
		TEST(test_pruning_keeps_what_a_delta_needs_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
