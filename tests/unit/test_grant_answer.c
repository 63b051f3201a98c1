/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_answer.h"

#include "tests/unit/policy_fixture.h"

#include "broker/methods/explain.h"
#include "tests/unit/subject_fixture.h"
#include "tests/support/facts.h"

/* ---- decisions ---- */

static const char *const roots[] = {"/w", NULL};

static const char *const lines[] = {"mode = ask-all", "deny = write **/.git/**",
	"allow = terminal git status", "ask = read **/secret", NULL};

/* Remembers the first subject, if it is not NULL; then decides about the second. */
static const struct {
	const char *remembered; // a path to write, or NULL
	bool allow;
	enum policy_operation operation;
	const char *asked;
	enum policy_decision decision;
	enum grant_source source;
	const char *rule;
} decisions[] = {
	{NULL, false, POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_PENDING, GRANT_BY_MODE,
		"mode = ask-all"},
	{"{\"path\":\"/w/a\"}", true, POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_ALLOW_ALWAYS,
		GRANT_BY_MEMORY, "remembered: always allow"},
	{"{\"path\":\"/w/a\"}", false, POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_REJECT_ALWAYS,
		GRANT_BY_MEMORY, "remembered: always reject"},
	{"{\"path\":\"/w/a\"}", true, POLICY_WRITE, "{\"path\":\"/w/b\"}", POLICY_PENDING,
		GRANT_BY_MODE, "mode = ask-all"},
	/*
         * A rule that refuses overrides a remembered yes; a rule that allows overrides a remembered
         * no.
         */
	{"{\"path\":\"/w/.git/x\"}", true, POLICY_WRITE, "{\"path\":\"/w/.git/x\"}",
		POLICY_REJECT_ONCE, GRANT_BY_RULE, "deny = write **/.git/**"},
	{NULL, false, POLICY_READ, "{\"path\":\"/w/secret\"}", POLICY_PENDING, GRANT_BY_RULE,
		"ask = read **/secret"},
	{NULL, false, POLICY_TERMINAL, "{\"command\":\"git status\"}", POLICY_ALLOW_ONCE,
		GRANT_BY_RULE, "allow = terminal git status"},
	{NULL, false, POLICY_READ, "{\"path\":\"/w/a\"}", POLICY_ALLOW_ONCE, GRANT_BY_MODE,
		"mode = ask-all"},
	{NULL, false, POLICY_GRANT, "{\"toolKind\":\"edit\",\"path\":\"/w/a\"}", POLICY_PENDING,
		GRANT_BY_MODE, "mode = ask-all"},
	/* An answer to the broker's own question does not answer the agent's. */
	{"{\"path\":\"/w/a\"}", true, POLICY_GRANT, "{\"toolKind\":\"edit\",\"path\":\"/w/a\"}",
		POLICY_PENDING, GRANT_BY_MODE, "mode = ask-all"},
};

static void test_policy_decides_and_where_it_would_ask_memory_answers(void **state)
{
	struct error err;
	struct policy *policy = policy_of(lines, &err);
	assert_non_null(policy);
	for (size_t i = 0; i < ARRAY_LENGTH(decisions); i++) {
		struct memory *memory = memory_create();
		if (decisions[i].remembered) {
			struct subject said = subject_of(POLICY_WRITE, decisions[i].remembered);
			memory_add(memory, &said, decisions[i].allow);
			subject_finish(&said);
		}
		struct subject subject = subject_of(decisions[i].operation, decisions[i].asked);
		struct grant_decision decision = grant_decide(policy, memory, &subject, roots);
		assert_int_equal(decision.verdict.decision, decisions[i].decision);
		assert_int_equal(decision.source, decisions[i].source);
		assert_string_equal(decision.verdict.rule, decisions[i].rule);
		subject_finish(&subject);
		memory_destroy(memory);
	}
	policy_destroy(policy);
}

static void test_there_need_be_no_memory_and_no_roots(void **state)
{
	struct error err;
	struct policy *policy = policy_of(lines, &err);
	struct subject subject = subject_of(POLICY_WRITE, "{\"path\":\"/w/a\"}");
	assert_int_equal(
		grant_decide(policy, NULL, &subject, NULL).verdict.decision, POLICY_PENDING);
	subject_finish(&subject);
	policy_destroy(policy);
}

/* ---- agents' modes ---- */

static const struct {
	const char *lines[RULES_MAX];
	enum policy_decision decision;
	const char *rule;
} agent_modes[] = {
	{{"mode = pass", NULL}, POLICY_REJECT_ONCE, "mode = pass"},
	{{"mode = approve-reads", NULL}, POLICY_REJECT_ONCE, "mode = approve-reads"},
	{{"mode = deny-all", NULL}, POLICY_REJECT_ONCE, "mode = deny-all"},
	{{"mode = approve-all", NULL}, POLICY_ALLOW_ONCE, "mode = approve-all"},
	{{"mode = pass", "agent-modes = allow", NULL}, POLICY_ALLOW_ONCE, "agent-modes = allow"},
	{{"mode = approve-all", "agent-modes = deny", NULL}, POLICY_REJECT_ONCE,
		"agent-modes = deny"},
};

static void test_policy_consents_to_an_agents_modes_or_not(void **state)
{
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(agent_modes); i++) {
		struct policy *policy = policy_of(agent_modes[i].lines, &err);
		assert_non_null(policy);
		struct policy_verdict verdict = policy_decide_agent_modes(policy);
		assert_int_equal(verdict.decision, agent_modes[i].decision);
		assert_string_equal(verdict.rule, agent_modes[i].rule);
		policy_destroy(policy);
	}
}

static void test_without_a_policy_section_an_agents_modes_are_the_users_affair(void **state)
{
	struct error err;
	struct policy *policy = policy_create(NULL, &err);
	assert_int_equal(policy_decide_agent_modes(policy).decision, POLICY_ALLOW_ONCE);
	policy_destroy(policy);
}

static void test_the_lines_of_a_policy_end_with_its_agent_modes(void **state)
{
	static const char *const some[] = {
		"mode = pass", "agent-modes = deny", "deny = read", NULL};
	struct error err;
	struct policy *policy = policy_of(some, &err);
	assert_string_equal(policy_line(policy, 0), "mode = pass");
	assert_string_equal(policy_line(policy, 1), "deny = read");
	assert_string_equal(policy_line(policy, 2), "agent-modes = deny");
	assert_null(policy_line(policy, 3));
	assert_null(policy_line(policy, 4));
	policy_destroy(policy);
}

/* ---- answers ---- */

static const char options[] = "[{\"optionId\":\"y\",\"kind\":\"allow_once\"},"
			      "{\"optionId\":\"Y\",\"kind\":\"allow_always\"},"
			      "{\"optionId\":\"n\",\"kind\":\"reject_once\"},"
			      "{\"optionId\":\"N\",\"kind\":\"reject_always\"},"
			      "{\"optionId\":\"?\",\"kind\":\"maybe\"},{\"optionId\":7},8]";

#define SELECTED(id) "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":" id "}}"

static const struct {
	const char *result;
	enum policy_decision decision;
	enum audit_by by;
	const char *reason; // facts in it
} answers[] = {
	{SELECTED("\"y\""), POLICY_ALLOW_ONCE, AUDIT_BY_PERSON, ""},
	{SELECTED("\"Y\""), POLICY_ALLOW_ALWAYS, AUDIT_BY_PERSON, ""},
	{SELECTED("\"\\u0059\""), POLICY_ALLOW_ALWAYS, AUDIT_BY_PERSON, ""},
	{SELECTED("\"n\""), POLICY_REJECT_ONCE, AUDIT_BY_PERSON, "the user said no"},
	{SELECTED("\"N\""), POLICY_REJECT_ALWAYS, AUDIT_BY_PERSON, "the whole session"},
	{SELECTED("\"?\""), POLICY_REJECT_ONCE, AUDIT_BY_PERSON, "kind | not known"},
	{SELECTED("\"x\""), POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no option | offered"},
	{SELECTED("\"\""), POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no option | offered"},
	{SELECTED("7"), POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no outcome"},
	{"{\"outcome\":{\"outcome\":\"cancelled\"}}", POLICY_REJECT_ONCE, AUDIT_BY_PERSON,
		"cancelled"},
	{"{\"outcome\":{\"outcome\":\"cancelled\",\"optionId\":\"y\"}}", POLICY_REJECT_ONCE,
		AUDIT_BY_PERSON, "cancelled"},
	{"{\"outcome\":{\"optionId\":\"y\"}}", POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no outcome"},
	{"{\"outcome\":{\"outcome\":\"allowed\",\"optionId\":\"y\"}}", POLICY_REJECT_ONCE,
		AUDIT_BY_NOBODY, "no outcome"},
	{"{\"outcome\":\"selected\",\"optionId\":\"y\"}", POLICY_REJECT_ONCE, AUDIT_BY_NOBODY,
		"no outcome"},
	{"{}", POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no outcome"},
	{"null", POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no outcome"},
	{"true", POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no outcome"},
	{"", POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "no outcome"},
};

static void test_an_answer_is_read_by_the_kind_of_what_was_chosen(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
		struct grant_answer answer;
		grant_answer_read(&answer, span_of(answers[i].result), SPAN_LITERAL(options));
		if (answer.decision != answers[i].decision || answer.by != answers[i].by ||
			!text_names(answer.reason, answers[i].reason)) {
			fail_msg("%s: %s", answers[i].result, answer.reason);
		}
	}
}

static void test_without_options_nothing_can_have_been_chosen(void **state)
{
	struct grant_answer answer;
	grant_answer_read(&answer, SPAN_LITERAL(SELECTED("\"y\"")), SPAN_LITERAL(""));
	assert_int_equal(answer.decision, POLICY_REJECT_ONCE);
	assert_int_equal(answer.by, AUDIT_BY_NOBODY);
}

static void test_an_error_is_a_no_that_quotes_it(void **state)
{
	struct grant_answer answer;
	grant_answer_read_error(
		&answer, SPAN_LITERAL("{\"code\":-1,\"message\":\"no window is open\"}"));
	assert_int_equal(answer.decision, POLICY_REJECT_ONCE);
	assert_int_equal(answer.by, AUDIT_BY_NOBODY);
	assert_non_null(strstr(answer.reason, "no window is open"));
	grant_answer_read_error(&answer, SPAN_LITERAL("7"));
	assert_non_null(strstr(answer.reason, "no reason"));
}

/* ---- explaining ---- */

static void test_an_explanation_names_the_line_and_what_is_remembered(void **state)
{
	struct buf out;
	struct error err;
	struct json_writer writer;
	struct grant_decision decision = {
		{POLICY_REJECT_ONCE, "deny = write **/.git/**"}, GRANT_BY_RULE};
	buf_init(&out, 4096);
	json_write_begin(&writer, &out);
	explain_write(&writer, "fs/write_text_file", &decision, NULL);
	assert_true(json_write_end(&writer, &err));
	assert_true(span_is(buf_span(&out),
		"{\"operation\":\"fs/write_text_file\",\"decision\":\"reject-once\","
		"\"rule\":\"deny = write **/.git/**\",\"source\":\"rule\",\"remembered\":[]}"));
	buf_finish(&out);
	assert_string_equal(grant_source_name(GRANT_BY_MODE), "mode");
	assert_string_equal(grant_source_name(GRANT_BY_MEMORY), "remembered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy_decides_and_where_it_would_ask_memory_answers),
		cmocka_unit_test(test_there_need_be_no_memory_and_no_roots),
		cmocka_unit_test(test_policy_consents_to_an_agents_modes_or_not),
		cmocka_unit_test(
			test_without_a_policy_section_an_agents_modes_are_the_users_affair),
		cmocka_unit_test(test_the_lines_of_a_policy_end_with_its_agent_modes),
		cmocka_unit_test(test_an_answer_is_read_by_the_kind_of_what_was_chosen),
		cmocka_unit_test(test_without_options_nothing_can_have_been_chosen),
		cmocka_unit_test(test_an_error_is_a_no_that_quotes_it),
		cmocka_unit_test(test_an_explanation_names_the_line_and_what_is_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
