/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fd.h"
#include "sync/extents.h"

enum { BLOCK = EXTENT_BLOCK };

/* ---- of a file ---- */

/* An empty file of a size, in memory: its holes are pages. */
static int make_file(uint64_t size)
{
	int fd = memfd_create("extents", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void put(int fd, uint64_t offset)
{
	assert_int_equal(pwrite(fd, "x", 1, (off_t)offset), 1);
}

static void assert_extents(int fd, uint64_t size, const char *expected)
{
	char text[EXTENTS_TEXT_SIZE];
	struct extents extents;
	extents_of_file(&extents, fd, size);
	extents_format(&extents, text);
	assert_string_equal(text, expected);
	assert_int_equal(extents.size, size);
}

static void test_data_and_holes_are_found_in_blocks(void **state)
{
	uint64_t size = 100 * BLOCK + 5;
	int fd ATTR_CLEANUP(fd_cleanup) = make_file(size);
	assert_extents(fd, size, "");
	put(fd, 10 * BLOCK + 7);
	assert_extents(fd, size, "10 1");
	put(fd, 12 * BLOCK - 1);
	assert_extents(fd, size, "10 2");
	put(fd, 0);
	put(fd, size - 1);
	assert_extents(fd, size, "0 1 10 2 100 1");
	struct extents extents;
	extents_of_file(&extents, fd, size);
	assert_int_equal(extents_bytes(&extents), 3 * BLOCK + 5);
	assert_false(extents_are_all(&extents));
}

static void test_a_file_without_holes_is_one_part(void **state)
{
	uint64_t size = 3 * BLOCK - 1;
	struct extents extents;
	int fd ATTR_CLEANUP(fd_cleanup) = make_file(size);
	for (uint64_t at = 0; at < size; at += 4096) {
		put(fd, at);
	}
	assert_extents(fd, size, "0 3");
	extents_of_file(&extents, fd, size);
	assert_true(extents_are_all(&extents));
	extents_of_all(&extents, 0);
	assert_true(extents_are_all(&extents));
	assert_int_equal(extents.count, 0);
}

static void test_too_many_parts_are_joined(void **state)
{
	uint64_t size = 4ull * EXTENTS_MAX * BLOCK;
	struct extents extents;
	int fd ATTR_CLEANUP(fd_cleanup) = make_file(size);
	for (uint64_t at = 0; at < size / 2; at += 2 * BLOCK) {
		put(fd, at);
	}
	extents_of_file(&extents, fd, size);
	assert_int_equal(extents.count, EXTENTS_MAX);
	put(fd, size / 2 + 4 * BLOCK);
	extents_of_file(&extents, fd, size);
	assert_int_equal(extents.count, 2);
	assert_int_equal(extents.items[0].length, size / 2);
	assert_int_equal(extents.items[1].offset, size / 2 + 4 * BLOCK);
	assert_int_equal(extents.items[1].length, 2 * BLOCK);
}

/* A pipe has no holes: all of it is data. */
static void test_where_holes_cannot_be_asked_for_all_is_data(void **state)
{
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	assert_extents(fds[0], 5 * BLOCK, "0 5");
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

/* ---- from a sandbox ---- */

static bool read_text(
	struct extents *extents, const char *text, uint64_t size, char rest[8], struct error *err)
{
	int fds[2];
	memset(rest, 0, 8);
	assert_true(fd_pipe(fds, err));
	assert_true(fd_write_all(fds[1], span_of(text), err));
	fd_close(&fds[1]);
	bool good = extents_read(extents, fds[0], size, err);
	assert_true(read(fds[0], rest, 7) >= 0);
	fd_close(&fds[0]);
	return good;
}

static void test_what_a_sandbox_tells_is_read_and_no_more(void **state)
{
	struct extents extents;
	struct error err;
	char rest[8], text[EXTENTS_TEXT_SIZE];
	assert_true(
		read_text(&extents, "0 1\n3 2\n5 1\n9 1\n\n\n7 7\n", 9 * BLOCK + 3, rest, &err));
	assert_string_equal(rest, "\n7 7\n");
	extents_format(&extents, text);
	assert_string_equal(text, "0 1 3 2 5 1 9 1");
	assert_int_equal(extents.items[3].length, 3);
	assert_int_equal(extents_bytes(&extents), 4 * BLOCK + 3);
	assert_true(read_text(&extents, "\nx", 9 * BLOCK, rest, &err));
	assert_int_equal(extents.count, 0);
	assert_string_equal(rest, "x");
}

static void test_what_can_be_no_file_is_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} wrong[] = {
		{"0\n\n", "not two numbers"},
		{"0 1 2\n\n", "not two numbers"},
		{" 0 1\n\n", "not two numbers"},
		{"0  1\n\n", "not two numbers"},
		{"0 1 \n\n", "not two numbers"},
		{"-1 2\n\n", "not two numbers"},
		{"0 -1\n\n", "not two numbers"},
		{"0x1 1\n\n", "not two numbers"},
		{"0 0\n\n", "not two numbers"},
		{"1000000000000000 1\n\n", "not two numbers"},
		{"0 18446744073709551617\n\n", "not two numbers"},
		{"0 1000000000000000000000000000000000000000000", "too long"},
		{"0 11\n\n", "beyond its end"},
		{"10 1\n\n", "beyond its end"},
		{"999999999999999 999999999999999\n\n", "beyond its end"},
		{"1 2\n2 1\n\n", "overlap"},
		{"5 1\n1 1\n\n", "overlap"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		struct extents extents;
		struct error err;
		char rest[8];
		assert_false(read_text(&extents, wrong[i].text, 10 * BLOCK, rest, &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
		assert_non_null(strstr(err.text, wrong[i].words));
	}
}

static void test_what_is_cut_off_can_be_asked_for_again(void **state)
{
	static const char *const texts[] = {"", "0 1\n", "0 1"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct extents extents;
		struct error err;
		char rest[8];
		assert_false(read_text(&extents, texts[i], 10 * BLOCK, rest, &err));
		assert_int_equal(err.code, ERROR_UNAVAILABLE);
	}
}

static void test_there_are_only_so_many_parts(void **state)
{
	char text[EXTENTS_TEXT_SIZE] = "", rest[8];
	size_t length = 0;
	struct extents extents;
	struct error err;
	for (int i = 0; i <= EXTENTS_MAX; i++) {
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%d 1\n", 2 * i);
		if (i == EXTENTS_MAX - 1) {
			char all[EXTENTS_TEXT_SIZE];
			snprintf(all, sizeof(all), "%s\n", text);
			assert_true(read_text(&extents, all, 1ull << 40, rest, &err));
			assert_int_equal(extents.count, EXTENTS_MAX);
		}
	}
	assert_false(read_text(&extents, text, 1ull << 40, rest, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
	assert_non_null(strstr(err.text, "too many"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_and_holes_are_found_in_blocks),
		cmocka_unit_test(test_a_file_without_holes_is_one_part),
		cmocka_unit_test(test_too_many_parts_are_joined),
		cmocka_unit_test(test_where_holes_cannot_be_asked_for_all_is_data),
		cmocka_unit_test(test_what_a_sandbox_tells_is_read_and_no_more),
		cmocka_unit_test(test_what_can_be_no_file_is_refused),
		cmocka_unit_test(test_what_is_cut_off_can_be_asked_for_again),
		cmocka_unit_test(test_there_are_only_so_many_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
