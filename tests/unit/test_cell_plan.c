/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/local/cell/sockets.h"

static const struct cell_entry entries[] = {{CELL_HIDE, "/state", NULL},
	{CELL_READ, "/home/u/.cargo", "/data/cargo"}, {CELL_WRITE, "/work with\nlines", NULL}};
static const struct cell_plan plan = {.user = "u",
	.home = "/home/u",
	.uid = 1000,
	.gid = 1001,
	.has_network = true,
	.entries = entries,
	.entry_count = ARRAY_LENGTH(entries)};

static void test_a_plan_arrives_as_it_was(void **state)
{
	struct error err;
	struct cell_read_plan read;
	ATTR_CLEANUP(fd_cleanup) int fd = cell_plan_pack(&plan, &err);
	assert_true(fd >= 0);
	assert_true(cell_plan_unpack(&read, fd, &err));
	assert_string_equal(read.plan.user, "u");
	assert_string_equal(read.plan.home, "/home/u");
	assert_int_equal(read.plan.uid, 1000);
	assert_int_equal(read.plan.gid, 1001);
	assert_true(read.plan.has_network);
	assert_int_equal(read.plan.entry_count, ARRAY_LENGTH(entries));
	for (size_t i = 0; i < ARRAY_LENGTH(entries); i++) {
		assert_int_equal(read.plan.entries[i].rule, entries[i].rule);
		assert_string_equal(read.plan.entries[i].path, entries[i].path);
		assert_int_equal(!read.plan.entries[i].source, !entries[i].source);
	}
	assert_string_equal(read.plan.entries[1].source, "/data/cargo");
	cell_plan_finish(&read);
}

/* Less of it would be more freedom. */
static void test_a_plan_that_is_not_whole_is_refused(void **state)
{
	struct error err;
	ATTR_CLEANUP(fd_cleanup) int fd = cell_plan_pack(&plan, &err);
	off_t size = lseek(fd, 0, SEEK_END);
	while (size-- > 0) {
		struct cell_read_plan read;
		assert_int_equal(ftruncate(fd, size), 0);
		if (cell_plan_unpack(&read, fd, &err)) {
			/* What is missing is the NUL of the last text. */
			assert_string_equal(read.plan.entries[2].path, entries[2].path);
		}
		cell_plan_finish(&read);
	}
}

static void test_too_many_entries_are_refused(void **state)
{
	struct error err;
	struct cell_plan many = plan;
	many.entry_count = CELL_ENTRIES_MAX + 1;
	assert_int_equal(cell_plan_pack(&many, &err), -1);
	assert_int_equal(err.code, ERROR_LIMIT);
}

static bool note(void *data, const char *path)
{
	char *text = data;
	return text_append(text, 256, "%s|", path) && strcmp(path, "/stop") != 0;
}

static void test_sockets_with_a_path_are_found(void **state)
{
	char text[256] = "";
	static const char table[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1200 /run/a b/docker.sock\n"
		"0000000000000000: 00000003 00000000 00000000 0001 03  1201\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1202 @/tmp/.X11-unix/X0\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1203 relative\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1204 /last";
	assert_true(sockets_for_each(span_of(table), note, text));
	assert_string_equal(text, "/run/a b/docker.sock|/last|");
}

static void test_looking_for_sockets_ends_where_it_is_told_to(void **state)
{
	char text[256] = "";
	static const char table[] = "1: 2 3 4 5 6 7 /stop\n1: 2 3 4 5 6 7 /more\n";
	assert_false(sockets_for_each(span_of(table), note, text));
	assert_string_equal(text, "/stop|");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plan_arrives_as_it_was),
		cmocka_unit_test(test_a_plan_that_is_not_whole_is_refused),
		cmocka_unit_test(test_too_many_entries_are_refused),
		cmocka_unit_test(test_sockets_with_a_path_are_found),
		cmocka_unit_test(test_looking_for_sockets_ends_where_it_is_told_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
