/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/profile_keys.h"

#include <string.h>

#include "base/environment.h"
#include "base/text.h"
#include "providers/agent_env.h"
#include "providers/local/request.h"

enum { HTTPS_PORT = 443 };

static const char key[] = "key";
static const char scheme[] = "https://";

/* Known keys, and the variable in which their programs look for the address. */
static const struct known_key {
	const char *name;
	const char *url_name;
	const char *url;
	const char *header;
} known[] = {
	{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", "x-api-key"},
	{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", NULL},
	{"GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com",
		"x-goog-api-key"},
	{"OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1", NULL},
};

static const struct known_key *find_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		if (strcmp(known[i].name, name) == 0) {
			return &known[i];
		}
	}
	return NULL;
}

bool profile_keys_are_wanted(const struct settings *settings)
{
	return settings_get(settings, key) != NULL;
}

/* ---- the address ---- */

static bool read_port(struct span text, uint16_t *out)
{
	unsigned port = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return false;
		}
		port = port * 10 + (unsigned)(text.data[i] - '0');
	}
	*out = (uint16_t)port;
	return text.len > 0 && text.len <= 5 && text.data[0] != '0' && port <= UINT16_MAX;
}

/* Accepts only characters that need no escape, and no slashes at the end. */
static bool read_path(struct profile_key *out, const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._~/";
	size_t len = strlen(text);
	while (len > 0 && text[len - 1] == '/') {
		len--;
	}
	struct span path = {text, len};
	return text[strspn(text, allowed)] == '\0' && len < sizeof(out->path) &&
	       text_whole(out->path, sizeof(out->path), "%.*s", (int)len, text) &&
	       (len == 0 || request_is_below(path, ""));
}

static bool read_url(struct profile_key *out, const char *url)
{
	size_t len = sizeof(scheme) - 1;
	if (strncmp(url, scheme, len) != 0) {
		return false;
	}
	const char *host = url + len;
	const char *path = host + strcspn(host, "/");
	const char *colon = memchr(host, ':', (size_t)(path - host));
	const char *end = colon ? colon : path;
	out->port = HTTPS_PORT;
	if (!host_name_read(out->host, (struct span){host, (size_t)(end - host)}) ||
		(colon && !read_port((struct span){colon + 1, (size_t)(path - colon) - 1},
				  &out->port)) ||
		!read_path(out, path)) {
		return false;
	}
	char port[8] = "";
	if (out->port != HTTPS_PORT) {
		text_whole(port, sizeof(port), ":%u", out->port);
	}
	return text_whole(
		out->url, sizeof(out->url), "%s%s%s%s", scheme, out->host, port, out->path);
}

/* ---- the variables ---- */

/* The address for X_API_KEY goes into X_BASE_URL. */
static bool name_url(struct profile_key *out, const struct known_key *is_known)
{
	static const char *const ends[] = {"_API_KEY", "_AUTH_TOKEN", "_KEY", "_TOKEN"};
	struct span stem = span_of(out->name);
	if (is_known) {
		return text_whole(out->url_name, sizeof(out->url_name), "%s", is_known->url_name);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
		if (span_ends_with(stem, span_of(ends[i])) && stem.len > strlen(ends[i])) {
			stem.len -= strlen(ends[i]);
			break;
		}
	}
	return text_whole(
		out->url_name, sizeof(out->url_name), "%.*s_BASE_URL", (int)stem.len, stem.data);
}

/*
 * The environment may already name an address, for example of a gateway; then the key is for that
 * gateway.
 */
static bool check_other_url(const struct profile_key *it, const char *other, struct error *err)
{
	struct profile_key there;
	if (!other || other[0] == '\0' ||
		(read_url(&there, other) && strcmp(there.url, it->url) == 0)) {
		return true;
	}
	return error_set(err, ERROR_CONFIG,
		"%s = %s: the broker's environment sets %s, so the key is not for %s; write %s = "
		"%s for https://…",
		key, it->name, it->url_name, it->url, key, it->name);
}

/* Whether a line `env = NAME…` or `secret-env = NAME…` sets the variable. */
static bool has_variable(const struct settings *settings, const char *list, const char *name)
{
	size_t len = strlen(name);
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		const char *value = setting->value;
		if (value && strcmp(setting->key, list) == 0 && strncmp(value, name, len) == 0 &&
			(value[len] == '=' || value[len] == '\0')) {
			return true;
		}
	}
	return false;
}

static bool check_others(
	const struct profile_key *it, const struct settings *settings, struct error *err)
{
	static const char *const lists[] = {"env", "secret-env", SETTING_AGENT_ENV};
	const char *const names[] = {it->name, it->url_name};
	for (size_t i = 0; i < ARRAY_LENGTH(lists) * ARRAY_LENGTH(names); i++) {
		const char *list = lists[i / ARRAY_LENGTH(names)];
		const char *name = names[i % ARRAY_LENGTH(names)];
		if (has_variable(settings, list, name)) {
			return error_set(err, ERROR_CONFIG,
				"%s = %s: %s gives the agent %s, which the key sets itself; remove "
				"one of the two",
				key, it->name,
				strcmp(list, SETTING_AGENT_ENV) == 0 ? "env of its [agent] section"
								     : list,
				name);
		}
	}
	return true;
}

/* ---- a line ---- */

static bool read_line(struct profile_key *out, const char *line, bool *out_has_url)
{
	static const char between[] = " for ";
	const char *found = strstr(line, between);
	size_t len = found ? (size_t)(found - line) : strlen(line);
	*out = (struct profile_key){.port = HTTPS_PORT};
	if (len >= sizeof(out->name) || !environment_name_is_valid(line, len)) {
		return false;
	}
	text_whole(out->name, sizeof(out->name), "%.*s", (int)len, line);
	const struct known_key *is_known = find_known(out->name);
	*out_has_url = found != NULL;
	out->header = is_known ? is_known->header : NULL;
	const char *url = is_known ? is_known->url : "";
	return name_url(out, is_known) && read_url(out, found ? found + sizeof(between) - 1 : url);
}

static bool refuse_line(const char *line, struct error *err)
{
	return error_set(err, ERROR_CONFIG,
		"%s = %s: expected NAME for https://HOST/PATH, with the variable that has the key "
		"and the name of a host; only NAME is needed for %s, %s, %s and %s",
		key, line, known[0].name, known[1].name, known[2].name, known[3].name);
}

static bool check_twice(
	const struct profile_key *keys, size_t count, const char *line, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(keys[i].url_name, keys[count].url_name) == 0) {
			return error_set(err, ERROR_CONFIG,
				"%s = %s: another key of the profile also has its address in %s",
				key, line, keys[i].url_name);
		}
	}
	return true;
}

bool profile_keys_read(const struct settings *settings, const char *const *environment,
	struct profile_key out[KEYS_MAX], size_t *out_count, struct error *err)
{
	size_t count = 0;
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		bool has_url = false;
		const char *line = setting->value;
		if (!line || strcmp(setting->key, key) != 0) {
			continue;
		}
		if (count == KEYS_MAX) {
			return error_set(err, ERROR_LIMIT, "%s: a profile can have at most %d", key,
				(int)KEYS_MAX);
		}
		struct profile_key *it = &out[count];
		if (!read_line(it, line, &has_url)) {
			return refuse_line(line, err);
		}
		const char *other = environment ? environment_get(environment, it->url_name) : NULL;
		if (!check_twice(out, count, line, err) || !check_others(it, settings, err) ||
			(!has_url && !check_other_url(it, other, err))) {
			return false;
		}
		count++;
	}
	*out_count = count;
	return true;
}
