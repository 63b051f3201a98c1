/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/config/config.h"
#include "broker/config/config_shown.h"
#include "broker/config/config_keys.h"
#include "broker/config/known_agents.h"
#include "broker/config/mcp_url.h"
#include "providers/agent_env.h"

enum { LABEL_WIDTH = 20 };

static void print_label(const char *label)
{
	printf("%-*s ", LABEL_WIDTH - 1, label); // a space even after the longest label
}

static void print_line(const char *label, const char *text)
{
	print_label(label);
	puts(text);
}

/* Prints the whole value, quoted as in the configuration file. */
static void print_quoted(const char *label, const char *value)
{
	size_t size = strlen(value) * 4 + 16;
	char *quoted = mem_alloc(size);
	print_line(label, setting_quote(quoted, size, value));
	free(quoted);
}

static void print_quoted_list(const char *label, char *const *values)
{
	for (; *values; values++) {
		print_quoted(label, *values);
	}
}

/* ---- the agent's program ---- */

/* The PATH that the agent will have: the last one that is set. */
static const char *agent_path(char *const *agent_env, const char *const *environment)
{
	const char *path = environment_get(environment, "PATH");
	for (char *const *entry = agent_env; *entry; entry++) {
		if (strncmp(*entry, "PATH=", 5) == 0) {
			path = *entry + 5;
		}
	}
	return path;
}

char *config_find_program(const char *name, char *const *agent_env, const char *const *environment)
{
	if (strchr(name, '/')) {
		return path_is_program(name) ? mem_strdup(name) : NULL;
	}
	const char *path = agent_path(agent_env, environment);
	return path ? path_find_program(name, path) : NULL;
}

static bool print_program(const struct profile *profile, const char *const *environment)
{
	const char *name = profile->agent_argv[0];
	if (!profile->runs_here) {
		print_line("program", "will be looked for in the sandbox");
		return true;
	}
	const char *path = agent_path(profile->agent_env, environment);
	char *found = config_find_program(name, profile->agent_env, environment);
	const struct known_agent *known =
		known_agent_of_argv((const char *const *)profile->agent_argv);
	print_label("program");
	if (found) {
		puts(found);
	} else if (strchr(name, '/')) {
		puts("not found, or not executable");
	} else {
		printf("not found on PATH (%s)\n", path ? path : "PATH is not set");
	}
	if (!found && known && !strchr(name, '/')) {
		print_line("  install", known->install);
	}
	free(found);
	return found != NULL;
}

/* ---- sections ---- */

/*
 * Prints NAME=value. Of a variable that may hold a secret it prints only the name, because people
 * share this output.
 */
static void print_variables(const char *label, char *const *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t len = strcspn(entries[i], "=");
		if (environment_name_is_secret(entries[i], len)) {
			print_label(label);
			printf("\"%.*s=\" and a value that is not shown\n", (int)len, entries[i]);
		} else {
			print_quoted(label, entries[i]);
		}
	}
}

static void print_agent(const struct profile *profile)
{
	print_quoted("agent", profile->agent_name);
	for (size_t i = 0; profile->agent_argv[i]; i++) {
		char label[LABEL_WIDTH];
		snprintf(label, sizeof(label), "  argv[%zu]", i);
		print_quoted(label, profile->agent_argv[i]);
	}
}

static void print_policy(const struct policy *policy)
{
	const char *line;
	for (size_t i = 0; (line = policy_line(policy, i)) != NULL; i++) {
		print_line(i == 0 ? "policy" : "", line);
	}
}

bool config_is_number(const struct setting_key *key)
{
	return key->type == SETTING_COUNT || key->type == SETTING_BYTES ||
	       key->type == SETTING_DURATION;
}

bool config_is_shown(const char *key)
{
	static const char *const names[] = {"editor-terminals", "mcp-exec", "setup", "copy", "sync",
		"persistence", "transport", "include", "exclude", "guard-paths", "checkpoints",
		"network", "allow-host", "allow-cidr", "public-ingress", "required"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (strcmp(key, names[i]) == 0) {
			return true;
		}
	}
	/* The agent's variables have lines of their own, without values that may be secret. */
	if (strcmp(key, SETTING_AGENT_ENV) == 0) {
		return false;
	}
	size_t count;
	const struct setting_key *keys = section_keys(SECTION_PROFILE, &count);
	return !setting_key_find(keys, count, key);
}

/* Prints the written keys that have no default, either the profile's or the provider's. */
static void print_written(const struct profile *profile, bool is_providers)
{
	size_t count;
	const struct setting_key *keys = section_keys(SECTION_PROFILE, &count);
	LIST_FOR_EACH(setting, &profile->settings.list, struct setting, link) {
		if (config_is_shown(setting->key) &&
			!setting_key_find(keys, count, setting->key) == is_providers) {
			print_quoted(setting->key, setting->value ? setting->value : "true");
		}
	}
}

/* Prints all limits and deadlines, then the keys that only the provider knows. */
static void print_settings(const struct profile *profile)
{
	size_t count;
	const struct setting_key *keys = section_keys(SECTION_PROFILE, &count);
	print_written(profile, false);
	for (size_t i = 0; i < count; i++) {
		if (config_is_number(&keys[i])) {
			const char *value = settings_get(&profile->settings, keys[i].name);
			print_line(keys[i].name, value ? value : keys[i].fallback);
		}
	}
	print_written(profile, true);
}

const char *config_toolhost_text(const struct profile *profile)
{
	return section_key(SECTION_PROFILE, "toolhost")->choices[profile->toolhost];
}

/* Prints only the names of headers, and the URL without parts that may be secret. */
static void print_mcp_server(const struct mcp_server *server)
{
	print_quoted("mcp", server->name);
	print_line("  type", mcp_type_name(server->type));
	if (server->type == MCP_STDIO) {
		print_quoted("  command", server->command);
		print_quoted_list("  arg", server->args);
	} else {
		size_t size = strlen(server->url) + 1;
		char *shown = mem_alloc(size);
		print_quoted("  url", mcp_url_shown(shown, size, server->url));
		free(shown);
	}
	size_t secrets = words_count(server->secret_names);
	print_variables("  env", server->env, words_count(server->env) - secrets);
	for (char **name = server->secret_names; *name; name++) {
		print_line("  secret-env", *name);
	}
	for (char **header = server->headers; *header; header++) {
		print_label("  header");
		printf("%.*s\n", (int)strcspn(*header, ":"), *header);
	}
}

void config_print_fact(const char *name, const char *value)
{
	char label[64];
	text_format(label, sizeof(label), "  %s", name);
	print_quoted(label, value);
}

bool config_print(const struct config *config, const char *const *environment)
{
	const struct profile *profile = &config->profile;
	print_label("configuration");
	printf("%s%s\n", config->file ? config->file : "none: HOME is not set",
		config->file && !config->file_was_read ? " (does not exist)" : "");
	print_quoted("profile", profile->name);
	print_line("backend", profile->backend);
	print_line("workspace", config->workspace ? config->workspace : "as the editor says");
	print_agent(profile);
	bool found = print_program(profile, environment);
	print_variables("env", profile->agent_env, words_count(profile->agent_env));
	for (char **name = profile->secret_env; *name; name++) {
		print_line("secret-env", *name);
	}
	print_line("toolhost", config_toolhost_text(profile));
	for (size_t i = 0; i < profile->mcp_count; i++) {
		print_mcp_server(&profile->mcp[i]);
	}
	print_policy(profile->policy);
	print_settings(profile);
	print_line(
		"log-level", section_key(SECTION_BROKER, "log-level")->choices[config->log_level]);
	print_line("log-format",
		section_key(SECTION_BROKER, "log-format")->choices[config->log_format]);
	print_line("trace", config->trace ? config->trace : "none");
	print_line("audit", config->audit ? config->audit : "none");
	return found;
}
