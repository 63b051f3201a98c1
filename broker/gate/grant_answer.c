/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_answer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct grant_decision grant_decide(const struct policy *policy, const struct memory *memory,
	const struct subject *subject, const char *const *roots)
{
	struct policy_query query = subject_query(subject, roots);
	struct grant_decision decision = {.verdict = policy_decide(policy, &query)};
	bool is_mode = decision.verdict.rule == policy_line(policy, 0);
	decision.source = is_mode ? GRANT_BY_MODE : GRANT_BY_RULE;
	if (decision.verdict.decision != POLICY_PENDING) {
		return decision;
	}
	enum policy_decision remembered = memory_find(memory, subject);
	if (remembered != POLICY_PENDING) {
		decision.verdict.decision = remembered;
		decision.verdict.rule = remembered == POLICY_ALLOW_ALWAYS
		                                ? "remembered: always allow"
		                                : "remembered: always reject";
		decision.source = GRANT_BY_MEMORY;
	}
	return decision;
}

const char *grant_source_name(enum grant_source source)
{
	static const char *const names[] = {"rule", "mode", "remembered", "asked"};
	assert((size_t)source < ARRAY_LENGTH(names));
	return names[source];
}

/* ---- answers ---- */

/* ACP, PermissionOptionKind. */
static const struct {
	const char *kind;
	enum policy_decision decision;
	const char *reason;
} kinds[] = {
	{"allow_once", POLICY_ALLOW_ONCE, ""},
	{"allow_always", POLICY_ALLOW_ALWAYS, ""},
	{"reject_once", POLICY_REJECT_ONCE, "the user said no"},
	{"reject_always", POLICY_REJECT_ALWAYS, "the user said no for the whole session"},
};

static void set(struct grant_answer *answer, enum policy_decision decision, enum audit_by by,
	const char *reason)
{
	answer->decision = decision;
	answer->is_cancelled = false;
	answer->option[0] = '\0';
	answer->by = by;
	text_format(answer->reason, sizeof(answer->reason), "%s", reason);
}

static void set_by_kind(
	struct grant_answer *answer, const struct json_doc *options, json_node option)
{
	json_node kind = json_get(options, option, "kind");
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (json_string_is(options, kind, kinds[i].kind)) {
			set(answer, kinds[i].decision, AUDIT_BY_PERSON, kinds[i].reason);
			return;
		}
	}
	set(answer, POLICY_REJECT_ONCE, AUDIT_BY_PERSON,
		"the kind of the chosen option is not known");
}

/* The option with that id. The ids are the agent's; the kinds are ACP's. */
static void read_selected(struct grant_answer *answer, const char *id, struct span options)
{
	struct json_doc *doc = options.len > 0 ? json_doc_parse_unchecked(options, NULL) : NULL;
	set(answer, POLICY_REJECT_ONCE, AUDIT_BY_NOBODY,
		"the editor's answer names no option that was offered");
	if (!doc) {
		return;
	}
	for (json_node option = json_first(doc, 0); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		if (json_string_is(doc, json_get(doc, option, "optionId"), id)) {
			set_by_kind(answer, doc, option);
			text_whole(answer->option, sizeof(answer->option), "%s", id);
			break;
		}
	}
	json_doc_destroy(doc);
}

void grant_answer_read(struct grant_answer *answer, struct span result, struct span options)
{
	struct json_doc *doc = result.len > 0 ? json_doc_parse_unchecked(result, NULL) : NULL;
	json_node outcome = doc ? json_get(doc, 0, "outcome") : JSON_NODE_NONE;
	char *id = doc ? json_string(doc, json_get(doc, outcome, "optionId")) : NULL;
	json_node word = doc ? json_get(doc, outcome, "outcome") : JSON_NODE_NONE;
	if (doc && json_string_is(doc, word, "cancelled")) {
		set(answer, POLICY_REJECT_ONCE, AUDIT_BY_PERSON, "the question was cancelled");
		answer->is_cancelled = true;
	} else if (doc && json_string_is(doc, word, "selected") && id) {
		read_selected(answer, id, options);
	} else {
		set(answer, POLICY_REJECT_ONCE, AUDIT_BY_NOBODY,
			"the editor's answer has no outcome that ACP knows");
	}
	free(id);
	json_doc_destroy(doc);
}

void grant_answer_read_error(struct grant_answer *answer, struct span error)
{
	struct json_doc *doc = json_doc_parse_unchecked(error, NULL);
	char *message = doc ? json_string(doc, json_get(doc, 0, "message")) : NULL;
	set(answer, POLICY_REJECT_ONCE, AUDIT_BY_NOBODY, "");
	text_format(answer->reason, sizeof(answer->reason),
		"the editor could not ask the person: %s", message ? message : "no reason");
	free(message);
	json_doc_destroy(doc);
}
