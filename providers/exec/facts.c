/* SPDX-License-Identifier: MIT */
#include "providers/exec/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/script_line.h"
#include "providers/ssh/run_note.h"

enum { VARIABLES_MAX = 512 };

void exec_facts_init(struct exec_facts *facts)
{
	*facts = (struct exec_facts){.environment = mem_alloc_zero(sizeof(*facts->environment))};
}

void exec_facts_finish(struct exec_facts *facts)
{
	words_free(facts->environment);
	free(facts->run_name);
	free(facts->node);
	free(facts->left);
}

void exec_facts_add_variable(struct exec_facts *facts, const char *entry)
{
	static const char *const own[] = {"PWD", "OLDPWD", "SHLVL", "_"};
	size_t len = strcspn(entry, "=");
	char *name = mem_strndup((struct span){entry, len});
	const char *const *there = (const char *const *)facts->environment;
	bool is_own = false;
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		is_own = is_own || strcmp(name, own[i]) == 0;
	}
	if (entry[len] == '=' && environment_name_is_valid(entry, len) && !is_own &&
		words_count(facts->environment) < VARIABLES_MAX && !environment_get(there, name)) {
		words_append(&facts->environment, entry);
	}
	free(name);
}

void exec_facts_take(struct exec_facts *facts, const char *line, const char *token)
{
	const char *rest;
	if (script_take_word(line, "env", &rest) || script_take_word(line, "set", &rest)) {
		exec_facts_add_variable(facts, rest);
	} else if (script_take_word(line, "node", &rest)) {
		mem_set_text(&facts->node, rest);
	} else if (script_take_word(line, "run", &rest) && ssh_run_is_named(rest, token)) {
		mem_set_text(&facts->run_name, rest);
	} else if (script_take_word(line, "ended", &rest)) {
		facts->ended += (unsigned)strtoul(rest, NULL, 10);
	} else if (script_take_word(line, "left", &rest)) {
		mem_set_text(&facts->left, rest);
	}
}

const char *exec_facts_path(const struct exec_facts *facts, const char *name, const char *fallback)
{
	const char *value = environment_get((const char *const *)facts->environment, name);
	return value && value[0] == '/' ? value : fallback;
}

void exec_facts_choose_home(struct exec_facts *facts)
{
	for (char **entry = facts->environment; entry && *entry; entry++) {
		if (strcmp(*entry, "HOME=/") == 0) {
			mem_set_text(entry, "HOME=/tmp");
		}
	}
}

void exec_facts_explain(
	const struct exec_facts *facts, const struct exec_unfit *unfit, struct error *err)
{
	char *shown = path_quote(span_of(facts->left ? facts->left : unfit->why));
	if (facts->left) {
		error_set_reason(err, ERROR_UNAVAILABLE, "AGENT_STILL_RUNNING",
			"processes of a lost connection still run in %s and could not be ended, "
			"so no other agent starts there: %s; end them there, or wait %lld s "
			"(link-grace) until they end",
			unfit->place, shown, unfit->grace_ms / 1000);
	} else if (unfit->has_ended) {
		error_set_reason(err, ERROR_UNAVAILABLE, "EXEC_COMMAND_FAILED",
			"no runner could be started in %s: %s", unfit->place, shown);
	} else {
		error_set_reason(err, ERROR_UNAVAILABLE, "EXEC_NO_RUNNER",
			"the runner cannot work in %s: %s", unfit->place, shown);
	}
	if (*unfit->before && !facts->left) {
		text_append(err->text, sizeof(err->text), "; before that: %s", unfit->before);
	}
	free(shown);
}

bool exec_facts_say_ended(const struct exec_facts *facts, const char *place, char *out, size_t size)
{
	if (facts->ended > 0) {
		text_format(out, size,
			"The connection to %s was lost, and %u process%s from it still ran "
			"there: the broker ended them before it started anything else",
			place, facts->ended, facts->ended == 1 ? "" : "es");
	}
	return facts->ended > 0;
}
