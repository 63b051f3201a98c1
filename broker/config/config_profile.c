/* SPDX-License-Identifier: MIT */
#include "broker/config/config_profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/real_path.h"
#include "base/words.h"
#include "providers/agent_env.h"

/* ---- the profile's own values ---- */

struct limit {
	const char *key;
	size_t offset;
	enum { LIMIT_INT, LIMIT_SIZE, LIMIT_LONG } type;
};

/* The backend that --container means. */
#define CONTAINER_BACKEND "container"

static const struct limit limits[] = {
	{"max-message", offsetof(struct profile, max_message), LIMIT_SIZE},
	{"max-queue", offsetof(struct profile, max_queue), LIMIT_SIZE},
	{"max-requests", offsetof(struct profile, max_requests), LIMIT_INT},
	{"max-sessions", offsetof(struct profile, max_sessions), LIMIT_INT},
	{"start-timeout", offsetof(struct profile, start_timeout_ms), LIMIT_INT},
	{"session-timeout", offsetof(struct profile, session_timeout_ms), LIMIT_INT},
	{"authenticate-timeout", offsetof(struct profile, authenticate_timeout_ms), LIMIT_INT},
	{"prepare-timeout", offsetof(struct profile, prepare_timeout_ms), LIMIT_INT},
	{"stop-eof-timeout", offsetof(struct profile, stop_eof_ms), LIMIT_INT},
	{"stop-term-timeout", offsetof(struct profile, stop_term_ms), LIMIT_INT},
	{"stop-kill-timeout", offsetof(struct profile, stop_kill_ms), LIMIT_INT},
	{"pause-timeout", offsetof(struct profile, pause_timeout_ms), LIMIT_INT},
	{"pause-drain-timeout", offsetof(struct profile, pause_drain_timeout_ms), LIMIT_INT},
	{"drain-timeout", offsetof(struct profile, drain_timeout_ms), LIMIT_INT},
	{"idle-timeout", offsetof(struct profile, idle_timeout_ms), LIMIT_INT},
	{"wall", offsetof(struct profile, wall_ms), LIMIT_INT},
	{"cancel-timeout", offsetof(struct profile, cancel_timeout_ms), LIMIT_INT},
	{"permission-timeout", offsetof(struct profile, permission_timeout_ms), LIMIT_INT},
	{"login-callback-timeout", offsetof(struct profile, login_callback_timeout_ms), LIMIT_INT},
	{"max-file", offsetof(struct profile, toolhost_limits.max_file), LIMIT_SIZE},
	{"output-limit", offsetof(struct profile, toolhost_limits.output_limit), LIMIT_SIZE},
	{"max-terminals", offsetof(struct profile, toolhost_limits.max_terminals), LIMIT_INT},
	{"terminal-timeout", offsetof(struct profile, toolhost_limits.terminal_timeout_ms),
		LIMIT_INT},
	{"file-timeout", offsetof(struct profile, toolhost_limits.file_timeout_ms), LIMIT_INT},
	{"setup-timeout", offsetof(struct profile, setup_timeout_ms), LIMIT_INT},
	{"recovery-timeout", offsetof(struct profile, recovery_timeout_ms), LIMIT_INT},
	{"health-timeout", offsetof(struct profile, health_timeout_ms), LIMIT_INT},
	{"restart-limit", offsetof(struct profile, restart_limit), LIMIT_INT},
	{"mcp-timeout", offsetof(struct profile, mcp_timeout_ms), LIMIT_INT},
	{"big-file", offsetof(struct profile, sync.big_file_bytes), LIMIT_SIZE},
	{"max-files", offsetof(struct profile, sync.limits.files_max), LIMIT_SIZE},
	{"max-size", offsetof(struct profile, sync.limits.bytes_max), LIMIT_SIZE},
	{"sync-timeout", offsetof(struct profile, sync.timeout_ms), LIMIT_INT},
	{"sync-lock-timeout", offsetof(struct profile, sync.lock_timeout_ms), LIMIT_INT},
	{"max-checkpoints", offsetof(struct profile, sync.max_checkpoints), LIMIT_INT},
	{"checkpoint-age", offsetof(struct profile, sync.checkpoint_age_ms), LIMIT_LONG},
	{"store-max-size", offsetof(struct profile, sync.store_max_bytes), LIMIT_SIZE},
	{"copy-max-age", offsetof(struct profile, sync.copy_max_age_ms), LIMIT_LONG},
};

static void load_limits(struct profile *profile)
{
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		const struct setting_key *key = section_key(SECTION_PROFILE, limits[i].key);
		long long number = settings_number(&profile->settings, key);
		void *field = (char *)profile + limits[i].offset;
		if (limits[i].type == LIMIT_SIZE) {
			*(size_t *)field = (size_t)number;
		} else if (limits[i].type == LIMIT_LONG) {
			*(long long *)field = number;
		} else {
			*(int *)field = (int)number;
		}
	}
}

static const char *value_of(const struct profile *profile, const char *key)
{
	const char *value = settings_get(&profile->settings, key);
	return value ? value : section_key(SECTION_PROFILE, key)->fallback;
}

/* The enumeration is in the order of the key's table of words. */
static int load_choice(const struct profile *profile, const char *name)
{
	const struct setting_key *key = section_key(SECTION_PROFILE, name);
	const char *value = value_of(profile, name);
	int choice = 0;
	while (key->choices[choice] && strcmp(key->choices[choice], value) != 0) {
		choice++;
	}
	assert(key->choices[choice]);
	return choice;
}

static void load_sync(struct profile *profile)
{
	struct error err;
	char **guarded = words_of_settings(&profile->settings, "guard-paths");
	struct sync_settings *sync = &profile->sync;
	sync->mode = load_choice(profile, "sync");
	sync->persistence = load_choice(profile, "persistence");
	const char *copy_per = settings_get(&profile->settings, "copy-per");
	if (copy_per && strcmp(copy_per, "session") == 0 &&
		!settings_get(&profile->settings, "persistence")) {
		sync->persistence = PERSISTENCE_TRANSIENT; // otherwise each session would leave a
		                                           // sandbox behind
	}
	sync->transport = load_choice(profile, "transport");
	sync->keeps_plain =
		settings_bool(&profile->settings, section_key(SECTION_PROFILE, "checkpoints"));
	sync->limits.files_warn = snapshot_default_limits.files_warn;
	sync->limits.bytes_warn = snapshot_default_limits.bytes_warn;
	words_append_settings(&sync->include, &profile->settings, "include");
	words_append_settings(&sync->exclude, &profile->settings, "exclude");
	sync->guard_paths = guard_paths_create((const char *const *)guarded, &err);
	assert(sync->guard_paths); // config_file_check has checked it
	words_free(guarded);
}

/* The editor would run its terminals outside of the cell. */
static bool check_terminals(const struct profile *profile, struct error *err)
{
	const char *confine = settings_get(&profile->settings, "confine");
	bool is_confined = confine && strcmp(confine, "no") != 0;
	return !is_confined || !profile->editor_terminals ||
	       error_set(err, ERROR_CONFIG,
		       "editor-terminals: with confine = %s, the editor would run the agent's "
		       "commands outside of the cell: remove one of the two keys",
		       confine);
}

/*
 * The section may have `backend = container`, or no backend. With neither `backend` nor
 * `persistence` in it, each session has its own container.
 */
static bool add_container(struct profile *profile, const struct options *options, struct error *err)
{
	static const char origin[] = "command line";
	struct settings *settings = &profile->settings;
	const char *backend = settings_get(settings, "backend");
	if (backend && strcmp(backend, CONTAINER_BACKEND) != 0) {
		return error_set(err, ERROR_CONFIG,
			"--container %s: profile %s has backend = %s: leave the option out, or "
			"use a profile without backend",
			options->container, profile->name, backend);
	}
	if (!backend && !settings_get(settings, "persistence")) {
		settings_add(settings, "persistence", "transient", origin);
	}
	settings_add(settings, "backend", CONTAINER_BACKEND, origin);
	settings_add(settings, "image", options->container, origin);
	return true;
}

static bool load_settings(struct profile *profile, const struct config_section *section,
	const struct options *options, struct error *err)
{
	if (section) {
		LIST_FOR_EACH(setting, &section->settings.list, struct setting, link) {
			settings_add(
				&profile->settings, setting->key, setting->value, setting->origin);
		}
	}
	if (options->toolhost) {
		if (!setting_check(
			    section_key(SECTION_PROFILE, "toolhost"), options->toolhost, err)) {
			return error_prefix(err, "--toolhost");
		}
		settings_add(&profile->settings, "toolhost", options->toolhost, "command line");
	}
	if (options->flags & OPTION_CONFINE) {
		settings_add(&profile->settings, "confine", "required", "command line");
	}
	if (options->container && !add_container(profile, options, err)) {
		return false;
	}
	profile->backend = value_of(profile, "backend");
	profile->toolhost = load_choice(profile, "toolhost");
	profile->editor_terminals =
		settings_bool(&profile->settings, section_key(SECTION_PROFILE, "editor-terminals"));
	profile->asks_login_callback = load_choice(profile, "login-callback") == 0;
	profile->mcp_exec =
		settings_bool(&profile->settings, section_key(SECTION_PROFILE, "mcp-exec"));
	load_limits(profile);
	load_sync(profile);
	return check_terminals(profile, err);
}

/* ---- which profile ---- */

/* *out_section stays NULL if the built-in profile has no section. */
static bool find_profile(const struct config_file *file, const char *option, const char **out_name,
	const struct config_section **out_section, struct error *err)
{
	const struct config_section *broker = config_file_find(file, SECTION_BROKER, NULL);
	const char *name =
		option ? option : (broker ? settings_get(&broker->settings, "profile") : NULL);
	name = name ? name : PROFILE_BUILT_IN;
	const struct config_section *section = config_file_find(file, SECTION_PROFILE, name);
	if (!section && strcmp(name, PROFILE_BUILT_IN) != 0) {
		bool found = config_file_need(file, SECTION_PROFILE, name, err);
		assert(!found);
		error_prefix(err, "--profile");
		return false;
	}
	*out_name = name;
	*out_section = section;
	return true;
}

/* ---- which agent ---- */

static bool fail_no_agent(
	const struct profile *profile, const struct config_file *file, struct error *err)
{
	const char *path = file->path ? file->path : "the configuration";
	return error_set(err, ERROR_CONFIG,
		"no agent is named: add --agent NAME (acp-broker agents lists the names) or -- "
		"COMMAND, or set agent = NAME in [profile \"%s\"] of %s",
		profile->name, path);
}

/* Borrowed; NULL if no agent is named. */
static const char *named_agent(const struct profile *profile, const struct config_file *file,
	const struct options *options)
{
	const struct config_section *broker = config_file_find(file, SECTION_BROKER, NULL);
	const char *name =
		options->agent ? options->agent : settings_get(&profile->settings, "agent");
	return name || !broker ? name : settings_get(&broker->settings, "agent");
}

/* Also shows the provider the agent's variables, under a key that no profile can have. */
static void show_agent_env(struct profile *profile, const struct settings *settings)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, "env") == 0) {
			settings_add(&profile->settings, SETTING_AGENT_ENV, setting->value,
				setting->origin);
		}
	}
}

static bool load_agent(struct profile *profile, const struct config_file *file,
	const struct options *options, struct error *err)
{
	if (options->agent_argv) {
		words_append_all(&profile->agent_argv, options->agent_argv);
		profile->agent_name = mem_strdup(path_last_part(options->agent_argv[0]));
		return true;
	}
	const char *name = named_agent(profile, file, options);
	if (!name) {
		return !options_has_agent(options) || fail_no_agent(profile, file, err);
	}
	struct config_agent agent;
	if (!config_file_need_agent(file, name, &agent, err)) {
		return error_prefix(err, "--agent"); // config_file_check has checked the file
	}
	if (agent.section) {
		const struct settings *settings = &agent.section->settings;
		words_append(&profile->agent_argv, settings_get(settings, "command"));
		words_append_settings(&profile->agent_argv, settings, "arg");
		words_append_settings(&profile->agent_env, settings, "env");
		show_agent_env(profile, settings);
	} else {
		words_append_all(&profile->agent_argv, agent.known->argv);
	}
	profile->agent_name = mem_strdup(name);
	return true;
}

static bool check_secrets(const struct profile *profile, const struct config_file *file,
	const char *const *environment, struct error *err)
{
	for (char **name = profile->secret_env; *name; name++) {
		if (!environment_get(environment, *name)) {
			return error_set(err, ERROR_CONFIG,
				"%s: profile.%s.secret-env: the variable %s is not set in the "
				"broker's "
				"environment",
				file->path, profile->name, *name);
		}
	}
	return true;
}

/* Isolated sandboxes do not get the broker's own environment. */
static void load_secrets(struct profile *profile, const char *const *environment)
{
	for (char **name = profile->secret_env; *name; name++) {
		const char *value = environment_get(environment, *name);
		struct buf entry;
		buf_init(&entry, strlen(*name) + strlen(value) + 2);
		bool fits = buf_append_format(&entry, NULL, "%s=%s", *name, value);
		assert(fits);
		char *text = mem_strndup(buf_span(&entry));
		words_append(&profile->secret_values, text);
		explicit_bzero(text, strlen(text));
		explicit_bzero(entry.data, entry.capacity);
		free(text);
		buf_finish(&entry);
	}
}

char **config_profile_environment(const struct profile *profile, const char *const *base)
{
	char **more = environment_merge(base, (const char *const *)profile->agent_env);
	char **all = environment_merge(
		(const char *const *)more, (const char *const *)profile->secret_values);
	words_free(more);
	return all;
}

/* ---- copy and setup ---- */

static bool load_provisions(struct profile *profile, const struct config_file *file,
	const char *const *environment, struct error *err)
{
	const char *home = environment_get(environment, "HOME");
	words_append_settings(&profile->setup, &profile->settings, "setup");
	LIST_FOR_EACH(setting, &profile->settings.list, struct setting, link) {
		if (strcmp(setting->key, "copy") != 0) {
			continue;
		}
		size_t size = (profile->copy_count + 1) * sizeof(*profile->copy);
		profile->copy = mem_realloc(profile->copy, size);
		if (!copy_file_read(
			    setting->value, home, &profile->copy[profile->copy_count], err)) {
			return error_prefix(err, "%s: profile.%s.copy", file->path, profile->name);
		}
		profile->copy_count++;
	}
	return true;
}

/* ---- MCP servers ---- */

static bool has_mcp_server(const struct profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->mcp_count; i++) {
		if (strcmp(profile->mcp[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool load_mcp_server(struct profile *profile, const struct config_file *file,
	const char *name, const char *const *environment, struct error *err)
{
	const struct config_section *section = config_file_need(file, SECTION_MCP, name, err);
	assert(section); // config_file_check has checked it
	profile->mcp = mem_realloc(profile->mcp, (profile->mcp_count + 1) * sizeof(*profile->mcp));
	struct mcp_server *server = &profile->mcp[profile->mcp_count++];
	if (!mcp_server_load(server, name, &section->settings, environment, err)) {
		return error_prefix(err, "%s: mcp.%s.secret-env", file->path, name);
	}
	words_append_all(&profile->masked_env, (const char *const *)server->secret_names);
	return true;
}

static bool load_mcp(struct profile *profile, const struct config_file *file,
	const char *const *environment, struct error *err)
{
	LIST_FOR_EACH(setting, &profile->settings.list, struct setting, link) {
		if (strcmp(setting->key, "mcp") == 0 && !has_mcp_server(profile, setting->value) &&
			!load_mcp_server(profile, file, setting->value, environment, err)) {
			return false;
		}
	}
	return true;
}

/* The section's policy, with the mode from the command line. */
static struct policy *load_policy(
	const struct config_section *section, const struct options *options, struct error *err)
{
	if (!options->approve) {
		return policy_create(section ? &section->settings : NULL, err);
	}
	if (!setting_check(&policy_approve_key, options->approve, err)) {
		error_prefix(err, "--approve");
		return NULL;
	}
	struct settings all;
	settings_init(&all);
	if (section) {
		LIST_FOR_EACH(setting, &section->settings.list, struct setting, link) {
			settings_add(&all, setting->key, setting->value, setting->origin);
		}
	}
	settings_add(&all, "mode", policy_approve_mode(options->approve), "command line");
	struct policy *policy = policy_create(&all, err);
	settings_finish(&all);
	return policy;
}

bool config_profile_load(struct profile *profile, const struct config_file *file,
	const struct options *options, const char *const *environment, struct error *err)
{
	const char *name;
	const struct config_section *section = NULL;
	if (!find_profile(file, options->profile, &name, &section, err)) {
		return false;
	}
	profile->name = mem_strdup(name);
	profile->agent_env = mem_alloc_zero(sizeof(*profile->agent_env));
	profile->secret_env = mem_alloc_zero(sizeof(*profile->secret_env));
	if (!load_settings(profile, section, options, err) ||
		!load_agent(profile, file, options, err)) {
		return false;
	}
	words_append_settings(&profile->agent_env, &profile->settings, "env");
	words_append_settings(&profile->secret_env, &profile->settings, "secret-env");
	words_append_settings(&profile->masked_env, &profile->settings, "secret-env");
	words_append_settings(&profile->masked_env, &profile->settings, "login-env");
	const struct config_section *policy = config_file_policy(file, name, &profile->settings);
	profile->policy = load_policy(policy, options, err);
	if (!profile->policy || !options_has_agent(options)) {
		return profile->policy != NULL;
	}
	if (!check_secrets(profile, file, environment, err)) {
		return false;
	}
	load_secrets(profile, environment);
	return load_provisions(profile, file, environment, err) &&
	       load_mcp(profile, file, environment, err);
}

void config_profile_finish(struct profile *profile)
{
	free(profile->name);
	settings_finish(&profile->settings);
	words_free(profile->agent_argv);
	words_free(profile->agent_env);
	words_free(profile->secret_env);
	words_free(profile->masked_env);
	for (char **value = profile->secret_values; value && *value; value++) {
		explicit_bzero(*value, strlen(*value));
	}
	words_free(profile->secret_values);
	words_free(profile->setup);
	for (size_t i = 0; i < profile->copy_count; i++) {
		copy_file_finish(&profile->copy[i]);
	}
	free(profile->copy);
	for (size_t i = 0; i < profile->mcp_count; i++) {
		mcp_server_finish(&profile->mcp[i]);
	}
	free(profile->mcp);
	words_free(profile->sync.include);
	words_free(profile->sync.exclude);
	guard_paths_destroy(profile->sync.guard_paths);
	free(profile->agent_name);
	policy_destroy(profile->policy);
}
