/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "broker/cli/stderr_line.h"
#include "tests/unit/stderr_capture.h"

static void test_a_note_is_one_line_that_drives_no_terminal(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	stderr_note("%s: %s", "a\x1b[2Jb\nacp-broker: c", "\xe2\x80\xae");
	assert_string_equal(logged(&capture), "acp-broker: a^[[2Jb acp-broker: c: <U+202E>\n");
	capture_stop(&capture);
}

static void test_a_failure_drives_no_terminal(void **state)
{
	struct error err;
	struct capture capture;
	capture_pipe(&capture);
	error_set(&err, ERROR_SYSTEM, "reading %s", "\x1b]0;x\x07");
	stderr_failure(&err);
	assert_string_equal(logged(&capture), "acp-broker: reading ^[]0;x^G\n");
	capture_stop(&capture);
}

static void test_in_the_format_json_both_are_objects(void **state)
{
	struct error err;
	struct capture capture;
	capture_pipe(&capture);
	log_set_format(LOG_FORMAT_JSON);
	stderr_note("kept %s", "\x1b");
	error_set_reason(&err, ERROR_NOT_FOUND, "AGENT_NOT_FOUND", "no agent");
	stderr_failure(&err);
	log_set_format(LOG_FORMAT_TEXT);
	const char *note = logged(&capture);
	const char *failure = strchr(note, '\n');
	assert_non_null(failure);
	assert_true(note[0] == '{' && failure[1] == '{');
	assert_null(memchr(note, '\x1b', (size_t)(failure - note)));
	assert_non_null(strstr(failure, "\"AGENT_NOT_FOUND\""));
	capture_stop(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_note_is_one_line_that_drives_no_terminal),
		cmocka_unit_test(test_a_failure_drives_no_terminal),
		cmocka_unit_test(test_in_the_format_json_both_are_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
