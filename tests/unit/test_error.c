/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"

enum { TEXT_END = ERROR_TEXT_MAX - 1 }; // where the longest text ends

/* `len` times "x", then tail. */
static const char *long_text(size_t len, const char *tail)
{
	static char text[2 * ERROR_TEXT_MAX];
	assert_true(len + strlen(tail) < sizeof(text));
	memset(text, 'x', len);
	memcpy(text + len, tail, strlen(tail) + 1);
	return text;
}

static void test_set_gives_code_and_text_and_returns_false(void **state)
{
	struct error err = {.reason = "OLD"};
	assert_false(error_set(&err, ERROR_CONFIG, "key \"%s\": line %d", "mode", 7));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_null(err.reason);
	assert_string_equal(err.text, "key \"mode\": line 7");
}

static void test_set_reason_names_the_code_the_editor_is_told(void **state)
{
	struct error err;
	assert_false(error_set_reason(&err, ERROR_NOT_FOUND, "AGENT_NOT_FOUND", "no \"%s\"", "x"));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_string_equal(err.reason, "AGENT_NOT_FOUND");
	assert_string_equal(err.text, "no \"x\"");
}

static void test_errno_ends_with_its_message(void **state)
{
	struct error err;
	errno = EIO;
	assert_false(error_set_errno(&err, ENOENT, "opening %s", "/x"));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_null(err.reason);
	assert_string_equal(err.text, "opening /x: No such file or directory");
}

static void test_unknown_errno_is_a_number(void **state)
{
	struct error err;
	assert_false(error_set_errno(&err, 98765, "opening"));
	assert_string_equal(err.text, "opening: error 98765");
}

static void test_prefix_goes_before_the_text_and_keeps_code_and_reason(void **state)
{
	struct error err;
	error_set_reason(&err, ERROR_DENIED, "HOST_KEY_MISMATCH", "host key has changed");
	assert_false(error_prefix(&err, "connecting to %s:%d", "devbox", 22));
	assert_false(error_prefix(&err, "profile \"%s\"", "devbox"));
	assert_int_equal(err.code, ERROR_DENIED);
	assert_string_equal(err.reason, "HOST_KEY_MISMATCH");
	assert_string_equal(
		err.text, "profile \"devbox\": connecting to devbox:22: host key has changed");
}

static void test_null_error_is_fine_everywhere(void **state)
{
	assert_false(error_set(NULL, ERROR_LIMIT, "x"));
	assert_false(error_set_reason(NULL, ERROR_LIMIT, "X", "x"));
	assert_false(error_set_errno(NULL, EIO, "x"));
	assert_false(error_prefix(NULL, "x"));
}

static void test_text_may_be_made_of_the_old_text(void **state)
{
	struct error err;
	error_set(&err, ERROR_SYSTEM, "ENOSPC");
	error_set(&err, ERROR_UNAVAILABLE, "saving: %s", err.text);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_string_equal(err.text, "saving: ENOSPC");
	error_prefix(&err, "twice (%s)", err.text);
	assert_string_equal(err.text, "twice (saving: ENOSPC): saving: ENOSPC");
}

static void test_longest_text_is_kept_whole(void **state)
{
	struct error err;
	error_set(&err, ERROR_LIMIT, "%s", long_text(TEXT_END - 2, "\xc3\xa4"));
	assert_int_equal(strlen(err.text), TEXT_END);
	assert_string_equal(err.text + TEXT_END - 2, "\xc3\xa4");
	error_set(&err, ERROR_LIMIT, "%s", long_text(TEXT_END, ""));
	assert_int_equal(strlen(err.text), TEXT_END);
}

static void assert_cut(const struct error *err, size_t kept)
{
	assert_int_equal(strlen(err->text), kept + strlen(TEXT_CUT));
	assert_string_equal(err->text + kept, TEXT_CUT);
	assert_int_equal(err->text[kept - 1], 'x');
}

static void test_a_text_that_was_cut_shows_it(void **state)
{
	struct error err;
	error_set(&err, ERROR_LIMIT, "%s", long_text(TEXT_END, "y"));
	assert_cut(&err, TEXT_END - strlen(TEXT_CUT));
}

static void test_a_long_text_is_cut_before_the_errno_message(void **state)
{
	static const char cause[] = ": No space left on device";
	struct error err;
	error_set_errno(&err, ENOSPC, "%s", long_text(TEXT_END, ""));
	assert_int_equal(strlen(err.text), TEXT_END);
	const char *at = err.text + TEXT_END - strlen(cause);
	assert_string_equal(at, cause);
	assert_memory_equal(at - strlen(TEXT_CUT), TEXT_CUT, strlen(TEXT_CUT));

	error_set_errno(&err, ENOSPC, "%s", long_text(TEXT_END - strlen(cause), ""));
	assert_int_equal(strlen(err.text), TEXT_END);
	assert_string_equal(err.text + TEXT_END - strlen(cause) - 1, "x: No space left on device");
}

static void test_a_prefix_makes_a_long_text_be_cut(void **state)
{
	struct error err;
	error_set(&err, ERROR_LIMIT, "%s", long_text(TEXT_END, ""));
	error_prefix(&err, "a");
	assert_memory_equal(err.text, "a: xxx", 6);
	assert_cut(&err, TEXT_END - strlen(TEXT_CUT));
	assert_int_equal(err.code, ERROR_LIMIT);
}

static void test_a_prefix_longer_than_all_room_is_cut(void **state)
{
	struct error err;
	error_set(&err, ERROR_LIMIT, "why");
	error_prefix(&err, "%s", long_text(TEXT_END - 1, ""));
	assert_cut(&err, TEXT_END - strlen(TEXT_CUT));
	error_prefix(&err, "%s", long_text(TEXT_END + 1, ""));
	assert_cut(&err, TEXT_END - strlen(TEXT_CUT));
}

/* ---- what a peer is told ---- */

static void test_a_prefix_keeps_stage_and_detail_and_setting_clears_them(void **state)
{
	struct error err;
	error_set(&err, ERROR_LIMIT, "too much");
	assert_null(err.stage);
	assert_int_equal(err.detail.len, 0);
	assert_ptr_equal(error_at(&err, "session"), &err);
	err.detail = SPAN_LITERAL("last words");
	error_prefix(&err, "a");
	assert_string_equal(err.stage, "session");
	assert_true(span_is(err.detail, "last words"));
	error_set_errno(&err, EIO, "%s", err.text);
	assert_null(err.stage);
	assert_int_equal(err.detail.len, 0);
}

static void test_a_reason_is_compared(void **state)
{
	struct error err;
	error_set_reason(&err, ERROR_SYSTEM, "AGENT_NOT_FOUND", "no");
	assert_true(error_has_reason(&err, "AGENT_NOT_FOUND"));
	assert_false(error_has_reason(&err, "AGENT"));
	error_set(&err, ERROR_SYSTEM, "no");
	assert_false(error_has_reason(&err, "AGENT"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reason_is_compared),
		cmocka_unit_test(test_set_gives_code_and_text_and_returns_false),
		cmocka_unit_test(test_set_reason_names_the_code_the_editor_is_told),
		cmocka_unit_test(test_errno_ends_with_its_message),
		cmocka_unit_test(test_unknown_errno_is_a_number),
		cmocka_unit_test(test_prefix_goes_before_the_text_and_keeps_code_and_reason),
		cmocka_unit_test(test_null_error_is_fine_everywhere),
		cmocka_unit_test(test_text_may_be_made_of_the_old_text),
		cmocka_unit_test(test_longest_text_is_kept_whole),
		cmocka_unit_test(test_a_text_that_was_cut_shows_it),
		cmocka_unit_test(test_a_long_text_is_cut_before_the_errno_message),
		cmocka_unit_test(test_a_prefix_makes_a_long_text_be_cut),
		cmocka_unit_test(test_a_prefix_longer_than_all_room_is_cut),
		cmocka_unit_test(test_a_prefix_keeps_stage_and_detail_and_setting_clears_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
