/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/words.h"
#include "broker/config/config_keys.h"
#include "broker/config/config_shown.h"
#include "broker/config/mcp_url.h"

/* Writes NAME=value; a secret's value is null. */
static void write_variables(
	struct json_writer *writer, const char *key, char *const *entries, size_t count)
{
	json_write_key(writer, key);
	json_write_object(writer);
	for (size_t i = 0; i < count; i++) {
		size_t len = strcspn(entries[i], "=");
		char *name = mem_strndup((struct span){entries[i], len});
		bool is_shown = entries[i][len] && !environment_name_is_secret(entries[i], len);
		json_write_member(writer, name, is_shown ? entries[i] + len + 1 : NULL);
		free(name);
	}
	json_write_object_end(writer);
}

static void write_header_names(struct json_writer *writer, char *const *headers)
{
	json_write_key(writer, "headers");
	json_write_array(writer);
	for (; *headers; headers++) {
		json_write_string(writer, (struct span){*headers, strcspn(*headers, ":")});
	}
	json_write_array_end(writer);
}

static void write_mcp_server(struct json_writer *writer, const struct mcp_server *server)
{
	size_t secrets = words_count(server->secret_names);
	json_write_object(writer);
	json_write_member(writer, "name", server->name);
	json_write_member(writer, "type", mcp_type_name(server->type));
	if (server->type == MCP_STDIO) {
		json_write_member(writer, "command", server->command);
		json_write_member_words(writer, "args", (const char *const *)server->args);
	} else {
		size_t size = strlen(server->url) + 1;
		char *shown = mem_alloc(size);
		json_write_member(writer, "url", mcp_url_shown(shown, size, server->url));
		free(shown);
	}
	write_variables(writer, "env", server->env, words_count(server->env) - secrets);
	json_write_member_words(writer, "secretEnv", (const char *const *)server->secret_names);
	write_header_names(writer, server->headers);
	json_write_object_end(writer);
}

static bool is_first(const struct settings *settings, const struct setting *wanted)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, wanted->key) == 0) {
			return setting == wanted;
		}
	}
	return false;
}

/* Writes each key that was written, once; then the numbers that apply by default. */
static void write_settings(struct json_writer *writer, const struct profile *profile)
{
	size_t count;
	const struct setting_key *keys = section_keys(SECTION_PROFILE, &count);
	const struct settings *settings = &profile->settings;
	json_write_object(writer);
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		const struct setting_key *key = setting_key_find(keys, count, setting->key);
		bool is_shown = config_is_shown(setting->key) || (key && config_is_number(key));
		if (is_shown && is_first(settings, setting)) {
			char **values = words_of_settings(settings, setting->key);
			json_write_member_words(writer, setting->key, (const char *const *)values);
			words_free(values);
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (config_is_number(&keys[i]) && !settings_find(settings, keys[i].name)) {
			json_write_key(writer, keys[i].name);
			json_write_array(writer);
			json_write_text(writer, keys[i].fallback);
			json_write_array_end(writer);
		}
	}
	json_write_object_end(writer);
}

static void write_agent(struct json_writer *writer, const struct profile *profile,
	const char *const *environment, bool *out_found)
{
	char *found = profile->runs_here ? config_find_program(profile->agent_argv[0],
						   profile->agent_env, environment)
	                                 : NULL;
	json_write_key(writer, "agent");
	json_write_object(writer);
	json_write_member(writer, "name", profile->agent_name);
	json_write_member_words(writer, "argv", (const char *const *)profile->agent_argv);
	json_write_member(writer, "program", found);
	json_write_object_end(writer);
	*out_found = found || !profile->runs_here;
	free(found);
}

bool config_write(
	const struct config *config, const char *const *environment, struct json_writer *writer)
{
	const struct profile *profile = &config->profile;
	const char *format = section_key(SECTION_BROKER, "log-format")->choices[config->log_format];
	const char *level = section_key(SECTION_BROKER, "log-level")->choices[config->log_level];
	const char *line;
	bool is_found;
	json_write_member(writer, "configuration", config->file);
	json_write_member_bool(writer, "configurationRead", config->file_was_read);
	json_write_member(writer, "profile", profile->name);
	json_write_member(writer, "backend", profile->backend);
	json_write_member(writer, "workspace", config->workspace);
	write_agent(writer, profile, environment, &is_found);
	write_variables(writer, "env", profile->agent_env, words_count(profile->agent_env));
	json_write_member_words(writer, "secretEnv", (const char *const *)profile->secret_env);
	json_write_member(writer, "toolhost", config_toolhost_text(profile));
	json_write_key(writer, "mcp");
	json_write_array(writer);
	for (size_t i = 0; i < profile->mcp_count; i++) {
		write_mcp_server(writer, &profile->mcp[i]);
	}
	json_write_array_end(writer);
	json_write_key(writer, "policy");
	json_write_array(writer);
	for (size_t i = 0; (line = policy_line(profile->policy, i)) != NULL; i++) {
		json_write_text(writer, line);
	}
	json_write_array_end(writer);
	json_write_key(writer, "settings");
	write_settings(writer, profile);
	json_write_member(writer, "logLevel", level);
	json_write_member(writer, "logFormat", format);
	json_write_member(writer, "trace", config->trace);
	json_write_member(writer, "audit", config->audit);
	return is_found;
}
