/* SPDX-License-Identifier: MIT */
#include "tests/unit/policy_fixture.h"

static const struct {
	const char *rules[RULES_MAX];
	bool shell_line;
	const char *command[WORDS_MAX];
	enum policy_decision decision;
} command_cases[] = {
	/* allow: the first words, exactly as a shell would see them */
	{{"mode = ask-all", "allow = terminal git status"}, false, {"git", "status"}, ALLOW},
	{{"mode = ask-all", "allow = terminal git status"}, false, {"git", "status", "-s"}, ALLOW},
	{{"mode = ask-all", "allow = terminal git status"}, false, {"git", "push"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, false, {"git"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, false, {"git status"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, false, {"/tmp/git", "status"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status"}, ALLOW},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"  git  status -s"}, ALLOW},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status; rm -rf /"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status && rm -rf /"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status | sh"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status $(x)"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status `x`"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status\nrm -rf /"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status\rrm"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status > x"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status 'a'"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status *"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"git status ~"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {"A=b git status"}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, true, {""}, ASK},
	{{"mode = ask-all", "allow = terminal git status"}, false, {NULL}, ASK},
	{{"mode = ask-all", "allow = terminal"}, true, {"anything; at all"}, ALLOW},
	/* to a launcher the words are first of all what they are */
	{{"deny = terminal sudo *(x)"}, false, {"sudo", "a(x)"}, REJECT},
	{{"deny = terminal sudo *(x)"}, false, {"sudo", "a"}, ALLOW},
	/* globs of words */
	{{"mode = ask-all", "allow = terminal npm run *"}, false, {"npm", "run"}, ASK},
	{{"mode = ask-all", "allow = terminal npm run *"}, false, {"npm", "run", "a/b"}, ALLOW},
	{{"mode = ask-all", "allow = terminal cat src/*"}, false, {"cat", "src/a"}, ALLOW},
	{{"mode = ask-all", "allow = terminal cat src/*"}, false, {"cat", "src/.."}, ASK},
	{{"mode = ask-all", "allow = terminal cat src/*"}, false, {"cat", "src/a/b"}, ASK},
	{{"mode = ask-all", "allow = terminal cat src/**"}, false, {"cat", "src/../etc/passwd"},
		ASK},
	{{"mode = ask-all", "allow = terminal git ** --dry-run"}, false,
		{"git", "push", "-v", "--dry-run"}, ALLOW},
	{{"mode = ask-all", "allow = terminal git ** --dry-run"}, false, {"git", "--dry-run"},
		ALLOW},
	{{"mode = ask-all", "allow = terminal git ** --dry-run"}, false, {"git", "push"}, ASK},
	/* deny and ask: wherever it may be run */
	{{"deny = terminal rm"}, false, {"rm", "-rf", "/"}, REJECT},
	{{"deny = terminal rm"}, false, {"/bin/rm", "x"}, REJECT},
	{{"deny = terminal rm"}, false, {"./rm", "x"}, REJECT},
	{{"deny = terminal rm"}, false, {"rmdir", "x"}, ALLOW},
	{{"deny = terminal rm"}, false, {"grep", "rm", "x"}, ALLOW},
	{{"deny = terminal rm"}, true, {"cd x; rm -rf y"}, REJECT},
	{{"deny = terminal rm"}, true, {"cd x;rm -rf y"}, REJECT},
	{{"deny = terminal rm"}, true, {"cd x&&/bin/rm -rf y"}, REJECT},
	{{"deny = terminal rm"}, true, {"$(r''m x)"}, REJECT},
	{{"deny = terminal rm"}, true, {"\\rm x"}, REJECT},
	{{"deny = terminal rm"}, true, {"(rm x)"}, REJECT},
	{{"deny = terminal rm"}, true, {"x`rm`"}, REJECT},
	{{"deny = terminal rm"}, true, {"echo x\nrm y"}, REJECT},
	{{"deny = terminal rm"}, true, {"echo armed"}, ALLOW},
	{{"deny = terminal rm"}, false, {"sh", "-c", "cd x; rm -rf y"}, REJECT},
	{{"deny = terminal rm"}, false, {"/usr/bin/env", "-i", "rm", "x"}, REJECT},
	{{"deny = terminal rm"}, false, {"sudo", "rm", "x"}, REJECT},
	{{"deny = terminal /bin/rm"}, false, {"rm", "x"}, ALLOW},
	{{"deny = terminal git push ** --force"}, true, {"git push origin main --force"}, REJECT},
	{{"deny = terminal git push ** --force"}, true, {"git push origin main"}, ALLOW},
	{{"deny = terminal curl http*"}, false, {"curl", "https://example.com/x"}, REJECT},
	{{"deny = terminal rm -rf *"}, true, {"rm -rf *"}, REJECT},
	{{"ask = terminal git push"}, true, {"true && git push"}, ASK},
	{{"ask = terminal git push"}, true, {"git pull"}, ALLOW},
	{{"deny = terminal rm"}, false, {NULL}, ALLOW},
};

static void test_command_rules(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(command_cases); i++) {
		struct error err;
		struct policy *policy = policy_of(command_cases[i].rules, &err);
		assert_non_null(policy);
		struct policy_query query = {
			.operation = POLICY_TERMINAL,
			.command = command_cases[i].command,
			.shell_line = command_cases[i].shell_line,
		};
		struct policy_verdict verdict = policy_decide(policy, &query);
		if (verdict.decision != command_cases[i].decision) {
			fail_msg("case %zu (\"%s\"): %s by %s", i, command_cases[i].command[0],
				policy_decision_name(verdict.decision), verdict.rule);
		}
		/* The same as a permission: the rules decide in the same way. */
		query.operation = POLICY_GRANT;
		query.tool_kind = "execute";
		struct policy_verdict grant = policy_decide(policy, &query);
		bool by_mode = strncmp(verdict.rule, "mode", 4) == 0;
		assert_int_equal(grant.decision, by_mode ? ASK : verdict.decision);
		policy_destroy(policy);
	}
}

static void test_an_endless_command_is_guarded_and_not_allowed(void **state)
{
	enum { LEN = 1 << 20 };
	char *line = mem_alloc(LEN + 1);
	memset(line, 'a', LEN);
	line[LEN] = '\0';
	const char *const command[] = {line, NULL};
	const char *const paths[] = {line, NULL};
	const struct {
		const char *rules[RULES_MAX];
		enum policy_operation operation;
		enum policy_decision decision;
	} cases[] = {
		{{"deny = terminal rm"}, POLICY_TERMINAL, REJECT},
		{{"mode = ask-all", "allow = terminal *"}, POLICY_TERMINAL, ASK},
		{{"deny = write b"}, POLICY_WRITE, REJECT},
		{{"mode = ask-all", "allow = write **"}, POLICY_WRITE, ASK},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		struct policy *policy = policy_of(cases[i].rules, &err);
		const struct policy_query query = {
			.operation = cases[i].operation,
			.command = command,
			.shell_line = true,
			.paths = paths,
		};
		assert_int_equal(policy_decide(policy, &query).decision, cases[i].decision);
		policy_destroy(policy);
	}
	free(line);
}

/*
 * A line of very many words, and a pattern that can skip words: the search must not be quadratic.
 */
static void test_a_long_command_is_decided_quickly(void **state)
{
	enum { LEN = 24 << 10 };
	char *line = mem_alloc(LEN + 1);
	for (size_t i = 0; i < LEN; i += 2) {
		memcpy(line + i, "a ", 2);
	}
	line[LEN] = '\0';
	const char *const command[] = {line, NULL};
	struct error err;
	struct policy *policy =
		policy_of((const char *const[]){"deny = terminal a ** a ** a ** b", NULL}, &err);
	const struct policy_query query = {
		.operation = POLICY_TERMINAL, .command = command, .shell_line = true};
	assert_int_equal(policy_decide(policy, &query).decision, ALLOW);
	policy_destroy(policy);
	free(line);
}

static enum policy_decision decide_with(const char *const *rules, const char *const *variables)
{
	static const char *const command[] = {"git", "status", NULL};
	struct error err;
	struct policy *policy = policy_of(rules, &err);
	assert_non_null(policy);
	const struct policy_query query = {
		.operation = POLICY_TERMINAL, .command = command, .variables = variables};
	enum policy_decision decision = policy_decide(policy, &query).decision;
	policy_destroy(policy);
	return decision;
}

/* LD_PRELOAD and its like make any command do something else. */
static void test_added_variables_are_no_part_of_what_is_allowed(void **state)
{
	const char *const allow[] = {"mode = ask-all", "allow = terminal git status", NULL};
	const char *const named[] = {"mode = ask-all", "allow = terminal git status",
		"allow-variable = A", "allow-variable = B", NULL};
	const char *const all[] = {"mode = ask-all", "allow = terminal", NULL};
	const char *const deny[] = {"mode = approve-all", "deny = terminal git", NULL};
#define WITH(...) ((const char *const[]){__VA_ARGS__, NULL})
	assert_int_equal(decide_with(allow, NULL), ALLOW);
	assert_int_equal(decide_with(allow, WITH("TERM", "LC_ALL", "CLAUDECODE")), ALLOW);
	assert_int_equal(decide_with(allow, WITH("TERM", "PATH")), ASK);
	assert_int_equal(decide_with(allow, WITH("")), ASK);
	assert_int_equal(decide_with(named, WITH("B", "A", "NO_COLOR")), ALLOW);
	assert_int_equal(decide_with(named, WITH("A", "LD_PRELOAD")), ASK);
	assert_int_equal(decide_with(all, WITH("LD_PRELOAD")), ALLOW);
	assert_int_equal(decide_with(deny, WITH("LD_PRELOAD")), REJECT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_rules),
		cmocka_unit_test(test_an_endless_command_is_guarded_and_not_allowed),
		cmocka_unit_test(test_a_long_command_is_decided_quickly),
		cmocka_unit_test(test_added_variables_are_no_part_of_what_is_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
