/* SPDX-License-Identifier: MIT */
#include "broker/cli/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/words.h"
#include "broker/cli/command.h"
#include "broker/relay/relay_mcp_exec.h"

struct check {
	const struct check_means *means;
	struct error *err;
	char **names;  // owned; of the settings that the provider has resolved
	char **values; // owned; one for each name
	char **warnings;
	bool *out_found;
	bool has_failed;
	bool has_facts; // at least one was printed
};

static void on_fact(void *data, const char *name, const char *value)
{
	struct check *check = data;
	if (check->means->is_json) {
		words_append(&check->names, name);
		words_append(&check->values, value);
	} else {
		if (!check->has_facts) {
			puts("resolved");
		}
		check->has_facts = true;
		config_print_fact(name, value);
	}
}

static void on_done(void *data, const struct error *err)
{
	struct check *check = data;
	if (err) {
		*check->err = *err;
		check->has_failed = true;
	}
	ev_break(check->means->loop, EVBREAK_ALL);
}

static const struct provider_describe_listener listener = {.on_fact = on_fact, .on_done = on_done};

/* ---- as JSON ---- */

static void write_facts(struct json_writer *writer, const struct check *check)
{
	json_write_key(writer, "resolved");
	json_write_array(writer);
	for (size_t i = 0; check->names && check->names[i]; i++) {
		json_write_object(writer);
		json_write_member(writer, "name", check->names[i]);
		json_write_member(writer, "value", check->values[i]);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

static void write_check(struct json_writer *writer, const void *data)
{
	const struct check *check = data;
	const struct check_means *means = check->means;
	*check->out_found = config_write(means->config, means->environment, writer);
	json_write_member_words(writer, "warnings", (const char *const *)check->warnings);
	write_facts(writer, check);
}

/* ---- as text ---- */

static void print_warnings(const struct check *check)
{
	for (char **warning = check->warnings; *warning; warning++) {
		printf("%-20s%s\n", warning == check->warnings ? "warning" : "", *warning);
	}
}

/* ---- both ---- */

/* A session says the same. */
static void warn_of_mcp_exec(struct check *check)
{
	char text[ERROR_TEXT_MAX];
	const struct profile *profile = &check->means->config->profile;
	const char *reason = profile->mcp_exec ? relay_mcp_exec_excludes(profile, "") : NULL;
	if (reason) {
		text_format(text, sizeof(text), "mcp-exec = yes has no effect: %s", reason);
		words_append(&check->warnings, text);
	}
}

static bool describe(struct check *check)
{
	const struct check_means *means = check->means;
	if (!means->provider || !provider_can_describe(means->provider)) {
		return true;
	}
	if (!provider_describe(means->provider, &means->config->profile.settings, &listener, check,
		    check->err)) {
		return false;
	}
	ev_run(means->loop, 0);
	return !check->has_failed;
}

static bool run(struct check *check)
{
	const struct check_means *means = check->means;
	if (!means->is_json) {
		*check->out_found = config_print(means->config, means->environment);
	}
	if (means->provider) {
		check->warnings = provider_warnings(
			means->provider, &means->config->profile.settings, check->err);
		if (!check->warnings) {
			return false;
		}
		warn_of_mcp_exec(check);
		if (!means->is_json) {
			print_warnings(check);
		}
	}
	return describe(check) &&
	       (!means->is_json || command_print_json(write_check, check, check->err));
}

bool check_run(const struct check_means *means, bool *out_found, struct error *err)
{
	struct check check = {.means = means, .err = err, .out_found = out_found};
	bool ok = run(&check);
	words_free(check.names);
	words_free(check.values);
	words_free(check.warnings);
	return ok;
}
