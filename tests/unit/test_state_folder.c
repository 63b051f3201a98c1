/* SPDX-License-Identifier: MIT */
#include "broker/ledger/state_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *const *environment, const char *path)
{
	char *name = state_folder_name(environment);
	if (path) {
		assert_string_equal(name, path);
	} else {
		assert_null(name);
	}
	free(name);
}

static void test_the_state_directory_of_the_user_is_used(void **state)
{
	const char *environment[] = {"HOME=/home/me", "XDG_STATE_HOME=/var/me", NULL};
	expect(environment, "/var/me/acp-broker");
}

static void test_without_one_it_is_below_the_home_directory(void **state)
{
	const char *unset[] = {"HOME=/home/me", NULL};
	const char *empty[] = {"HOME=/home/me", "XDG_STATE_HOME=", NULL};
	const char *relative[] = {"HOME=/home/me", "XDG_STATE_HOME=state", NULL};
	expect(unset, "/home/me/.local/state/acp-broker");
	expect(empty, "/home/me/.local/state/acp-broker");
	expect(relative, "/home/me/.local/state/acp-broker");
}

static void test_without_either_there_is_none(void **state)
{
	const char *neither[] = {"PATH=/bin", NULL};
	const char *relative[] = {"HOME=here", NULL};
	expect(neither, NULL);
	expect(relative, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_state_directory_of_the_user_is_used),
		cmocka_unit_test(test_without_one_it_is_below_the_home_directory),
		cmocka_unit_test(test_without_either_there_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
