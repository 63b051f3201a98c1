/* SPDX-License-Identifier: MIT */
#include "broker/config/known_agents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_each_agent_is_found_by_its_name_and_by_its_program(void **state)
{
	const struct known_agent *agent;
	size_t count = 0;
	for (; (agent = known_agent_at(count)) != NULL; count++) {
		assert_ptr_equal(known_agent_find(agent->name), agent);
		assert_ptr_equal(known_agent_of_argv(agent->argv), agent);
	}
	assert_int_equal(count, 6);
	assert_null(known_agent_at(SIZE_MAX));
}

static void test_a_program_is_found_by_its_path_and_with_other_arguments(void **state)
{
	const char *const by_path[] = {"/opt/bin/gemini", "--acp", "--model", "x", NULL};
	assert_string_equal(known_agent_of_argv(by_path)->name, "gemini");
}

static void test_what_is_not_known_is_not_found(void **state)
{
	const char *const other[] = {"claude-agent-acp-2", NULL};
	const char *const through[] = {"node", "gemini", NULL};
	const char *const none[] = {NULL};
	assert_null(known_agent_find("Claude"));
	assert_null(known_agent_find(""));
	assert_null(known_agent_of_argv(other));
	assert_null(known_agent_of_argv(through));
	assert_null(known_agent_of_argv(none));
	assert_null(known_agent_of_argv(NULL));
}

static void test_agents_that_confine_their_commands_are_known(void **state)
{
	const char *const by_program[] = {"/opt/bin/codex-acp", NULL};
	const char *const wrapped[] = {"/usr/bin/bwrap", "--unshare-all", "gemini", NULL};
	const char *const through[] = {"npx", "codex-acp", NULL};
	const char *const other[] = {"gemini", "--acp", NULL};
	assert_true(known_agent_sandboxes_itself(by_program, ""));
	assert_true(known_agent_sandboxes_itself(wrapped, ""));
	assert_true(known_agent_sandboxes_itself(through, "@agentclientprotocol/codex-acp"));
	assert_true(known_agent_sandboxes_itself(through, "codex-acp"));
	assert_false(known_agent_sandboxes_itself(through, ""));
	assert_false(known_agent_sandboxes_itself(other, "gemini-cli"));
	assert_false(known_agent_sandboxes_itself(NULL, ""));
}

/* The table must have everything that a newcomer needs. */
static void test_each_agent_has_what_a_newcomer_needs(void **state)
{
	const struct known_agent *agent;
	for (size_t i = 0; (agent = known_agent_at(i)) != NULL; i++) {
		assert_non_null(agent->title);
		assert_non_null(agent->info_name);
		assert_non_null(agent->argv[0]);
		assert_string_equal(agent->version[0], agent->argv[0]);
		assert_non_null(agent->version[1]);
		assert_ptr_equal(strstr(agent->install, "npm install -g "), agent->install);
		assert_non_null(agent->key_names[0]);
		assert_ptr_equal(strstr(agent->login, agent->argv[0]), agent->login);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_agent_is_found_by_its_name_and_by_its_program),
		cmocka_unit_test(test_a_program_is_found_by_its_path_and_with_other_arguments),
		cmocka_unit_test(test_what_is_not_known_is_not_found),
		cmocka_unit_test(test_agents_that_confine_their_commands_are_known),
		cmocka_unit_test(test_each_agent_has_what_a_newcomer_needs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
