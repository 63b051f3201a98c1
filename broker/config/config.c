/* SPDX-License-Identifier: MIT */
#include "broker/config/config.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/real_path.h"
#include "base/words.h"
#include "broker/config/config_file.h"
#include "broker/config/config_keys.h"
#include "broker/config/config_profile.h"
#include "broker/config/known_agents.h"
#include "providers/agent_env.h"

/* ---- the file's path ---- */

char *config_default_path(const char *const *environment)
{
	const char *xdg = environment_get(environment, "XDG_CONFIG_HOME");
	if (xdg && xdg[0] == '/') {
		return path_join(xdg, "acp-broker/config");
	}
	const char *home = environment_get(environment, "HOME");
	if (home && home[0] == '/') {
		return path_join(home, ".config/acp-broker/config");
	}
	return NULL;
}

/* Makes the directory an absolute path; an absolute path keeps the caller's spelling. */
static bool resolve_workspace(const char *workspace, char **out_path, struct error *err)
{
	struct stat status;
	char *resolved = realpath(workspace, NULL);
	int errnum = errno;
	if (!resolved || stat(resolved, &status) < 0) {
		free(resolved);
		error_set_errno(err, errnum, "--workspace %s", workspace);
		err->code = ERROR_CONFIG;
		return false;
	}
	if (!S_ISDIR(status.st_mode)) {
		free(resolved);
		return error_set(
			err, ERROR_CONFIG, "--workspace %s: expected a directory", workspace);
	}
	*out_path = workspace[0] == '/' ? mem_strdup(workspace) : mem_strdup(resolved);
	free(resolved);
	return true;
}

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return strcmp(folder, "/") == 0 ||
	       (strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0'));
}

/*
 * The agent can write in the workspace, so it could give itself permissions in a configuration
 * there.
 */
static bool check_outside_workspace(const char *file, const char *workspace, struct error *err)
{
	char *real_file = realpath(file, NULL);
	char *real_workspace = realpath(workspace, NULL);
	bool inside = real_file && real_workspace && is_below(real_file, real_workspace);
	free(real_file);
	free(real_workspace);
	return !inside || error_set(err, ERROR_CONFIG,
				  "%s: a configuration file inside the workspace %s is never read, "
				  "because the agent "
				  "can write there: move it elsewhere and name it with --config",
				  file, workspace);
}

static bool locate(struct config *config, const struct options *options,
	const char *const *environment, struct error *err)
{
	config->file =
		options->config ? mem_strdup(options->config) : config_default_path(environment);
	if (!options->workspace) {
		return true;
	}
	return resolve_workspace(options->workspace, &config->workspace, err) &&
	       (!config->file || check_outside_workspace(config->file, config->workspace, err));
}

/* Appends the places of a file of ours; a relative name begins in `folder`. */
static void find_places(const char *file, const char *folder, char ***places)
{
	if (file && file[0] == '/') {
		path_places(file, places);
	} else if (file && folder) {
		char *path = path_join(folder, file);
		path_places(path, places);
		free(path);
	}
}

/*
 * A relative path of the configuration begins in the working folder, one of the audit log in the
 * workspace.
 */
static void find_own_files(struct config *config)
{
	char *here = getcwd(NULL, 0);
	find_places(config->file, here, &config->own_files);
	find_places(
		config->audit, config->workspace ? config->workspace : here, &config->own_files);
	free(here);
}

/* ---- the broker's own keys ---- */

/* The option's value, else the section's, checked against the key; NULL if neither is given. */
static bool pick(const struct config_file *file, const char *key_name, const char *option,
	const char **out_value, struct error *err)
{
	const struct setting_key *key = section_key(SECTION_BROKER, key_name);
	const struct config_section *section = config_file_find(file, SECTION_BROKER, NULL);
	if (option && !setting_check(key, option, err)) {
		return error_prefix(err, "--%s", key_name);
	}
	const char *value = option    ? option
	                    : section ? settings_get(&section->settings, key_name)
	                              : NULL;
	*out_value = value ? value : key->fallback;
	return true;
}

static size_t load_audit_size(const struct config_file *file)
{
	const struct config_section *section = config_file_find(file, SECTION_BROKER, NULL);
	struct settings none;
	settings_init(&none);
	return (size_t)settings_number(
		section ? &section->settings : &none, section_key(SECTION_BROKER, "audit-size"));
}

static bool load_broker(struct config *config, const struct config_file *file,
	const struct options *options, struct error *err)
{
	const char *level = NULL;
	const char *format = NULL;
	const char *trace = NULL;
	const char *audit = NULL;
	if (!pick(file, "log-level", options->log_level, &level, err) ||
		!pick(file, "log-format", options->log_format, &format, err) ||
		!pick(file, "trace", options->trace, &trace, err) ||
		!pick(file, "audit", NULL, &audit, err)) {
		return false;
	}
	bool known = log_level_parse(level, &config->log_level) &&
	             log_format_parse(format, &config->log_format);
	assert(known);
	config->trace = trace ? mem_strdup(trace) : NULL;
	config->audit = audit ? mem_strdup(audit) : NULL;
	config->audit_size = load_audit_size(file);
	return true;
}

static bool read_file(struct config_file *file, const struct options *options,
	const struct registry *registry, struct error *err)
{
	if (!config_file_read(file, err)) {
		return false;
	}
	if (options->config && !file->was_read) {
		return error_set(err, ERROR_CONFIG, "--config %s: no such file", options->config);
	}
	return config_file_check(file, registry, err);
}

/* Variables that a provider reads from the broker's environment are masked in traces too. */
static void mask_secrets(struct profile *profile, const struct provider *provider)
{
	size_t count;
	const struct setting_key *keys = provider_keys(provider, &count);
	for (size_t i = 0; i < count; i++) {
		if (keys[i].type == SETTING_SECRET_NAME) {
			const char *name = settings_get(&profile->settings, keys[i].name);
			words_append(&profile->masked_env, name ? name : keys[i].fallback);
		}
	}
}

static bool can_confine(const struct provider *provider)
{
	size_t count;
	const struct setting_key *keys = provider_keys(provider, &count);
	return setting_key_find(keys, count, "confine") != NULL;
}

enum { AGENT_WORDS_LOOKED_AT = 4 }; // as in "npx -y @agentclientprotocol/codex-acp"

/* The known agent that the profile starts, or NULL. */
static const struct known_agent *find_agent(const struct profile *profile)
{
	const struct known_agent *known = NULL;
	const char *const *argv = (const char *const *)profile->agent_argv;
	for (size_t i = 0; argv && argv[i] && !known && i < AGENT_WORDS_LOOKED_AT; i++) {
		known = known_agent_of_argv(&argv[i]);
	}
	return known;
}

/*
 * `key = NAME` works only for an agent that takes the address of its model from a variable. Another
 * agent would send the placeholder to the model itself, which refuses it.
 */
static bool check_keys(const struct profile *profile, struct error *err)
{
	const struct known_agent *known = find_agent(profile);
	if (!known || known->base_url_variable) {
		return true;
	}
	LIST_FOR_EACH(setting, &profile->settings.list, struct setting, link) {
		struct span name = {setting->value, strcspn(setting->value, " \t")};
		for (size_t i = 0; strcmp(setting->key, "key") == 0 && known->key_names[i]; i++) {
			if (span_is(name, known->key_names[i])) {
				return error_set(err, ERROR_CONFIG,
					"profile %s: key = %s: %s takes the address of its model "
					"from no variable, so it would not send its requests to "
					"the broker: remove this line, and let the agent log in "
					"(%s) or read the key itself (secret-env)",
					profile->name, known->key_names[i], known->title,
					known->login);
			}
		}
	}
	return true;
}

/*
 * Unless the profile names agent-state, a confined agent that is a known agent gets the state files
 * of that agent.
 */
static void load_agent_state(struct profile *profile, const struct provider *provider)
{
	size_t count;
	struct error ignored;
	const struct known_agent *known = find_agent(profile);
	const struct setting_key *keys = provider_keys(provider, &count);
	const struct setting_key *key = setting_key_find(keys, count, "agent-state");
	if (!key || !settings_get(&profile->settings, "confine") ||
		settings_get(&profile->settings, "agent-state")) {
		return;
	}
	if (known && setting_check(key, known->name, &ignored)) {
		settings_add(&profile->settings, "agent-state", known->name, "the agent's name");
	}
}

/*
 * With --container, the profile gets this backend, but its section may have been checked for
 * another one. Refuses keys that mean nothing in a container.
 */
static bool check_container(const struct profile *profile, const struct options *options,
	const struct provider *provider, struct error *err)
{
	size_t common, own;
	const struct setting_key *keys = section_keys(SECTION_PROFILE, &common);
	const struct setting_key *more = provider_keys(provider, &own);
	LIST_FOR_EACH(setting, &profile->settings.list, struct setting, link) {
		if (strcmp(setting->key, SETTING_AGENT_ENV) != 0 &&
			!setting_key_find(keys, common, setting->key) &&
			!setting_key_find(more, own, setting->key)) {
			return error_set(err, ERROR_CONFIG,
				"--container %s: %s of profile %s has no effect in a container: "
				"leave the option out, or use a profile without this key",
				options->container, setting->key, profile->name);
		}
	}
	char **warnings = provider_warnings(provider, &profile->settings, err);
	words_free(warnings);
	return warnings || error_prefix(err, "--container");
}

static bool check_confine(const struct profile *profile, const struct options *options,
	const struct provider *provider, struct error *err)
{
	return !(options->flags & OPTION_CONFINE) || (provider && can_confine(provider)) ||
	       error_set(err, ERROR_CONFIG,
		       "--confine: the agent of profile %s does not run on this machine (backend = "
		       "%s): leave the option out, or use a profile with backend = local",
		       profile->name, profile->backend);
}

static bool load_from_provider(struct profile *profile, const struct options *options,
	const struct registry *registry, struct error *err)
{
	struct error ignored;
	const struct provider *provider = registry_get(registry, profile->backend, &ignored);
	if (provider) {
		profile->runs_here = provider_runs_here(provider);
		mask_secrets(profile, provider);
		load_agent_state(profile, provider);
	}
	return check_confine(profile, options, provider, err) && check_keys(profile, err) &&
	       (!provider || !options->container ||
		       check_container(profile, options, provider, err));
}

bool config_load(struct config *config, const struct options *options,
	const struct registry *registry, const char *const *environment, struct error *err)
{
	*config = (struct config){0};
	settings_init(&config->profile.settings);
	struct config_file file;
	config_file_init(&file, NULL);
	bool ok = locate(config, options, environment, err);
	if (ok) {
		file.path = config->file;
		ok = read_file(&file, options, registry, err) &&
		     load_broker(config, &file, options, err) &&
		     config_profile_load(&config->profile, &file, options, environment, err) &&
		     config_profile_load_others(config, &file, environment, err);
		config->file_was_read = file.was_read;
		find_own_files(config);
	}
	config_file_finish(&file);
	ok = ok && load_from_provider(&config->profile, options, registry, err);
	if (!ok) {
		config_finish(config);
	}
	return ok;
}

void config_set_log(const struct config *config)
{
	log_set_level(config->log_level);
	log_set_format(config->log_format);
}

void config_finish(struct config *config)
{
	config_profile_finish(&config->profile);
	for (size_t i = 0; i < config->other_count; i++) {
		config_profile_finish(&config->others[i]);
	}
	free(config->others);
	free(config->file);
	free(config->trace);
	free(config->audit);
	words_free(config->own_files);
	free(config->workspace);
	*config = (struct config){0};
	settings_init(&config->profile.settings);
}
