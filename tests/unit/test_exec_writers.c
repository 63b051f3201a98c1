/* SPDX-License-Identifier: MIT */
#include "providers/exec/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/facts.h"

enum { ME = 1000, MINE = 1000, OTHER = 1001 };
static const struct writers writers = {.own_group = MINE};

/* An access list as the kernel stores it; the entries are tags, permissions and ids. */
struct list {
	char bytes[128];
	size_t len;
};

static void put(struct list *list, unsigned value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		list->bytes[list->len++] = (char)(value >> (8 * i) & 0xff);
	}
}

/* The kernel wants the entries in the order of their tags. */
static struct list list_with(unsigned tag, unsigned permissions, unsigned id)
{
	struct list list = {.len = 0};
	unsigned entries[][3] = {{0x01, 6, UINT32_MAX}, {0x02, 4, ME}, {0x04, 4, UINT32_MAX},
		{0x08, 4, MINE}, {0x10, 6, UINT32_MAX}, {0x20, 4, UINT32_MAX}};
	put(&list, 2, 4);
	for (size_t i = 0; i < 6; i++) {
		bool is_it = entries[i][0] == tag;
		put(&list, entries[i][0], 2);
		put(&list, is_it ? permissions : entries[i][1], 2);
		put(&list, is_it ? id : entries[i][2], 4);
	}
	return list;
}

static const char *judged(unsigned tag, unsigned permissions, unsigned id, gid_t group)
{
	struct list list = list_with(tag, permissions, id);
	return writers_of_list(&writers, (struct span){list.bytes, list.len}, ME, group);
}

static void test_an_access_list_that_lets_others_write_is_told(void **state)
{
	assert_null(judged(0x02, 6, ME, OTHER));
	assert_null(judged(0x02, 6, 0, OTHER));
	assert_null(judged(0x02, 4, OTHER, OTHER));
	assert_null(judged(0x08, 6, MINE, OTHER));
	assert_null(judged(0x08, 4, OTHER, OTHER));
	assert_null(judged(0x04, 6, UINT32_MAX, MINE));
	assert_names(judged(0x02, 6, OTHER, MINE), "access list | setfacl -b");
	assert_names(judged(0x02, 2, OTHER, MINE), "access list");
	assert_names(judged(0x08, 6, OTHER, MINE), "access list");
	assert_names(judged(0x04, 6, UINT32_MAX, OTHER), "chmod g-w");
}

static void test_a_list_that_nobody_understands_is_refused(void **state)
{
	struct list list = list_with(0x02, 4, ME);
	assert_non_null(writers_of_list(&writers, (struct span){list.bytes, 3}, ME, MINE));
	assert_non_null(
		writers_of_list(&writers, (struct span){list.bytes, list.len - 1}, ME, MINE));
	list.bytes[0] = 3;
	assert_non_null(writers_of_list(&writers, (struct span){list.bytes, list.len}, ME, MINE));
}

static void test_a_primary_group_of_two_users_is_shared(void **state)
{
	static const char alone[] = "root:x:0:0:root:/root:/bin/sh\nkim:x:1000:1000::/:\n";
	static const char shared[] = "kim:x:1000:1000::/:\nbo:x:1001:1000::/:";
	static const char twice[] = "kim:x:1000:1000::/:\nkim2:x:1000:1000::/:\n";
	assert_false(writers_share_group(span_of(alone), ME, MINE));
	assert_true(writers_share_group(span_of(shared), ME, MINE));
	assert_false(writers_share_group(span_of(twice), ME, MINE)); // the same user
	assert_false(writers_share_group(span_of("a:b\n\n:::\nkim:x"), ME, MINE));
	assert_false(writers_share_group(span_of(""), ME, MINE));
}

static void test_the_folders_above_count_unless_they_are_sticky(void **state)
{
	struct writers mine;
	char folder[] = "/tmp/writers-XXXXXX", inner[64], file[80];
	char *found = NULL;
	writers_init(&mine);
	assert_non_null(mkdtemp(folder));
	snprintf(inner, sizeof(inner), "%s/inner", folder);
	snprintf(file, sizeof(file), "%s/file", inner);
	assert_return_code(mkdir(inner, 0755), 0);
	assert_null(writers_above(&mine, file, &found));
	assert_return_code(chmod(folder, 0777), 0);
	assert_names(writers_above(&mine, file, &found), "chmod o-w");
	assert_string_equal(found, folder);
	free(found);
	assert_return_code(chmod(folder, 01777), 0);
	assert_null(writers_above(&mine, file, &found));
	rmdir(inner);
	rmdir(folder);
}

static void test_the_list_of_a_file_is_read(void **state)
{
	struct writers mine;
	struct list list = list_with(0x02, 6, OTHER);
	char path[] = "/tmp/writers-XXXXXX";
	int fd = mkstemp(path);
	assert_return_code(fd, errno);
	writers_init(&mine);
	assert_null(writers_of_file(&mine, fd));
	if (fsetxattr(fd, "system.posix_acl_access", list.bytes, list.len, 0) != 0) {
		assert_int_equal(errno, ENOTSUP);
		close(fd);
		unlink(path);
		skip(); // the file system has no access lists
	}
	assert_names(writers_of_file(&mine, fd), "access list");
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_access_list_that_lets_others_write_is_told),
		cmocka_unit_test(test_a_list_that_nobody_understands_is_refused),
		cmocka_unit_test(test_a_primary_group_of_two_users_is_shared),
		cmocka_unit_test(test_the_folders_above_count_unless_they_are_sticky),
		cmocka_unit_test(test_the_list_of_a_file_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
