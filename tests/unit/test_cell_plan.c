/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "providers/local/cell/sockets.h"

static const struct cell_entry entries[] = {{CELL_HIDE, "/state", NULL},
	{CELL_READ, "/home/u/.cargo", "/data/cargo"}, {CELL_WRITE, "/work with\nlines", NULL}};
static const struct cell_plan plan = {.user = "u",
	.home = "/home/u",
	.home_name = "/link",
	.uid = 1000,
	.gid = 1001,
	.has_ports = true,
	.services = {5432, 11434},
	.service_count = 2,
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
	assert_string_equal(read.plan.home_name, "/link");
	assert_int_equal(read.plan.uid, 1000);
	assert_int_equal(read.plan.gid, 1001);
	assert_false(read.plan.has_network);
	assert_true(read.plan.has_ports);
	assert_int_equal(read.plan.service_count, 2);
	assert_int_equal(read.plan.services[1], 11434);
	assert_int_equal(read.plan.entry_count, ARRAY_LENGTH(entries));
	for (size_t i = 0; i < ARRAY_LENGTH(entries); i++) {
		assert_int_equal(read.plan.entries[i].rule, entries[i].rule);
		assert_string_equal(read.plan.entries[i].path, entries[i].path);
		assert_int_equal(!read.plan.entries[i].source, !entries[i].source);
	}
	assert_string_equal(read.plan.entries[1].source, "/data/cargo");
	cell_plan_finish(&read);
}

/* A plan that lacks a part could allow more. */
static void test_a_plan_that_is_not_whole_is_refused(void **state)
{
	struct error err;
	ATTR_CLEANUP(fd_cleanup) int fd = cell_plan_pack(&plan, &err);
	off_t size = lseek(fd, 0, SEEK_END);
	while (size-- > 0) {
		struct cell_read_plan read;
		assert_int_equal(ftruncate(fd, size), 0);
		if (cell_plan_unpack(&read, fd, &err)) {
			/* Only the NUL of the last text is missing. */
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

static void test_sockets_with_a_path_are_found(void **state)
{
	struct buf found;
	struct error err;
	static const char table[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1200 /run/a b/docker.sock\n"
		"0000000000000000: 00000003 00000000 00000000 0001 03  1201\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1202 @/tmp/.X11-unix/X0\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1203 relative\n"
		"0000000000000000: 00000002 00000000 00010000 0001 01  1204 /last";
	static const char expected[] = "/run/a b/docker.sock\0/last";
	buf_init(&found, 256);
	assert_true(sockets_find(span_of(table), "/is-not-there", &found, &err));
	assert_int_equal(buf_span(&found).len, sizeof(expected));
	assert_memory_equal(buf_span(&found).data, expected, sizeof(expected));
	buf_finish(&found);
}

static void assert_made(bool is_made)
{
	assert_true(is_made);
}

/* A folder as /proc is, with two processes that work in one folder. */
static void test_a_relative_name_is_looked_for_where_processes_work(void **state)
{
	char folder[] = "/tmp/test-cell-XXXXXX";
	char path[PATH_MAX], table[256];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct buf found;
	struct error err;
	assert_non_null(mkdtemp(folder));
	text_whole(address.sun_path, sizeof(address.sun_path), "%s/named", folder);
	ATTR_CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_made(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	for (int i = 7; i < 9; i++) {
		text_whole(path, sizeof(path), "%s/%d", folder, i);
		assert_made(mkdir(path, 0700) == 0);
		text_whole(path, sizeof(path), "%s/%d/cwd", folder, i);
		assert_made(symlink(folder, path) == 0);
	}
	text_whole(table, sizeof(table), "1: 2 3 4 5 6 7 named\n1: 2 3 4 5 6 7 other\n");
	buf_init(&found, 256);
	assert_true(sockets_find(span_of(table), folder, &found, &err));
	assert_int_equal(buf_span(&found).len, strlen(address.sun_path) + 1);
	assert_string_equal(buf_span(&found).data, address.sun_path);
	buf_finish(&found);
	assert_true(remove_folder(folder, &err));
}

static void test_more_sockets_than_fit_are_an_error(void **state)
{
	struct buf found;
	struct error err;
	buf_init(&found, 4);
	assert_false(sockets_find(span_of("1: 2 3 4 5 6 7 /long\n"), "/proc", &found, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buf_finish(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plan_arrives_as_it_was),
		cmocka_unit_test(test_a_plan_that_is_not_whole_is_refused),
		cmocka_unit_test(test_too_many_entries_are_refused),
		cmocka_unit_test(test_sockets_with_a_path_are_found),
		cmocka_unit_test(test_a_relative_name_is_looked_for_where_processes_work),
		cmocka_unit_test(test_more_sockets_than_fit_are_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
