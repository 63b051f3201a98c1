/* SPDX-License-Identifier: MIT */
#include "sync/store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/store_fixture.h"

/* The output of copy_out, as text. */
static char *content_of(struct store *store, const struct store_entry *entry)
{
	struct error err;
	int fd = memfd_create("out", MFD_CLOEXEC);
	if (!store_copy_out(store, entry, fd, &err)) {
		fail_msg("%s", err.text);
	}
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	char *text = mem_alloc_zero((size_t)status.st_size + 1);
	assert_int_equal(pread(fd, text, (size_t)status.st_size, 0), status.st_size);
	close(fd);
	return text;
}

static struct store_entry put(struct place *place, const char *name)
{
	struct error err;
	struct store_entry entry;
	struct stat status;
	int fd = open(place_path(place, name), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	if (!store_put_file(&place->store, fd, &status, &entry, &err)) {
		fail_msg("%s", err.text);
	}
	close(fd);
	return entry;
}

static void assert_same_id(struct place *place, const git_oid *id, const char *script)
{
	char hex[GIT_OID_HEXSZ + 1];
	char *said = place_ask(place, script);
	said[strcspn(said, "\n")] = '\0';
	place->store.git->oid_tostr(hex, sizeof(hex), id);
	assert_string_equal(said, hex);
	free(said);
}

static void test_a_store_is_private_and_a_git_repository(void **state)
{
	struct place *place = *state;
	struct stat status;
	assert_int_equal(stat(place->store_path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	place_run(place, "git --git-dir=../state/store fsck --strict");
}

static void test_bytes_come_back_as_they_went_in(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_entry entry = {.mode = ENTRY_FILE};
	uint64_t size;
	assert_true(store_put_bytes(&place->store, SPAN_LITERAL("a\r\nb"), &entry.id, &err));
	assert_same_id(place, &entry.id, "printf 'a\\r\\nb' | git hash-object --stdin");
	char *text = content_of(&place->store, &entry);
	assert_string_equal(text, "a\r\nb");
	free(text);
	assert_true(store_has(&place->store, &entry));
	assert_true(store_size(&place->store, &entry, &size, &err));
	assert_int_equal(size, 4);
	entry.id.id[0] ^= 1;
	assert_false(store_has(&place->store, &entry));
}

static void test_no_bytes_are_bytes_too(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_entry entry = {.mode = ENTRY_FILE};
	assert_true(store_put_bytes(&place->store, (struct span){0}, &entry.id, &err));
	char *text = content_of(&place->store, &entry);
	assert_string_equal(text, "");
	free(text);
}

/* An object is written in blocks, many at a time; git must be able to read each length. */
static void test_every_length_can_be_read_by_git(void **state)
{
	static const size_t lengths[] = {
		1, 65534, 65535, 65536, 131070, 131071, 1300000, 1376235, 4 << 20};
	struct place *place = *state;
	struct error err;
	char *bytes = mem_alloc(4 << 20);
	for (size_t i = 0; i < 4 << 20; i++) {
		bytes[i] = (char)(i * 2654435761U >> 24);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
		struct store_entry entry = {.mode = ENTRY_FILE};
		struct span content = {bytes, lengths[i]};
		struct buf out;
		buf_init(&out, content.len);
		assert_true(store_put_bytes(&place->store, content, &entry.id, &err));
		assert_true(store_read(&place->store, &entry.id, content.len, &out, &err));
		assert_true(span_equals(buf_span(&out), content));
		buf_finish(&out);
	}
	free(bytes);
	char *found = place_ask(place, "cd ../state/store && git fsck --strict >/dev/null 2>&1 && "
				       "find objects -type f | wc -l");
	assert_string_equal(found, "10\n");
	free(found);
}

static void test_a_file_has_the_id_git_gives_it(void **state)
{
	struct place *place = *state;
	place_run(place, "printf 'x\\n' >small; seq 1 400000 >large; chmod +x large");
	struct store_entry small = put(place, "small");
	struct store_entry large = put(place, "large");
	assert_int_equal(small.mode, ENTRY_FILE);
	assert_int_equal(large.mode, ENTRY_EXECUTABLE);
	assert_same_id(place, &small.id, "git hash-object small");
	assert_same_id(place, &large.id, "git hash-object large");
	char *text = content_of(&place->store, &large);
	char *said = place_ask(place, "cat large");
	assert_string_equal(text, said);
	free(text);
	free(said);
}

static void reopen(struct place *place, uint64_t big_file_bytes)
{
	struct error err;
	store_close(&place->store);
	if (!store_open(&place->store, place->store_path, big_file_bytes, &err)) {
		fail_msg("%s", err.text);
	}
}

static void test_a_big_file_is_held_beside_the_objects(void **state)
{
	struct place *place = *state;
	reopen(place, 1000);
	place_run(place, "seq 1 100000 >big; chmod +x big; seq 1 50 >small");
	struct store_entry big = put(place, "big");
	assert_int_equal(big.mode, ENTRY_BIG);
	assert_true(store_entry_is_executable(&big));
	assert_int_equal(put(place, "small").mode, ENTRY_FILE);
	place_run(place, "chmod -x big");
	struct store_entry plain = put(place, "big");
	assert_false(store_entry_is_executable(&plain));
	assert_false(store_entry_equal(&plain, &big));
	git_oid a, b;
	store_big_content(&big, &a);
	store_big_content(&plain, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	place_run(place, "[ $(find ../state/store/big -type f | wc -l) = 1 ]");
	assert_true(store_has(&place->store, &big));
	uint64_t size;
	struct error err;
	assert_true(store_size(&place->store, &big, &size, &err));
	assert_int_equal(size, 588895);
	char *text = content_of(&place->store, &big);
	char *said = place_ask(place, "cat big");
	assert_string_equal(text, said);
	free(text);
	free(said);
}

static void test_names_are_kept_found_and_forgotten(void **state)
{
	struct place *place = *state;
	struct error err;
	git_oid first, second, found;
	struct store *store = &place->store;
	assert_true(store_keep(store, "base/one", &store_empty_tree, NULL, "one", &first, &err));
	assert_true(store_keep(store, "base/one", &store_empty_tree, &first, "two", &second, &err));
	reopen(place, 0);
	assert_true(store_find(store, "base/one", &found, &err));
	assert_memory_equal(&found, &store_empty_tree, sizeof(found));
	assert_same_id(
		place, &second, "git --git-dir=../state/store rev-parse acp-broker/base/one");
	place_run(place, "git --git-dir=../state/store fsck --strict");
	assert_true(store_keep_also(store, "base/two", "base/one", &err));
	assert_true(store_keep_also(store, "base/two", "base/one", &err));
	assert_true(store_forget(store, "base/one", &err));
	assert_same_id(
		place, &second, "git --git-dir=../state/store rev-parse acp-broker/base/two");
	assert_false(store_keep_also(store, "base/three", "base/one", &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_false(store_find(store, "base/three", &found, &err));
	assert_false(store_find(store, "base/one", &found, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_false(store_forget(store, "base/one", &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void test_a_bad_name_is_refused(void **state)
{
	struct place *place = *state;
	struct error err;
	git_oid id;
	static const char *const names[] = {"", "../x", "a..b", "a b", "a/", "x.lock", "a//b"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		assert_false(store_keep(
			&place->store, names[i], &store_empty_tree, NULL, "", &id, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
	}
}

static void test_reading_is_bounded(void **state)
{
	struct place *place = *state;
	struct error err;
	struct buf out;
	git_oid id;
	assert_true(store_put_bytes(&place->store, SPAN_LITERAL("12345"), &id, &err));
	buf_init(&out, 100);
	assert_false(store_read(&place->store, &id, 4, &out, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(out.len, 0);
	assert_true(store_read(&place->store, &id, 5, &out, &err));
	assert_true(span_is(buf_span(&out), "12345"));
	git_oid none = {{1}};
	assert_false(store_read(&place->store, &none, 5, &out, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	buf_finish(&out);
}

/* As on a full disk: a file may grow to this many bytes. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_write_that_fails_says_why(void **state)
{
	struct place *place = *state;
	struct error err;
	struct store_entry entry;
	struct stat status;
	place_run(place, "head -c 5M /dev/urandom >large");
	int fd = open(place_path(place, "large"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &status), 0);
	signal(SIGXFSZ, SIG_IGN);
	limit_files(4096);
	bool is_put = store_put_file(&place->store, fd, &status, &entry, &err);
	limit_files(RLIM_INFINITY);
	assert_false(is_put);
	assert_non_null(strstr(err.text, place->store_path));
	assert_non_null(strstr(err.text, "File too large"));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_store_is_private_and_a_git_repository),
		TEST(test_bytes_come_back_as_they_went_in),
		TEST(test_no_bytes_are_bytes_too),
		TEST(test_every_length_can_be_read_by_git),
		TEST(test_a_file_has_the_id_git_gives_it),
		TEST(test_a_big_file_is_held_beside_the_objects),
		TEST(test_names_are_kept_found_and_forgotten),
		TEST(test_a_bad_name_is_refused),
		TEST(test_reading_is_bounded),
		TEST(test_a_write_that_fails_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
