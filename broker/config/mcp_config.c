/* SPDX-License-Identifier: MIT */
#include "broker/config/mcp_config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/span.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/config/config.h"
#include "broker/config/mcp_url.h"

static const char *const type_names[] = {
	[MCP_STDIO] = "stdio", [MCP_HTTP] = "http", [MCP_SSE] = "sse", NULL};

const struct setting_key mcp_keys[] = {
	{.name = "type",
		.type = SETTING_CHOICE,
		.choices = type_names,
		.help = "how the agent reaches it: stdio with a command, http with a url"},
	{.name = "command",
		.type = SETTING_TEXT,
		.help = "the program in the sandbox: a path, or a name on PATH"},
	{.name = "arg", .type = SETTING_LIST, .help = "one argument of the program"},
	{.name = "env", .type = SETTING_ENV_LIST, .help = "NAME=value for the program"},
	{.name = "secret-env",
		.type = SETTING_NAME_LIST,
		.help = "a variable passed on from the broker's environment"},
	{.name = "url", .type = SETTING_TEXT, .help = "the URL by which the agent reaches it"},
	{.name = "header", .type = SETTING_LIST, .help = "NAME: value, sent with each request"},
};
const size_t mcp_key_count = ARRAY_LENGTH(mcp_keys);

const char *mcp_type_name(enum mcp_type type)
{
	assert((size_t)type < ARRAY_LENGTH(type_names) - 1);
	return type_names[type];
}

static enum mcp_type type_of(const struct settings *settings)
{
	const char *name = settings_get(settings, "type");
	if (!name) {
		return settings_get(settings, "url") ? MCP_HTTP : MCP_STDIO;
	}
	int type = MCP_STDIO;
	while (strcmp(type_names[type], name) != 0) {
		type++;
		assert(type_names[type]); // the key was checked
	}
	return (enum mcp_type)type;
}

/* ---- checking ---- */

/* The keys for a server that is a program, and those for one that has a URL. */
static const struct {
	const char *name;
	bool is_for_url;
} form_keys[] = {
	{"command", false},
	{"arg", false},
	{"env", false},
	{"secret-env", false},
	{"url", true},
	{"header", true},
};

static bool check_form(const struct settings *settings, const char **out_key, struct error *err)
{
	enum mcp_type type = type_of(settings);
	bool has_url = type != MCP_STDIO;
	*out_key = NULL;
	if (!settings_get(settings, "command") && !settings_get(settings, "url")) {
		return error_set(
			err, ERROR_CONFIG, "expected command = PROGRAM, or url = http://…");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(form_keys); i++) {
		if (form_keys[i].is_for_url != has_url &&
			settings_get(settings, form_keys[i].name)) {
			*out_key = form_keys[i].name;
			return error_set(err, ERROR_CONFIG, "not expected with %s = %s",
				settings_get(settings, "type") ? "type"
				: has_url                      ? "url"
							       : "command",
				settings_get(settings, "type") ? type_names[type] : "…");
		}
	}
	return true;
}

/* A header's name is a token (RFC 9110, 5.6.2). */
static bool is_token(struct span text)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";
	for (size_t i = 0; i < text.len; i++) {
		char byte = text.data[i];
		bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		                 (byte >= '0' && byte <= '9');
		if (!is_letter && !(byte && strchr(marks, byte))) {
			return false;
		}
	}
	return text.len > 0;
}

static bool header_is_valid(const char *header)
{
	size_t len = strcspn(header, ":");
	if (header[len] != ':' || !is_token((struct span){header, len})) {
		return false;
	}
	for (const char *at = header + len + 1; *at; at++) {
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f) {
			return false;
		}
	}
	return true;
}

/* The text never repeats a value, which may be a secret. */
static bool check_headers(const struct settings *settings, struct error *err)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, "header") == 0 && !header_is_valid(setting->value)) {
			return error_set(err, ERROR_CONFIG,
				"expected NAME: VALUE on one line, with the NAME of an HTTP "
				"header");
		}
	}
	return true;
}

bool mcp_config_check(const struct settings *settings, const char **out_key, struct error *err)
{
	const char *command = settings_get(settings, "command");
	const char *url = settings_get(settings, "url");
	if (!check_form(settings, out_key, err)) {
		return false;
	}
	if (command && strpbrk(command, " \t") && !strchr(command, '/')) {
		*out_key = "command";
		return error_set(err, ERROR_CONFIG,
			"expected the program alone; write each argument on its own line: arg = …");
	}
	if (url && !mcp_url_is_http(url)) {
		*out_key = "url";
		return error_set(err, ERROR_CONFIG, "expected http://HOST… or https://HOST…");
	}
	*out_key = "header";
	return check_headers(settings, err);
}

/* ---- reading ---- */

static char *copy_value(const struct settings *settings, const char *key)
{
	const char *value = settings_get(settings, key);
	return value ? mem_strdup(value) : NULL;
}

static bool add_secret(struct mcp_server *server, const char *name, const char *const *environment,
	struct error *err)
{
	const char *value = environment_get(environment, name);
	if (!value) {
		return error_set(err, ERROR_CONFIG,
			"the variable %s is not set in the broker's environment", name);
	}
	size_t size = strlen(name) + strlen(value) + 2;
	char *entry = mem_alloc(size);
	text_whole(entry, size, "%s=%s", name, value);
	words_append(&server->env, entry);
	free(entry);
	return true;
}

bool mcp_server_load(struct mcp_server *server, const char *name, const struct settings *settings,
	const char *const *environment, struct error *err)
{
	*server = (struct mcp_server){.name = mem_strdup(name), .type = type_of(settings)};
	server->command = copy_value(settings, "command");
	server->url = copy_value(settings, "url");
	server->args = words_of_settings(settings, "arg");
	server->env = words_of_settings(settings, "env");
	server->headers = words_of_settings(settings, "header");
	server->secret_names = words_of_settings(settings, "secret-env");
	for (char **secret = server->secret_names; *secret; secret++) {
		if (!add_secret(server, *secret, environment, err)) {
			return false;
		}
	}
	return true;
}

void mcp_server_finish(struct mcp_server *server)
{
	free(server->name);
	free(server->command);
	free(server->url);
	words_free(server->args);
	words_wipe_free(server->env);
	words_free(server->headers);
	words_free(server->secret_names);
	*server = (struct mcp_server){0};
}

/* ---- writing ---- */

/* Writes [{"name":…,"value":…}] from "NAME=value" or "NAME: value". */
static void write_pairs(
	struct json_writer *writer, const char *key, char *const *pairs, char separator)
{
	json_write_key(writer, key);
	json_write_array(writer);
	for (; *pairs; pairs++) {
		const char *mark = strchr(*pairs, separator);
		const char *value = mark + 1;
		if (separator == ':') {
			value += strspn(value, " \t");
		}
		json_write_object(writer);
		json_write_member_string(
			writer, "name", (struct span){*pairs, (size_t)(mark - *pairs)});
		json_write_member(writer, "value", value);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

void mcp_server_write(const struct mcp_server *server, struct json_writer *writer)
{
	json_write_object(writer);
	if (server->type != MCP_STDIO) {
		json_write_member(writer, "type", mcp_type_name(server->type));
		json_write_member(writer, "name", server->name);
		json_write_member(writer, "url", server->url);
		write_pairs(writer, "headers", server->headers, ':');
		json_write_object_end(writer);
		return;
	}
	json_write_member(writer, "name", server->name);
	json_write_member(writer, "command", server->command);
	json_write_member_words(writer, "args", (const char *const *)server->args);
	write_pairs(writer, "env", server->env, '=');
	json_write_object_end(writer);
}
