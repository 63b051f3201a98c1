/* SPDX-License-Identifier: MIT */
#include "tests/unit/policy_fixture.h"
#include "tests/support/facts.h"

static void test_modes_decide_where_no_rule_does(void **state)
{
	static const struct {
		const char *mode;
		enum policy_decision read, write, terminal;
		enum policy_decision read_grant, edit_grant, other_grant;
	} cases[] = {
		{"mode = pass", ALLOW, ALLOW, ALLOW, ASK, ASK, ASK},
		{"mode = ask-all", ALLOW, ASK, ASK, ASK, ASK, ASK},
		{"mode = approve-reads", ALLOW, ASK, ASK, ASK, ASK, ASK}, // no path is named
		{"mode = approve-all", ALLOW, ALLOW, ALLOW, ALLOW, ALLOW, ALLOW},
		{"mode = deny-all", REJECT, REJECT, REJECT, REJECT, REJECT, REJECT},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct {
			enum policy_operation operation;
			const char *kind;
			enum policy_decision decision;
		} queries[] = {
			{POLICY_READ, NULL, cases[i].read},
			{POLICY_WRITE, NULL, cases[i].write},
			{POLICY_TERMINAL, NULL, cases[i].terminal},
			{POLICY_GRANT, "read", cases[i].read_grant},
			{POLICY_GRANT, "search", cases[i].read_grant},
			{POLICY_GRANT, "edit", cases[i].edit_grant},
			{POLICY_GRANT, "execute", cases[i].edit_grant},
			{POLICY_GRANT, "fetch", cases[i].other_grant},
			{POLICY_GRANT, "think", cases[i].other_grant},
			{POLICY_GRANT, "switch_mode", cases[i].other_grant},
			{POLICY_GRANT, "kind-of-tomorrow", cases[i].other_grant},
			{POLICY_GRANT, NULL, cases[i].other_grant},
		};
		struct error err;
		struct policy *policy = policy_of((const char *const[]){cases[i].mode, NULL}, &err);
		assert_non_null(policy);
		for (size_t j = 0; j < ARRAY_LENGTH(queries); j++) {
			const struct policy_query query = {
				.operation = queries[j].operation, .tool_kind = queries[j].kind};
			struct policy_verdict verdict = policy_decide(policy, &query);
			assert_int_equal(verdict.decision, queries[j].decision);
			assert_string_equal(verdict.rule, cases[i].mode);
		}
		policy_destroy(policy);
	}
}

static void test_what_may_be_approved_is_a_mode(void **state)
{
	static const char *const expected[] = {"deny-all", "approve-reads", "approve-all"};
	const struct setting_key *mode = setting_key_find(policy_keys, policy_key_count, "mode");
	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		const char *found = policy_approve_mode(policy_approve_key.choices[i]);
		struct error err;
		assert_string_equal(found, expected[i]);
		assert_true(setting_check(mode, found, &err));
	}
	assert_null(policy_approve_key.choices[ARRAY_LENGTH(expected)]);
}

static void test_no_section_asks(void **state)
{
	struct error err;
	struct policy *policy = policy_create(NULL, &err);
	const struct policy_query query = {.operation = POLICY_GRANT};
	struct policy_verdict verdict = policy_decide(policy, &query);
	assert_int_equal(verdict.decision, POLICY_PENDING);
	assert_string_equal(verdict.rule, "mode = pass");
	assert_string_equal(policy_line(policy, 0), "mode = pass");
	assert_null(policy_line(policy, 1));
	policy_destroy(policy);
	policy_destroy(NULL);
}

struct path_case {
	const char *rules[RULES_MAX];
	enum policy_operation operation;
	const char *kind;
	const char *paths[3];
	enum policy_decision decision;
	const char *rule;
};

static const char *const roots[] = {"/work/project", "/work/other/", NULL};

static void check_paths(const struct path_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct error err;
		struct policy *policy = policy_of(cases[i].rules, &err);
		if (!policy) {
			fail_msg("case %zu: %s", i, err.text);
		}
		const struct policy_query query = {
			.operation = cases[i].operation,
			.roots = roots,
			.paths = cases[i].paths,
			.tool_kind = cases[i].kind,
		};
		struct policy_verdict verdict = policy_decide(policy, &query);
		if (verdict.decision != cases[i].decision ||
			strcmp(verdict.rule, cases[i].rule) != 0) {
			fail_msg("case %zu (%s, %s): %s by %s", i, cases[i].rules[0],
				cases[i].paths[0], policy_decision_name(verdict.decision),
				verdict.rule);
		}
		policy_destroy(policy);
	}
}

static void test_path_rules(void **state)
{
	static const struct path_case cases[] = {
		/* an operation alone */
		{{"deny = write"}, POLICY_WRITE, NULL, {"/work/project/a"}, REJECT, "deny = write"},
		{{"deny = write"}, POLICY_READ, NULL, {"/work/project/a"}, ALLOW, "mode = pass"},
		{{"deny = *"}, POLICY_READ, NULL, {"/work/project/a"}, REJECT, "deny = *"},
		{{"ask = read"}, POLICY_READ, NULL, {"/work/project/a"}, ASK, "ask = read"},
		/* below a root, the second of them too */
		{{"deny = write src/**"}, POLICY_WRITE, NULL, {"/work/project/src/a/b"}, REJECT,
			"deny = write src/**"},
		{{"deny = write src/**"}, POLICY_WRITE, NULL, {"/work/other/src/a"}, REJECT,
			"deny = write src/**"},
		{{"deny = write src/**"}, POLICY_WRITE, NULL, {"/work/project/lib/src/a"}, ALLOW,
			"mode = pass"},
		{{"deny = write src/**"}, POLICY_WRITE, NULL, {"/work/project/srcs"}, ALLOW,
			"mode = pass"},
		{{"deny = write **/.git/**"}, POLICY_WRITE, NULL, {"/work/project/.git/hooks/x"},
			REJECT, "deny = write **/.git/**"},
		{{"deny = write **/.git/**"}, POLICY_WRITE, NULL, {"/work/project/a/.git"}, REJECT,
			"deny = write **/.git/**"},
		/* outside every root only what guards is near */
		{{"deny = write src/**"}, POLICY_WRITE, NULL, {"/elsewhere/src/a"}, REJECT,
			"deny = write src/**"},
		{{"mode = ask-all", "allow = write src/**"}, POLICY_WRITE, NULL,
			{"/elsewhere/src/a"}, ASK, "mode = ask-all"},
		{{"mode = ask-all", "allow = write src/**"}, POLICY_WRITE, NULL,
			{"/work/project2/src/a"}, ASK, "mode = ask-all"},
		{{"mode = ask-all", "allow = write src/**"}, POLICY_WRITE, NULL,
			{"/work/project/src/a"}, ALLOW, "allow = write src/**"},
		{{"mode = ask-all", "allow = write **"}, POLICY_WRITE, NULL, {"/work/project"},
			ALLOW, "allow = write **"},
		/* absolute */
		{{"deny = read /etc/**"}, POLICY_READ, NULL, {"/etc/passwd"}, REJECT,
			"deny = read /etc/**"},
		{{"deny = read /etc/**"}, POLICY_READ, NULL, {"/work/project/etc/passwd"}, ALLOW,
			"mode = pass"},
		/* not resolved: never allowed, guarded as what it means */
		{{"mode = ask-all", "allow = write src/**"}, POLICY_WRITE, NULL,
			{"/work/project/src/../Makefile"}, ASK, "mode = ask-all"},
		{{"mode = ask-all", "allow = write src/**"}, POLICY_WRITE, NULL,
			{"/work/project/src/./a"}, ASK, "mode = ask-all"},
		{{"mode = ask-all", "allow = write **"}, POLICY_WRITE, NULL, {"src/a"}, ASK,
			"mode = ask-all"},
		{{"deny = write **/.git/**"}, POLICY_WRITE, NULL,
			{"/work/project/src/.././/.git/config"}, REJECT, "deny = write **/.git/**"},
		{{"deny = write /etc/**"}, POLICY_WRITE, NULL, {"/work/../../../etc/passwd"},
			REJECT, "deny = write /etc/**"},
		{{"deny = write .git/**"}, POLICY_WRITE, NULL, {".git/config"}, REJECT,
			"deny = write .git/**"},
		/* precedence, whatever the order */
		{{"allow = write", "ask = write", "deny = write"}, POLICY_WRITE, NULL,
			{"/work/project/a"}, REJECT, "deny = write"},
		{{"allow = write", "ask = write src/**"}, POLICY_WRITE, NULL,
			{"/work/project/src/a"}, ASK, "ask = write src/**"},
		{{"allow = write", "ask = write src/**"}, POLICY_WRITE, NULL, {"/work/project/b"},
			ALLOW, "allow = write"},
		{{"allow = write a", "allow = write *"}, POLICY_WRITE, NULL, {"/work/project/a"},
			ALLOW, "allow = write a"},
		/* any rule over the mode */
		{{"mode = deny-all", "allow = read docs/**"}, POLICY_READ, NULL,
			{"/work/project/docs/x"}, ALLOW, "allow = read docs/**"},
		{{"mode = approve-all", "deny = read **/.env"}, POLICY_READ, NULL,
			{"/work/project/a/.env"}, REJECT, "deny = read **/.env"},
		/* a path with blanks */
		{{"deny = write My Files/*"}, POLICY_WRITE, NULL, {"/work/project/My Files/a"},
			REJECT, "deny = write My Files/*"},
	};
	check_paths(cases, ARRAY_LENGTH(cases));
}

static void test_rules_apply_to_what_permission_is_asked_for(void **state)
{
	static const struct path_case cases[] = {
		{{"deny = grant"}, POLICY_GRANT, "edit", {NULL}, REJECT, "deny = grant"},
		{{"deny = grant"}, POLICY_WRITE, NULL, {"/work/project/a"}, ALLOW, "mode = pass"},
		{{"allow = grant fetch"}, POLICY_GRANT, "fetch", {NULL}, ALLOW,
			"allow = grant fetch"},
		{{"allow = grant fetch"}, POLICY_GRANT, "edit", {NULL}, ASK, "mode = pass"},
		{{"allow = grant fetch"}, POLICY_GRANT, NULL, {NULL}, ASK, "mode = pass"},
		{{"allow = *"}, POLICY_GRANT, NULL, {NULL}, ALLOW, "allow = *"},
		/* what the tool would do itself */
		{{"deny = write **/.git/**"}, POLICY_GRANT, "edit", {"/work/project/.git/x"},
			REJECT, "deny = write **/.git/**"},
		{{"deny = write **/.git/**"}, POLICY_GRANT, "delete", {"/work/project/.git/x"},
			REJECT, "deny = write **/.git/**"},
		{{"deny = write **/.git/**"}, POLICY_GRANT, "move",
			{"/work/project/a", "/work/project/.git/x"}, REJECT,
			"deny = write **/.git/**"},
		{{"deny = write **/.git/**"}, POLICY_GRANT, "read", {"/work/project/.git/x"}, ASK,
			"mode = pass"},
		{{"allow = write src/**"}, POLICY_GRANT, "edit", {"/work/project/src/x"}, ALLOW,
			"allow = write src/**"},
		{{"allow = write src/**"}, POLICY_GRANT, "move",
			{"/work/project/src/x", "/work/project/y"}, ASK, "mode = pass"},
		{{"allow = write src/**"}, POLICY_GRANT, "edit", {NULL}, ASK, "mode = pass"},
		{{"allow = read"}, POLICY_GRANT, "search", {NULL}, ALLOW, "allow = read"},
		{{"deny = write"}, POLICY_GRANT, "edit", {NULL}, REJECT, "deny = write"},
		/* what it would do is not known */
		{{"deny = write **/.git/**"}, POLICY_GRANT, NULL, {"/work/project/.git/x"}, REJECT,
			"deny = write **/.git/**"},
		{{"deny = write"}, POLICY_GRANT, "other", {"/work/project/x"}, ASK, "mode = pass"},
		{{"allow = write **"}, POLICY_GRANT, NULL, {"/work/project/x"}, ASK, "mode = pass"},
		/* approve-reads trusts the word "read" only inside the roots */
		{{"mode = approve-reads"}, POLICY_GRANT, "read", {"/work/project/x"}, ALLOW,
			"mode = approve-reads"},
		{{"mode = approve-reads"}, POLICY_GRANT, "read", {"/etc/shadow"}, ASK,
			"mode = approve-reads"},
		{{"mode = approve-reads"}, POLICY_GRANT, "read", {"/work/project/x", "/etc/shadow"},
			ASK, "mode = approve-reads"},
		{{"mode = approve-reads"}, POLICY_GRANT, "read", {"/work/project/../x"}, ASK,
			"mode = approve-reads"},
	};
	check_paths(cases, ARRAY_LENGTH(cases));
}

struct unknown_case {
	const char *rules[RULES_MAX];
	const char *kind;
	unsigned unknown;
	enum policy_decision decision;
	const char *rule;
};

static void test_what_is_unknown_is_guarded_and_never_what_a_rule_allows(void **state)
{
	static const char *const paths[] = {"/work/project/src/a", NULL};
	static const char *const command[] = {"make", NULL};
	static const struct unknown_case cases[] = {
		{{"mode = approve-all", "deny = write **/.git/**"}, "edit", POLICY_UNKNOWN_PATHS,
			REJECT, "deny = write **/.git/**"},
		{{"mode = approve-all", "deny = write **/.git/**"}, "read", POLICY_UNKNOWN_PATHS,
			ALLOW, "mode = approve-all"},
		{{"mode = approve-all", "deny = write **/.git/**"}, "edit", POLICY_UNKNOWN_COMMAND,
			ALLOW, "mode = approve-all"},
		{{"mode = approve-all", "deny = write **/.git/**"}, NULL, POLICY_UNKNOWN_PATHS,
			REJECT, "deny = write **/.git/**"},
		{{"mode = approve-all", "ask = terminal rm"}, "execute", POLICY_UNKNOWN_COMMAND,
			ASK, "ask = terminal rm"},
		{{"mode = approve-all", "deny = write"}, NULL, 0, ALLOW, "mode = approve-all"},
		{{"mode = approve-all", "deny = write"}, NULL, POLICY_UNKNOWN_KIND, REJECT,
			"deny = write"},
		{{"mode = approve-all", "deny = grant fetch"}, NULL, POLICY_UNKNOWN_KIND, REJECT,
			"deny = grant fetch"},
		{{"mode = deny-all", "allow = write **"}, "edit", 0, ALLOW, "allow = write **"},
		{{"mode = deny-all", "allow = write **"}, "edit", POLICY_UNKNOWN_PATHS, REJECT,
			"mode = deny-all"},
		{{"mode = deny-all", "allow = terminal make"}, "execute", 0, ALLOW,
			"allow = terminal make"},
		{{"mode = deny-all", "allow = terminal make"}, "execute", POLICY_UNKNOWN_COMMAND,
			REJECT, "mode = deny-all"},
		{{"allow = grant fetch"}, NULL, POLICY_UNKNOWN_KIND, ASK, "mode = pass"},
		/* what no rule looks at changes nothing */
		{{"allow = grant"}, NULL, POLICY_UNKNOWN_ALL, ALLOW, "allow = grant"},
		{{"mode = approve-all"}, NULL, POLICY_UNKNOWN_ALL, ALLOW, "mode = approve-all"},
		{{"mode = pass"}, NULL, POLICY_UNKNOWN_ALL, ASK, "mode = pass"},
		{{"mode = approve-reads"}, "read", 0, ALLOW, "mode = approve-reads"},
		{{"mode = approve-reads"}, "read", POLICY_UNKNOWN_PATHS, ASK,
			"mode = approve-reads"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		struct policy *policy = policy_of(cases[i].rules, &err);
		const struct policy_query query = {.operation = POLICY_GRANT,
			.roots = roots,
			.paths = paths,
			.command = command,
			.tool_kind = cases[i].kind,
			.unknown = cases[i].unknown};
		struct policy_verdict verdict = policy_decide(policy, &query);
		if (verdict.decision != cases[i].decision ||
			strcmp(verdict.rule, cases[i].rule) != 0) {
			fail_msg("case %zu: %s by %s", i, policy_decision_name(verdict.decision),
				verdict.rule);
		}
		policy_destroy(policy);
	}
}

/*
 * A tool can claim that it only reads; approve-reads believes this if the tool says what it reads.
 */
static void test_approve_reads_needs_roots_and_a_path_in_them(void **state)
{
	static const char *const inside[] = {"/work/project/a", NULL};
	static const char *const none[] = {NULL};
	const struct {
		const char *const *roots;
		const char *const *paths;
		enum policy_decision decision;
	} cases[] = {
		{roots, inside, ALLOW},
		{roots, NULL, ASK},
		{roots, none, ASK},
		{NULL, inside, ASK},
		{none, inside, ASK},
		{NULL, NULL, ASK},
	};
	struct error err;
	struct policy *policy =
		policy_of((const char *const[]){"mode = approve-reads", NULL}, &err);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct policy_query query = {.operation = POLICY_GRANT,
			.roots = cases[i].roots,
			.paths = cases[i].paths,
			.tool_kind = "read"};
		assert_int_equal(policy_decide(policy, &query).decision, cases[i].decision);
	}
	assert_true(policy_looks_at_paths(policy));
	policy_destroy(policy);
	policy = policy_of(
		(const char *const[]){"mode = approve-all", "deny = terminal x", NULL}, &err);
	assert_false(policy_looks_at_paths(policy));
	policy_destroy(policy);
}

static void test_without_roots_only_guards_match_relative_patterns(void **state)
{
	static const char *const paths[] = {"/work/project/src/a", NULL};
	const struct policy_query query = {.operation = POLICY_WRITE, .paths = paths};
	struct error err;
	struct policy *policy = policy_of((const char *const[]){"deny = write src/*", NULL}, &err);
	assert_int_equal(policy_decide(policy, &query).decision, REJECT);
	policy_destroy(policy);
	policy = policy_of(
		(const char *const[]){"mode = ask-all", "allow = write **/src/*", NULL}, &err);
	assert_int_equal(policy_decide(policy, &query).decision, ASK);
	policy_destroy(policy);
}

static void test_mistakes_in_rules_name_the_key(void **state)
{
	static const struct {
		const char *line;
		const char *mistake;
	} cases[] = {
		{"deny = wirte x", "deny | read | write | terminal | grant | * | \"wirte x\""},
		{"allow = ", "allow | read | write | terminal | grant | * | \"\""},
		{"ask = * x", "ask | nothing after * | read | write | terminal | grant"},
		{"deny = grant reed", "deny: grant | read | search | edit | delete | move | "
				      "execute | think | fetch | switch_mode | other | \"reed\""},
		{"deny = write [a", "deny: expected a ] after ["},
		{"deny = read ~/.ssh/**", "deny | path | ~ | \"~/.ssh/**\""},
		{"deny = terminal rm [a", "deny: expected a ] after ["},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		assert_null(policy_of((const char *const[]){cases[i].line, NULL}, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
		assert_names(err.text, cases[i].mistake);
	}
}

static void test_lines_are_told_in_the_order_of_precedence(void **state)
{
	struct error err;
	struct policy *policy =
		policy_of((const char *const[]){"allow = read", "deny = write a", "mode = deny-all",
				  "deny = write b", "ask = grant", NULL},
			&err);
	static const char *const expected[] = {"mode = deny-all", "deny = write a",
		"deny = write b", "ask = grant", "allow = read"};
	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		assert_string_equal(policy_line(policy, i), expected[i]);
	}
	assert_null(policy_line(policy, ARRAY_LENGTH(expected)));
	policy_destroy(policy);
}

static void test_operations_and_decisions_have_names(void **state)
{
	assert_string_equal(policy_operation_name(POLICY_READ), "fs/read_text_file");
	assert_string_equal(policy_operation_name(POLICY_GRANT), "session/request_permission");
	assert_string_equal(policy_decision_name(POLICY_PENDING), "pending");
	assert_string_equal(policy_decision_name(POLICY_REJECT_ALWAYS), "reject-always");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes_decide_where_no_rule_does),
		cmocka_unit_test(test_what_may_be_approved_is_a_mode),
		cmocka_unit_test(test_no_section_asks),
		cmocka_unit_test(test_path_rules),
		cmocka_unit_test(test_rules_apply_to_what_permission_is_asked_for),
		cmocka_unit_test(test_what_is_unknown_is_guarded_and_never_what_a_rule_allows),
		cmocka_unit_test(test_approve_reads_needs_roots_and_a_path_in_them),
		cmocka_unit_test(test_without_roots_only_guards_match_relative_patterns),
		cmocka_unit_test(test_mistakes_in_rules_name_the_key),
		cmocka_unit_test(test_lines_are_told_in_the_order_of_precedence),
		cmocka_unit_test(test_operations_and_decisions_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
