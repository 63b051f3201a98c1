/* SPDX-License-Identifier: MIT */
#include "broker/init/unified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"

static void assert_diff(const char *old_text, const char *new_text, const char *expected)
{
	struct buf out;
	struct span old = old_text ? span_of(old_text) : (struct span){NULL, 0};
	buf_init(&out, 4096);
	unified_write("f", old_text ? &old : NULL, span_of(new_text), &out);
	assert_int_equal(out.len, strlen(expected));
	assert_memory_equal(buf_span(&out).data, expected, strlen(expected));
	buf_finish(&out);
}

static void test_a_hunk_is_what_diff_prints(void **state)
{
	assert_diff(
		"a\nb\nc\nd\n", "a\nb\nx\nc\nd\n", "--- f\n+++ f\n@@ -2,2 +2,3 @@\n b\n+x\n c\n");
	assert_diff("a\nb\nc\n", "a\nB\nc\n", "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
	assert_diff("", "a\n", "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
	assert_diff(NULL, "a\n", "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
	assert_diff("a\n", "a\n", "");
}

static void test_a_last_line_without_an_end_is_said(void **state)
{
	/* exact: programs read this line of a diff */
	static const char note[] = "\\ No newline at end of file\n";
	char expected[256];
	snprintf(expected, sizeof(expected), "--- f\n+++ f\n@@ -1,1 +1,2 @@\n-a\n%s+a\n+b\n", note);
	assert_diff("a", "a\nb\n", expected);
	snprintf(expected, sizeof(expected), "--- f\n+++ f\n@@ -1,1 +1,2 @@\n+b\n a\n%s", note);
	assert_diff("a", "b\na", expected);
}

static void test_no_line_drives_a_terminal(void **state)
{
	assert_diff("", "\x1b[2J\tx\n", "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+^[[2J\tx\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_hunk_is_what_diff_prints),
		cmocka_unit_test(test_a_last_line_without_an_end_is_said),
		cmocka_unit_test(test_no_line_drives_a_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
