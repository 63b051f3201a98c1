/* SPDX-License-Identifier: MIT */
#include "broker/cli/policy_explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real_path.h"
#include "broker/cli/command.h"
#include "broker/cli/policy_hosts.h"
#include "broker/gate/grant_answer.h"
#include "broker/policy/subject.h"

struct explanation {
	const struct config *config;
	char *root; // the session's directory, links resolved
	struct subject subject;
	struct grant_decision decision;
	bool is_guarded;
};

/* ---- the arguments ---- */

/* Resolves links, because rules apply to the file that a path leads to. */
static void write_path(struct json_writer *writer, const char *root, const char *path)
{
	char *absolute = path[0] == '/' ? mem_strdup(path) : path_join(root, path);
	char *resolved = real_path(absolute);
	json_write_member(writer, "path", resolved);
	free(resolved);
	free(absolute);
}

static void write_command(struct json_writer *writer, const char *const *words, size_t count)
{
	json_write_member(writer, "command", words[0]);
	json_write_key(writer, "args");
	json_write_array(writer);
	for (size_t i = 1; i < count; i++) {
		json_write_text(writer, words[i]);
	}
	json_write_array_end(writer);
}

/* Writes the arguments as the params of _broker/policy/explain. */
static void write_params(struct json_writer *writer, enum policy_operation operation,
	const struct options *options, const char *root)
{
	const char *const *words = options->words + 1;
	size_t count = options->word_count - 1;
	json_write_object(writer);
	if (operation == POLICY_GRANT) {
		json_write_member(writer, "toolKind", words[0]);
		bool is_command = strcmp(words[0], "execute") == 0;
		words++;
		count--;
		operation = is_command ? POLICY_TERMINAL : POLICY_READ;
	}
	if (operation == POLICY_TERMINAL && count > 0) {
		write_command(writer, words, count);
	} else if (count > 0) {
		write_path(writer, root, words[0]);
	}
	json_write_object_end(writer);
}

static bool read_words(
	struct explanation *explanation, const struct options *options, struct error *err)
{
	enum policy_operation operation;
	struct buf params;
	struct json_writer writer;
	if (!subject_operation(options->words[0], &operation)) {
		return error_set(err, ERROR_CONFIG,
			"policy explain: expected read PATH, write PATH, terminal COMMAND "
			"[ARG...], "
			"grant KIND [PATH] or connect HOST[:PORT], got %s",
			options->words[0]);
	}
	bool is_file = operation == POLICY_READ || operation == POLICY_WRITE;
	if (is_file && options->word_count > 2) {
		return error_set(err, ERROR_CONFIG, "policy explain %s: expected one path",
			options->words[0]);
	}
	buf_init(&params, SIZE_MAX / 2);
	json_write_begin(&writer, &params);
	write_params(&writer, operation, options, explanation->root);
	bool ok = json_write_end(&writer, err) &&
	          subject_read_params(&explanation->subject, operation, buf_span(&params), err);
	buf_finish(&params);
	return ok;
}

/* ---- the result ---- */

/* A write that the policy allows, but that guard-paths holds until the user says yes. */
static bool is_guarded(const struct explanation *explanation)
{
	const struct guard_paths *guard = explanation->config->profile.sync.guard_paths;
	char *const *paths = explanation->subject.paths;
	const char *root = explanation->root;
	return guard && explanation->subject.operation == POLICY_WRITE && paths &&
	       strcmp(paths[0], root) != 0 && path_is_at_or_below(paths[0], root) &&
	       guard_paths_have(guard, "", paths[0] + strlen(root) + 1, false);
}

static void write_explanation(struct json_writer *writer, const void *data)
{
	const struct explanation *explanation = data;
	const struct grant_decision *decision = &explanation->decision;
	json_write_member(
		writer, "operation", policy_operation_name(explanation->subject.operation));
	json_write_member(writer, "decision", policy_decision_name(decision->verdict.decision));
	json_write_member(writer, "rule", decision->verdict.rule);
	json_write_member(writer, "source", grant_source_name(decision->source));
	json_write_member_bool(writer, "guarded", explanation->is_guarded);
}

static void print_explanation(const struct explanation *explanation)
{
	const struct policy_verdict *verdict = &explanation->decision.verdict;
	const char *word = verdict->decision == POLICY_PENDING        ? "ask"
	                   : grant_decision_allows(verdict->decision) ? "allow"
	                                                              : "deny";
	printf("%-20s%s\n%-20s%s\n", "decision", word, "because of", verdict->rule);
	if (explanation->is_guarded) {
		printf("%-20s%s\n", "guard-paths",
			"the user is asked before the file changes here");
	}
}

static bool explain(
	struct explanation *explanation, const struct options *options, struct error *err)
{
	const char *directory = explanation->config->workspace;
	explanation->root = realpath(directory ? directory : ".", NULL);
	if (!explanation->root) {
		return error_set_errno(err, errno, "the working directory");
	}
	if (!read_words(explanation, options, err)) {
		return false;
	}
	const char *const roots[] = {explanation->root, NULL};
	explanation->decision = grant_decide(
		explanation->config->profile.policy, NULL, &explanation->subject, roots);
	explanation->is_guarded = is_guarded(explanation);
	bool ok = true;
	if (options->flags & OPTION_JSON) {
		ok = command_print_json(write_explanation, explanation, err);
	} else {
		print_explanation(explanation);
	}
	subject_finish(&explanation->subject);
	return ok;
}

bool policy_explain_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err)
{
	struct config config;
	struct explanation explanation = {.config = &config};
	if (!config_load(&config, options, registry, environment, err)) {
		return false;
	}
	bool ok = strcmp(options->words[0], "connect") == 0
	                  ? policy_hosts_explain(&config, options, environment, err)
	                  : explain(&explanation, options, err);
	free(explanation.root);
	config_finish(&config);
	return ok;
}
