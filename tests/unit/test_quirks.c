/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/quirks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_an_agent_of_the_table_has_its_quirks(void **state)
{
	assert_string_equal(quirks_of("gemini-cli")->agent_name, "gemini-cli");
	assert_true(quirks_of("gemini-cli")->missing_file_is_empty);
}

static void test_every_other_agent_has_none(void **state)
{
	static const char *const names[] = {"", "gemini", "gemini-cli2", "claude-code-acp"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_non_null(quirks_of(names[i]));
		assert_false(quirks_of(names[i])->missing_file_is_empty);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_agent_of_the_table_has_its_quirks),
		cmocka_unit_test(test_every_other_agent_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
