/* SPDX-License-Identifier: MIT */
#include "providers/daytona/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/text.h"
#include "providers/daytona/shared.h"
#include "providers/forward_ports.h"

enum {
	SECOND = 1000,
	MINUTE = 60 * SECOND,
	HOUR = 60 * MINUTE,
	TRY_MAX_MS = 40 * SECOND, // the service needs up to 30 s to answer a create
};

#define ARCHIVE_MAX_MS (43200LL * MINUTE) // the service's maximum

static const char *const runner_choices[] = {"auto", "never", NULL};
static const char *const outlives_choices[] = {"auto", "never", NULL};

const struct setting_key daytona_keys[] = {
	{.name = "api-url",
		.type = SETTING_TEXT,
		.fallback = "https://app.daytona.io/api",
		.help = "the address of the API"},
	{.name = "api-key-env",
		.type = SETTING_SECRET_NAME,
		.fallback = "DAYTONA_API_KEY",
		.help = "the variable of the broker's environment that holds the API key"},
	{.name = "api-key-command",
		.type = SETTING_TEXT,
		.help = "a shell line that prints the API key"},
	{.name = "api-key-command-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = 1,
		.max = HOUR,
		.help = "how long that command may take, including the time to unlock the key"},
	{.name = "organization-id",
		.type = SETTING_TEXT,
		.help = "the organization; only needed if the key is a JWT"},
	{.name = "target", .type = SETTING_TEXT, .help = "the region"},
	{.name = "snapshot",
		.type = SETTING_TEXT,
		.help = "the snapshot to make a sandbox from; otherwise the organization's "
			"default"},
	{.name = "image", .type = SETTING_TEXT, .help = "a container image instead of a snapshot"},
	{.name = "user", .type = SETTING_TEXT, .help = "the user in the sandbox"},
	{.name = "cpu",
		.type = SETTING_COUNT,
		.min = 1,
		.max = 1024,
		.help = "processors; only with image"},
	{.name = "memory",
		.type = SETTING_COUNT,
		.min = 1,
		.max = 65536,
		.help = "memory in GiB; only with image"},
	{.name = "disk",
		.type = SETTING_COUNT,
		.min = 1,
		.max = 65536,
		.help = "disk in GiB; only with image"},
	{.name = "auto-stop",
		.type = SETTING_DURATION,
		.fallback = "15m",
		.min = 1,
		.help = "time without activity after which the service stops the sandbox"},
	{.name = "auto-archive",
		.type = SETTING_DURATION,
		.min = 1,
		.max = ARCHIVE_MAX_MS,
		.help = "time after stopping after which the service archives it"},
	{.name = "auto-delete",
		.type = SETTING_DURATION,
		.fallback = "never",
		.min = 1,
		.help = "time after stopping after which the service deletes it"},
	{.name = "ttl",
		.type = SETTING_DURATION,
		.min = 1,
		.help = "time after its creation after which the service deletes it in any case"},
	{.name = "class",
		.type = SETTING_TEXT,
		.help = "the expected class: container or linux-vm; another one is reported"},
	{.name = "ssh-host",
		.type = SETTING_TEXT,
		.help = "the SSH gateway; otherwise the one that the service names"},
	{.name = "ssh-port", .type = SETTING_COUNT, .min = 1, .max = 65535, .help = "its port"},
	{.name = "ssh-user",
		.type = SETTING_TEXT,
		.fallback = "{token}",
		.help = "the login name, with {token}, {id}, {name} or {key}"},
	{.name = "host-key",
		.type = SETTING_TEXT,
		.help = "the fingerprint (SHA256:...) that the gateway's key must have"},
	{.name = "ready-state",
		.type = SETTING_TEXT,
		.fallback = "started",
		.help = "the state that the service reports for a running sandbox"},
	/* More than the minute for which the service may ask us to wait (429). */
	{.name = "api-timeout",
		.type = SETTING_DURATION,
		.fallback = "90s",
		.min = 1,
		.max = HOUR,
		.help = "for one call of the API, including all attempts"},
	{.name = "create-timeout",
		.type = SETTING_DURATION,
		.fallback = "110s",
		.min = 1,
		.max = HOUR,
		.help = "for a sandbox to start running"},
	{.name = "stop-timeout",
		.type = SETTING_DURATION,
		.fallback = "60s",
		.min = 1,
		.max = HOUR,
		.help = "for a sandbox to stop"},
	{.name = "token-lifetime",
		.type = SETTING_DURATION,
		.fallback = "1h",
		.min = 1,
		.max = 24 * HOUR,
		.help = "lifetime of a token of the SSH gateway, which is only needed for "
			"connecting"},
	{.name = "connect-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = SECOND,
		.max = 10 * MINUTE,
		.help = "for reaching the SSH gateway"},
	{.name = "auth-timeout",
		.type = SETTING_DURATION,
		.fallback = "60s",
		.min = SECOND,
		.max = 10 * MINUTE,
		.help = "for getting a token and logging in with it"},
	{.name = "runtime-root",
		.type = SETTING_TEXT,
		.fallback = "~/.local/share/acp-broker",
		.help = "the folder in the sandbox that contains the workspaces"},
	{.name = "link-grace",
		.type = SETTING_DURATION,
		.fallback = "1h",
		.min = SECOND,
		.max = 24 * HOUR,
		.help = "without contact to this broker, after which all its processes in the "
			"sandbox end"},
	{.name = "channel-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = 1,
		.max = HOUR,
		.help = "for a process to find a free channel"},
	{.name = "login-timeout",
		.type = SETTING_DURATION,
		.fallback = "10s",
		.min = 1,
		.max = HOUR,
		.help = "for the login shell in the sandbox to report its PATH"},
	{.name = "runner",
		.type = SETTING_CHOICE,
		.choices = runner_choices,
		.fallback = "auto",
		.help = "whether the broker's own program does all work in the sandbox, instead of "
			"shell scripts"},
	{.name = "outlives",
		.type = SETTING_CHOICE,
		.choices = outlives_choices,
		.fallback = "never",
		.help = "whether the processes in the sandbox go on when the connection is lost"},
	{.name = "orphan-grace",
		.type = SETTING_DURATION,
		.fallback = "10m",
		.min = SECOND,
		.max = 24 * HOUR,
		.help = "how long the processes there go on if the broker was probably killed"},
	{.name = "forward",
		.type = SETTING_LIST,
		.help = "a port of this machine that leads to one in the sandbox: 3000, or "
			"8080:3000"},
};
const size_t daytona_key_count = ARRAY_LENGTH(daytona_keys);

/* ---- values ---- */

static const struct setting_key *key_of(const char *name)
{
	const struct setting_key *key = setting_key_find(daytona_keys, daytona_key_count, name);
	assert(key);
	return key;
}

static const char *text(const struct daytona_profile *profile, const char *name)
{
	const char *value = settings_get(&profile->settings, name);
	return value ? value : key_of(name)->fallback;
}

static long long number(const struct daytona_profile *profile, const char *name)
{
	const struct setting_key *key = key_of(name);
	bool is_known = key->fallback || settings_find(&profile->settings, name);
	return is_known ? settings_number(&profile->settings, key) : 0;
}

/* The service counts whole minutes, so a time is rounded up. */
static int minutes(const struct daytona_profile *profile, const char *name)
{
	return (int)((number(profile, name) + MINUTE - 1) / MINUTE);
}

static enum daytona_end end_of(const struct settings *settings)
{
	const char *persistence = settings_get(settings, "persistence");
	return !persistence                            ? DAYTONA_END_STOP
	       : strcmp(persistence, "transient") == 0 ? DAYTONA_END_DELETE
	       : strcmp(persistence, "archive") == 0   ? DAYTONA_END_ARCHIVE
	                                               : DAYTONA_END_STOP;
}

static bool is_synced(const struct settings *settings)
{
	const char *sync = settings_get(settings, "sync");
	return !sync || strcmp(sync, "none") != 0;
}

static void read_texts(struct daytona_profile *profile)
{
	const struct {
		const char **field;
		const char *name;
	} texts[] = {
		{&profile->api_url, "api-url"},
		{&profile->key_env, "api-key-env"},
		{&profile->key_command, "api-key-command"},
		{&profile->organization, "organization-id"},
		{&profile->target, "target"},
		{&profile->snapshot, "snapshot"},
		{&profile->image, "image"},
		{&profile->sandbox_class, "class"},
		{&profile->user, "user"},
		{&profile->ssh_host, "ssh-host"},
		{&profile->ssh_user, "ssh-user"},
		{&profile->host_key, "host-key"},
		{&profile->ready_state, "ready-state"},
		{&profile->runtime_root, "runtime-root"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		*texts[i].field = text(profile, texts[i].name);
	}
}

static void read_numbers(struct daytona_profile *profile)
{
	const struct {
		long long *field;
		const char *name;
	} times[] = {
		{&profile->key_command_timeout_ms, "api-key-command-timeout"},
		{&profile->api_timeout_ms, "api-timeout"},
		{&profile->create_timeout_ms, "create-timeout"},
		{&profile->stop_timeout_ms, "stop-timeout"},
		{&profile->connect_timeout_ms, "connect-timeout"},
		{&profile->auth_timeout_ms, "auth-timeout"},
		{&profile->grace_ms, "link-grace"},
		{&profile->orphan_ms, "orphan-grace"},
		{&profile->channel_timeout_ms, "channel-timeout"},
		{&profile->login_timeout_ms, "login-timeout"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(times); i++) {
		*times[i].field = number(profile, times[i].name);
	}
	profile->wants_runner = strcmp(text(profile, "runner"), runner_choices[0]) == 0;
	profile->outlives = strcmp(text(profile, "outlives"), outlives_choices[0]) == 0;
	profile->cpu = (int)number(profile, "cpu");
	profile->memory_gib = (int)number(profile, "memory");
	profile->disk_gib = (int)number(profile, "disk");
	profile->ssh_port = (int)number(profile, "ssh-port");
	profile->token_min = minutes(profile, "token-lifetime");
	profile->auto_stop_min = minutes(profile, "auto-stop");
	profile->ttl_min = minutes(profile, "ttl");
	int archive = minutes(profile, "auto-archive");
	int delete = minutes(profile, "auto-delete");
	profile->auto_archive_min = archive > 0 ? archive : -1;
	profile->auto_delete_min = delete > 0 ? delete : -1;
}

/* ---- source of the account ---- */

static const char *environment_value(const char *const *environment, const char *name)
{
	const char *value = environment ? environment_get(environment, name) : NULL;
	return value && *value ? value : NULL;
}

/* Takes the configuration's value, or else the environment's. */
static void find_text(const struct daytona_profile *profile, const char *const *environment,
	const char *setting, const char *variable, const char **value, const char **from)
{
	const char *other = environment_value(environment, variable);
	if (settings_find(&profile->settings, setting)) {
		*from = setting;
	} else if (other) {
		*value = other;
		*from = variable;
	}
}

static size_t url_length(const char *url)
{
	size_t len = strlen(url);
	while (len > 0 && url[len - 1] == '/') {
		len--;
	}
	return len;
}

static bool is_same_url(const char *one, const char *other)
{
	size_t len = url_length(one);
	return len == url_length(other) && strncmp(one, other, len) == 0;
}

static void take_cli(struct daytona_profile *profile)
{
	const struct daytona_cli_profile *cli = &profile->cli;
	char text[ERROR_TEXT_MAX];
	if (!cli->name || !cli->url) {
		return;
	}
	text_format(text, sizeof(text), "profile %s of %s", cli->name, cli->path);
	profile->cli_from = mem_strdup(text);
	if (!profile->api_url_from) {
		profile->api_url = cli->url;
		profile->api_url_from = profile->cli_from;
	}
	if (cli->key && is_same_url(profile->api_url, cli->url)) {
		profile->key = cli->key;
		profile->key_from = profile->cli_from;
	}
}

static bool find_account(
	struct daytona_profile *profile, const char *const *environment, struct error *err)
{
	find_text(profile, environment, "api-url", "DAYTONA_API_URL", &profile->api_url,
		&profile->api_url_from);
	find_text(profile, environment, "target", "DAYTONA_TARGET", &profile->target,
		&profile->target_from);
	if (profile->key_command) {
		profile->key_from = "api-key-command";
	} else {
		profile->key = environment_value(environment, profile->key_env);
		profile->key_from = profile->key_env;
	}
	if (!profile->key && !profile->key_command &&
		!settings_find(&profile->settings, "api-key-env")) {
		if (!daytona_cli_profile_read(&profile->cli, environment, err)) {
			return false;
		}
		take_cli(profile);
	}
	if (!profile->api_url_from) {
		profile->api_url_from = "the default";
	}
	return true;
}

/* ---- combinations of settings ---- */

/* Version 2 has its own host; elsewhere its URL would be a folder with its name. */
static bool is_version_2(const char *url)
{
	static const char own_host[] = "api.daytona.com";
	const char *host = strstr(url, "://");
	host = host ? host + 3 : url;
	size_t len = strcspn(host, ":/");
	if (len == strlen(own_host) && strncasecmp(host, own_host, len) == 0) {
		return true;
	}
	const char *folder = strstr(host + len, "/v2");
	return folder && (folder[3] == '/' || folder[3] == '\0');
}

/* Refuses combinations that the service would refuse or misunderstand. */
static bool check(const struct daytona_profile *profile, struct error *err)
{
	if (is_version_2(profile->api_url)) {
		return error_set_reason(err, ERROR_CONFIG, "DAYTONA_VERSION",
			"%s: %s is version 2 of Daytona's platform, which has other calls and "
			"states: expected the URL of the first version, like "
			"https://app.daytona.io/api",
			profile->api_url_from, profile->api_url);
	}
	if (profile->key_command && settings_find(&profile->settings, "api-key-env")) {
		return error_set(err, ERROR_CONFIG,
			"api-key-command and api-key-env: expected only one of them, because there "
			"is one key");
	}
	if (profile->snapshot && profile->image) {
		return error_set(err, ERROR_CONFIG,
			"snapshot and image: expected only one of them, because a sandbox is made "
			"from one");
	}
	const char *resource = profile->cpu          ? "cpu"
	                       : profile->memory_gib ? "memory"
	                       : profile->disk_gib   ? "disk"
	                                             : NULL;
	if (resource && !profile->image) {
		return error_set(err, ERROR_CONFIG,
			"%s: expected image to be set, too: a snapshot has its own resources",
			resource);
	}
	if (!strstr(profile->ssh_user, "{token}") && !strstr(profile->ssh_user, "{key}")) {
		return error_set(err, ERROR_CONFIG,
			"ssh-user: expected a text that contains {token} or {key}");
	}
	if (!strstr(profile->ssh_user, "{token}") && !profile->ssh_host) {
		return error_set(err, ERROR_CONFIG,
			"ssh-user: expected ssh-host to be set if the name contains no {token}");
	}
	return forward_ports_check(&profile->settings, profile->wants_runner, err);
}

/* ---- for the caller ---- */

bool daytona_profile_read(struct daytona_profile *profile, const char *name,
	const struct settings *settings, const char *const *environment, struct error *err)
{
	*profile = (struct daytona_profile){.name = mem_strdup(name),
		.end = end_of(settings),
		.is_synced = is_synced(settings)};
	settings_init(&profile->settings);
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		settings_add(&profile->settings, setting->key, setting->value, setting->origin);
	}
	read_texts(profile);
	read_numbers(profile);
	bool ok = find_account(profile, environment, err) && check(profile, err);
	if (!ok) {
		daytona_profile_finish(profile);
	}
	return ok;
}

void daytona_profile_finish(struct daytona_profile *profile)
{
	if (profile->name) {
		settings_finish(&profile->settings);
		free(profile->name);
		mem_wipe_free(profile->printed);
		free(profile->cli_from);
		daytona_cli_profile_finish(&profile->cli);
	}
	*profile = (struct daytona_profile){0};
}

/* Says why the CLI's profile gives no key; the text is appended to the error. */
static void describe_cli(const struct daytona_profile *profile, char *text, size_t size)
{
	const struct daytona_cli_profile *cli = &profile->cli;
	if (!cli->path) {
		text[0] = '\0'; // it was not looked for, or does not exist
	} else if (!profile->cli_from) {
		text_format(text, size, "; %s has no active profile with a URL", cli->path);
	} else if (!cli->key) {
		text_format(text, size,
			"; %s has no API key (a browser login is not enough: daytona login "
			"--api-key KEY)",
			profile->cli_from);
	} else {
		text_format(text, size, "; the key in %s is for %s, and %s (%s) is another place",
			profile->cli_from, cli->url, profile->api_url, profile->api_url_from);
	}
}

const char *daytona_profile_key(const struct daytona_profile *profile, struct error *err)
{
	char cli[ERROR_TEXT_MAX];
	if (profile->key) {
		return profile->key;
	}
	describe_cli(profile, cli, sizeof(cli));
	error_set(err, ERROR_CONFIG,
		"expected an API key of Daytona: set %s in the broker's environment (or another "
		"variable with api-key-env), or set api-key-command to a command that prints one, "
		"or log in with Daytona's CLI%s",
		profile->key_env, cli);
	return NULL;
}

bool daytona_profile_command(const struct daytona_profile *profile, struct daytona_shared *shared,
	struct daytona_key_command *out_command)
{
	if (!profile->key_command || profile->printed) {
		return false;
	}
	*out_command = (struct daytona_key_command){.keys = &shared->keys,
		.line = profile->key_command,
		.timeout_ms = profile->key_command_timeout_ms};
	return true;
}

void daytona_profile_take_key(struct daytona_profile *profile, const char *key)
{
	mem_wipe_free(profile->printed);
	profile->printed = mem_strdup(key);
	profile->key = profile->printed;
}

void daytona_profile_account(
	const struct daytona_profile *profile, struct daytona_account *out_account)
{
	daytona_account_init(out_account, profile->api_url, profile->organization, profile->key);
}

struct daytona_api *daytona_profile_api(
	const struct daytona_profile *profile, struct daytona_shared *shared, struct error *err)
{
	const char *key = daytona_profile_key(profile, err);
	if (!key) {
		return NULL;
	}
	long long timeout = profile->api_timeout_ms;
	struct daytona_key_command command = {.keys = &shared->keys,
		.line = profile->key_command,
		.timeout_ms = profile->key_command_timeout_ms};
	struct daytona_api *api = daytona_api_create(
		&(struct daytona_api_config){
			.loop = shared->context->loop,
			.url = profile->api_url,
			.key = key,
			.organization = profile->organization,
			.command = profile->key_command ? &command : NULL,
			.environment = shared->context->environment,
			.try_timeout_ms = timeout < TRY_MAX_MS ? timeout : TRY_MAX_MS,
			.timeout_ms = timeout,
		},
		err);
	if (!api) {
		error_prefix(err, "the URL of %s, the key of %s", profile->api_url_from,
			profile->key_from);
	}
	return api;
}
