/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/config/config_file.h"
#include "broker/config/mcp_config.h"
#include "broker/policy/policy.h"
#include "providers/network.h"
#include "sync/guard_paths.h"

enum { SECTION_TEXT_MAX = 160, KEYS_TEXT_MAX = 900, NAME_MAX_BYTES = 100 };

/* The keys that a section may have: those of its kind and, for a profile, of its provider. */
struct key_set {
	const struct setting_key *keys[2];
	size_t counts[2];
	const struct registry *registry; // for a profile, to find the provider of a key; else NULL
};

static const struct setting_key *key_set_find(const struct key_set *set, const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(set->keys); i++) {
		const struct setting_key *key =
			setting_key_find(set->keys[i], set->counts[i], name);
		if (key) {
			return key;
		}
	}
	return NULL;
}

/* Writes "profile.devbox", in the notation of git-config(1). */
static const char *section_text(char *text, size_t size, const struct config_section *section)
{
	text_format(text, size, "%s%s%s", section_kind_name(section->kind),
		section->name ? "." : "", section->name ? section->name : "");
	return text;
}

/* Puts the file and the key before the error's text. */
static bool fail_at(const struct config_file *file, const struct config_section *section,
	const char *key, struct error *err)
{
	char text[SECTION_TEXT_MAX];
	section_text(text, sizeof(text), section);
	err->code = ERROR_CONFIG;
	return error_prefix(err, "%s: %s%s%s", file->path, text, key ? "." : "", key ? key : "");
}

/* ---- unknown keys ---- */

/* The kind of section that has the key, or -1. */
static int kind_with_key(const char *name)
{
	for (int kind = 0; kind < SECTION_KIND_COUNT; kind++) {
		size_t count;
		const struct setting_key *keys = section_keys(kind, &count);
		if (setting_key_find(keys, count, name)) {
			return kind;
		}
	}
	return -1;
}

static void list_keys(char *text, size_t size, const struct key_set *set)
{
	const char *names[128] = {NULL};
	size_t used = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(set->keys); i++) {
		for (size_t j = 0; j < set->counts[i] && used + 1 < ARRAY_LENGTH(names); j++) {
			names[used++] = set->keys[i][j].name;
		}
	}
	setting_choices_text(text, size, names);
}

/* Another backend's provider that has this key of a profile, or NULL. */
static const struct provider *provider_with_key(const struct registry *registry, const char *name)
{
	const struct provider *provider = NULL;
	for (size_t i = 0; registry && (provider = registry_at(registry, i)) != NULL; i++) {
		size_t count;
		const struct setting_key *keys = provider_keys(provider, &count);
		if (setting_key_find(keys, count, name)) {
			break;
		}
	}
	return provider;
}

static bool fail_unknown_key(const struct config_section *section, const struct key_set *set,
	const char *name, struct error *err)
{
	int other = kind_with_key(name);
	if (other >= 0) {
		return error_set(err, ERROR_CONFIG, "expected in [%s%s], not in [%s%s]",
			section_kind_name(other), section_kind_is_named(other) ? " \"NAME\"" : "",
			section_kind_name(section->kind), section->name ? " \"…\"" : "");
	}
	const struct provider *provider = provider_with_key(set->registry, name);
	if (provider) {
		return error_set(err, ERROR_CONFIG,
			"this key belongs to backend = %s, but this profile has another backend",
			provider_name(provider));
	}
	struct nearest nearest;
	nearest_init(&nearest, name);
	for (size_t i = 0; i < ARRAY_LENGTH(set->keys); i++) {
		for (size_t j = 0; j < set->counts[i]; j++) {
			nearest_offer(&nearest, set->keys[i][j].name);
		}
	}
	if (nearest.best) {
		return error_set(err, ERROR_CONFIG, "unknown key: did you mean %s?", nearest.best);
	}
	char keys[KEYS_TEXT_MAX];
	list_keys(keys, sizeof(keys), set);
	return error_set(err, ERROR_CONFIG, "unknown key: expected %s", keys);
}

/* ---- values ---- */

/* A key without "=" means true (git-config(1)); an error for any key that is not a truth value. */
static bool check_bare(struct setting *setting, const struct setting_key *key, struct error *err)
{
	if (setting->value) {
		return true;
	}
	if (key->type != SETTING_BOOL) {
		return error_set(err, ERROR_CONFIG, "expected a value: %s = …", key->name);
	}
	setting->value = mem_strdup("true");
	return true;
}

static bool check_keys(const struct config_file *file, const struct config_section *section,
	const struct key_set *set, struct error *err)
{
	LIST_FOR_EACH(setting, &section->settings.list, struct setting, link) {
		const struct setting_key *key = key_set_find(set, setting->key);
		bool ok = key ? check_bare(setting, key, err) &&
		                          setting_check(key, setting->value, err)
		              : fail_unknown_key(section, set, setting->key, err);
		if (!ok) {
			return fail_at(file, section, setting->key, err);
		}
	}
	return true;
}

/* Fails with "expected A or B, got …", naming this program's backends. */
static bool fail_unknown_backend(
	const struct registry *registry, const char *value, struct error *err)
{
	const char *names[REGISTRY_MAX + 1] = {NULL};
	const struct provider *provider;
	for (size_t i = 0; (provider = registry_at(registry, i)) != NULL; i++) {
		names[i] = provider_name(provider);
	}
	char choices[128];
	char quoted[NAME_MAX_BYTES];
	return error_set(err, ERROR_CONFIG, "expected %s, got %s",
		setting_choices_text(choices, sizeof(choices), names),
		setting_quote(quoted, sizeof(quoted), value));
}

static const char *backend_of(const struct config_section *section)
{
	const char *value = settings_get(&section->settings, "backend");
	return value ? value : section_key(SECTION_PROFILE, "backend")->fallback;
}

/* NULL if no provider has this name. */
static const struct provider *provider_of(
	const struct config_section *section, const struct registry *registry)
{
	struct error ignored;
	return registry_get(registry, backend_of(section), &ignored);
}

static bool find_provider_keys(const struct config_section *section,
	const struct registry *registry, struct key_set *set, struct error *err)
{
	const struct provider *provider = provider_of(section, registry);
	if (!provider) {
		return fail_unknown_backend(registry, backend_of(section), err);
	}
	set->keys[1] = provider_keys(provider, &set->counts[1]);
	set->registry = registry;
	return true;
}

static bool check_section(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	struct key_set set = {{NULL}, {0}, NULL};
	set.keys[0] = section_keys(section->kind, &set.counts[0]);
	if (section->kind == SECTION_PROFILE && !find_provider_keys(section, registry, &set, err)) {
		return fail_at(file, section, "backend", err);
	}
	return check_keys(file, section, &set, err);
}

/* ---- references between sections ---- */

/* The section that a key names must exist. */
static bool check_reference(const struct config_file *file, const struct config_section *section,
	const char *key, enum section_kind kind, struct error *err)
{
	const char *name = settings_get(&section->settings, key);
	return !name || config_file_need(file, kind, name, err) || fail_at(file, section, key, err);
}

/* The same for an agent, which may also be a known one. */
static bool check_agent_name(
	const struct config_file *file, const struct config_section *section, struct error *err)
{
	struct config_agent found;
	const char *name = settings_get(&section->settings, "agent");
	return !name || config_file_need_agent(file, name, &found, err) ||
	       fail_at(file, section, "agent", err);
}

static bool check_agent(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	const char *command = settings_get(&section->settings, "command");
	if (!command) {
		error_set(err, ERROR_CONFIG, "expected command = PROGRAM");
		return fail_at(file, section, NULL, err);
	}
	if (strpbrk(command, " \t") && !strchr(command, '/')) {
		error_set(err, ERROR_CONFIG,
			"expected the program alone; write each argument on its own line: arg = …");
		return fail_at(file, section, "command", err);
	}
	return true;
}

static bool policy_is_used(const struct config_file *file, const struct config_section *policy)
{
	if (config_file_find(file, SECTION_PROFILE, policy->name) == NULL &&
		strcmp(policy->name, PROFILE_BUILT_IN) == 0) {
		return true;
	}
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (section->kind == SECTION_PROFILE &&
			config_file_policy(file, section->name, &section->settings) == policy) {
			return true;
		}
	}
	return false;
}

/* A policy that applies to nothing has a misspelt name: its rules would be lost silently. */
static bool check_policy(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	struct policy *policy = policy_create(&section->settings, err);
	if (!policy) {
		return fail_at(file, section, NULL, err);
	}
	policy_destroy(policy);
	if (!policy_is_used(file, section)) {
		error_set(err, ERROR_CONFIG,
			"no profile uses these rules: expected the name of a profile, or "
			"policy = %s in one",
			section->name);
		return fail_at(file, section, NULL, err);
	}
	return true;
}

static bool check_mcp(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	const char *key;
	return mcp_config_check(&section->settings, &key, err) || fail_at(file, section, key, err);
}

/* Each section that a list names must exist. */
static bool check_references(const struct config_file *file, const struct config_section *section,
	const char *key, enum section_kind kind, struct error *err)
{
	LIST_FOR_EACH(setting, &section->settings.list, struct setting, link) {
		if (strcmp(setting->key, key) == 0 &&
			!config_file_need(file, kind, setting->value, err)) {
			return fail_at(file, section, key, err);
		}
	}
	return true;
}

/* Keys that prepare a sandbox mean nothing if the agent works on this machine as it is. */
static bool check_provisions(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	static const char *const names[] = {"setup", "copy", "copy-per"};
	if (provider_is_isolated(provider_of(section, registry), &section->settings)) {
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (settings_get(&section->settings, names[i])) {
			error_set(err, ERROR_CONFIG,
				"this profile's agent works on this machine as it is: "
				"expected a backend with sandboxes of its own");
			return fail_at(file, section, names[i], err);
		}
	}
	return true;
}

static bool check_guard(
	const struct config_file *file, const struct config_section *section, struct error *err)
{
	char **values = words_of_settings(&section->settings, "guard-paths");
	struct guard_paths *guard = guard_paths_create((const char *const *)values, err);
	bool is_fine = guard != NULL;
	guard_paths_destroy(guard);
	words_free(values);
	return is_fine || fail_at(file, section, "guard-paths", err);
}

static bool check_network(
	const struct config_file *file, const struct config_section *section, struct error *err)
{
	struct network_policy policy;
	const char *key;
	if (!network_policy_read(&policy, &section->settings, &key, err)) {
		return fail_at(file, section, key, err);
	}
	network_policy_finish(&policy);
	return true;
}

static bool check_profile(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	return check_network(file, section, err) && check_guard(file, section, err) &&
	       check_provisions(file, section, registry, err) &&
	       check_agent_name(file, section, err) &&
	       check_reference(file, section, "policy", SECTION_POLICY, err) &&
	       check_references(file, section, "mcp", SECTION_MCP, err);
}

static bool check_broker(const struct config_file *file, const struct config_section *section,
	const struct registry *registry, struct error *err)
{
	const char *profile = settings_get(&section->settings, "profile");
	bool is_built_in = profile && strcmp(profile, PROFILE_BUILT_IN) == 0;
	return check_agent_name(file, section, err) &&
	       (is_built_in || check_reference(file, section, "profile", SECTION_PROFILE, err));
}

bool config_file_check(struct config_file *file, const struct registry *registry, struct error *err)
{
	static bool (*const checks[SECTION_KIND_COUNT])(const struct config_file *,
		const struct config_section *, const struct registry *, struct error *) = {
		[SECTION_BROKER] = check_broker,
		[SECTION_AGENT] = check_agent,
		[SECTION_PROFILE] = check_profile,
		[SECTION_POLICY] = check_policy,
		[SECTION_MCP] = check_mcp,
	};
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (!check_section(file, section, registry, err)) {
			return false;
		}
	}
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (!checks[section->kind](file, section, registry, err)) {
			return false;
		}
	}
	return true;
}
