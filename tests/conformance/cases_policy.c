/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "base/fd.h"
#include "tests/conformance/world.h"
#include "tests/unit/policy_fixture.h"

/* Policy on the paths of a sandbox, and the files that are then served. */
struct sample {
	const char *lines[RULES_MAX + 1];
	enum policy_operation operation;
	const char *subject; // a path below the root, or a command line
	enum policy_decision decision;
	const char *rule; // the line that decided
};

#define RULES(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static const struct sample samples[] = {
	{RULES("mode = pass"), POLICY_READ, "a", ALLOW, "mode = pass"},
	{RULES("mode = pass"), POLICY_WRITE, "a", ALLOW, "mode = pass"},
	{RULES("mode = pass"), POLICY_TERMINAL, "ls", ALLOW, "mode = pass"},
	{RULES("mode = ask-all"), POLICY_READ, "a", ALLOW, "mode = ask-all"},
	{RULES("mode = ask-all"), POLICY_WRITE, "a", ASK, "mode = ask-all"},
	{RULES("mode = ask-all"), POLICY_TERMINAL, "ls", ASK, "mode = ask-all"},
	{RULES("mode = approve-reads"), POLICY_READ, "a", ALLOW, "mode = approve-reads"},
	{RULES("mode = approve-reads"), POLICY_WRITE, "a", ASK, "mode = approve-reads"},
	{RULES("mode = approve-all"), POLICY_WRITE, "a", ALLOW, "mode = approve-all"},
	{RULES("mode = deny-all"), POLICY_READ, "a", REJECT, "mode = deny-all"},
	{RULES("mode = deny-all", "allow = read src/**"), POLICY_READ, "src/a", ALLOW,
		"allow = read src/**"},
	{RULES("mode = deny-all", "allow = read src/**"), POLICY_READ, "srcs/a", REJECT,
		"mode = deny-all"},
	{RULES("mode = pass", "deny = write **/.git/**"), POLICY_WRITE, ".git/config", REJECT,
		"deny = write **/.git/**"},
	{RULES("mode = pass", "deny = write **/.git/**"), POLICY_WRITE, "sub/.git/x", REJECT,
		"deny = write **/.git/**"},
	{RULES("mode = pass", "deny = write **/.git/**"), POLICY_READ, ".git/config", ALLOW,
		"mode = pass"},
	{RULES("mode = pass", "allow = write *", "ask = write *.c", "deny = write b.*"),
		POLICY_WRITE, "b.c", REJECT, "deny = write b.*"},
	{RULES("mode = pass", "allow = write *", "ask = write *.c", "deny = write b.*"),
		POLICY_WRITE, "a.c", ASK, "ask = write *.c"},
	{RULES("mode = deny-all", "allow = read *.\xc3\xa4?"), POLICY_READ,
		"\xe2\x82\xac.\xc3\xa4o", ALLOW, "allow = read *.\xc3\xa4?"},
	{RULES("mode = pass", "deny = terminal rm"), POLICY_TERMINAL, "true; rm -rf x", REJECT,
		"deny = terminal rm"},
	{RULES("mode = deny-all", "allow = terminal git status"), POLICY_TERMINAL, "git status -s",
		ALLOW, "allow = terminal git status"},
	{RULES("mode = deny-all", "allow = terminal git status"), POLICY_TERMINAL,
		"git status | sh", REJECT, "mode = deny-all"},
	/* Policy decides about a link's target. */
	{RULES("mode = pass", "deny = read guarded/**"), POLICY_READ, "by-name/f", REJECT,
		"deny = read guarded/**"},
	{RULES("mode = pass", "deny = read guarded/**"), POLICY_READ, "to-f", REJECT,
		"deny = read guarded/**"},
	{RULES("mode = pass", "deny = write guarded/**"), POLICY_WRITE, "to-new", REJECT,
		"deny = write guarded/**"},
	{RULES("mode = pass", "deny = write guarded/**"), POLICY_WRITE, "src/../by-name/new/er",
		REJECT, "deny = write guarded/**"},
	{RULES("mode = pass", "deny = read by-name/**"), POLICY_READ, "by-name/f", ALLOW,
		"mode = pass"},
	{RULES("mode = deny-all", "allow = read src/**"), POLICY_READ, "src/out/f", REJECT,
		"mode = deny-all"},
};

static struct policy *make_policy(const char *const *lines)
{
	struct error err;
	struct policy *policy = policy_of(lines, &err);
	if (!policy) {
		fail_msg("%s", err.text);
	}
	return policy;
}

/* The decision about a subject: its words, or its path once the sandbox has resolved it. */
static struct policy_verdict decide(const struct world *world, const struct policy *policy,
	enum policy_operation operation, const char *subject)
{
	struct policy_query query = {.operation = operation, .roots = fixture.roots};
	const char *const words[] = {subject, NULL};
	if (operation == POLICY_TERMINAL) {
		query.command = words;
		query.shell_line = true;
	} else {
		query.paths = words;
	}
	return policy_decide(policy, &query);
}

static void modes_and_rules_decide_on_what_is_meant(struct world *world)
{
	world_shell(world,
		"mkdir src guarded; touch guarded/f; ln -s guarded by-name; "
		"ln -s guarded/f to-f; ln -s guarded/new to-new; ln -s ../guarded src/out");
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		const struct sample *sample = &samples[i];
		struct policy *policy = make_policy(sample->lines);
		struct outcome resolved = {0};
		const char *subject = sample->subject;
		if (sample->operation != POLICY_TERMINAL) {
			file_resolve_wait(world, world_path(world, subject), &resolved);
			assert_true(resolved.is_ok);
			subject = resolved.path;
		}
		struct policy_verdict verdict = decide(world, policy, sample->operation, subject);
		if (verdict.decision != sample->decision) {
			fail_msg("%s: %s (%s)", sample->subject,
				policy_decision_name(verdict.decision), verdict.rule);
		}
		assert_string_equal(verdict.rule, sample->rule);
		policy_destroy(policy);
	}
}

/* Policy decides about a path of the editor as about the same path in the sandbox. */
static void the_editors_paths_are_decided_on_as_the_sandboxes(struct world *world)
{
	static const char *const lines[] = {"mode = pass", "deny = write guarded/**", NULL};
	static const char *const names[] = {"guarded/f", "free/f"};
	struct policy *policy = make_policy(lines);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char local[PATH_MAX];
		char runtime[PATH_MAX];
		size_t prefix;
		struct span root;
		snprintf(local, sizeof(local), "%.3000s/%s", world->local_root, names[i]);
		assert_true(path_map_find(
			&fixture.map, PATH_TO_RUNTIME, span_of(local), &prefix, &root));
		snprintf(runtime, sizeof(runtime), "%.*s%s", (int)root.len, root.data,
			local + prefix);
		assert_string_equal(runtime, world_path(world, names[i]));
		struct policy_verdict verdict = decide(world, policy, POLICY_WRITE, runtime);
		assert_int_equal(verdict.decision, i == 0 ? REJECT : ALLOW);
	}
	policy_destroy(policy);
}

/* ---- links that change meanwhile ---- */

struct race {
	int refused; // by policy
	int served;
	int caught; // the path that policy decided about had become a link
};

static void try_call(struct race *race, const struct answer *answer)
{
	if (!answer->is_failure) {
		assert_null(strstr(answer->text, "secret"));
		race->served++;
	} else if (strcmp(answer->code, "SECURITY_VIOLATION") == 0) {
		race->caught++; // otherwise it was missing at that moment
	}
}

/* Like the relay: resolves, decides, and serves what was decided about. */
static void try_once(struct world *world, const struct policy *policy, struct race *race)
{
	struct outcome resolved;
	const char *path = world_path(world, "swap/f");
	file_resolve_wait(world, path, &resolved);
	if (!resolved.is_ok) {
		return;
	}
	if (decide(world, policy, POLICY_READ, resolved.path).decision == REJECT) {
		race->refused++;
		return;
	}
	fixture.resolved = resolved.path;
	int read = ask("fs/read_text_file", "\"path\":\"%s\"", path);
	int write = ask("fs/write_text_file", "\"path\":\"%s\",\"content\":\"open\"", path);
	try_call(race, wait_for(read));
	try_call(race, wait_for(write));
	fixture.resolved = NULL;
}

/* The decisive moment of the race, without a race. */
static void swap_between(struct world *world)
{
	struct outcome resolved;
	const char *path = world_path(world, "swap/f");
	world_shell(world, "rm -rf swap; mkdir swap; printf open > swap/f");
	file_resolve_wait(world, path, &resolved);
	assert_true(resolved.is_ok);
	world_shell(world, "rm -r swap; ln -s guarded swap");
	fixture.resolved = resolved.path;
	int read = ask("fs/read_text_file", "\"path\":\"%s\"", path);
	int write = ask("fs/write_text_file", "\"path\":\"%s\",\"content\":\"open\"", path);
	assert_string_equal(wait_for(read)->code, "SECURITY_VIOLATION");
	assert_string_equal(wait_for(write)->code, "SECURITY_VIOLATION");
	fixture.resolved = NULL;
}

static void a_swapped_link_does_not_get_round_a_rule(struct world *world)
{
	enum { TRIES_MAX = 500, ENOUGH = 5 };
	static const char *const rules[] = {
		"mode = approve-all", "deny = read guarded/**", "deny = write guarded/**", NULL};
	struct policy *policy = make_policy(rules);
	struct race race = {0};
	struct run run;
	world_shell(world, "mkdir real guarded; printf open > real/f; printf secret > guarded/f");
	run_swapper(&run, world, "guarded");
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	for (int i = 0; i < TRIES_MAX && clock_now_ms() < deadline_ms; i++) {
		try_once(world, policy, &race);
		if (race.refused >= ENOUGH && race.served >= ENOUGH && race.caught >= ENOUGH) {
			break;
		}
	}
	exec_kill_tree(run.exec);
	run_expect(&run, "sxe");
	run_destroy(&run);
	policy_destroy(policy);
	assert_true(race.refused + race.served + race.caught > 0);
	swap_between(world);
	assert_string_equal(world_shell(world, "cat guarded/f; ls -A guarded | wc -l"), "secret1");
}

static const struct world_case cases[] = {
	{"modes and rules decide on what is meant", modes_and_rules_decide_on_what_is_meant},
	{"the editor's paths are decided on as the sandbox's",
		the_editors_paths_are_decided_on_as_the_sandboxes},
	{"a swapped link does not get round a rule", a_swapped_link_does_not_get_round_a_rule},
};
const struct world_table policy_cases = {cases, ARRAY_LENGTH(cases), tools_begin, tools_end};
