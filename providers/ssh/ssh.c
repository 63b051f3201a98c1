/* SPDX-License-Identifier: MIT */
#include "providers/ssh/ssh.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/forward_ports.h"
#include "providers/impl.h"
#include "providers/ssh/describe.h"
#include "providers/ssh/hosts.h"
#include "providers/ssh/sandbox.h"

enum {
	SECOND = 1000,
	HOUR = 3600 * SECOND,
	DAY = 24 * HOUR,
	LINK_BUFFER_MIN = 64 * 1024,
	LINK_BUFFER_MAX = 64 << 20,
};

struct ssh_provider {
	struct provider provider;
	struct provider_impl impl; // with the keys of both tables
	const struct provider_context *context;
	struct setting_key *keys; // owned
	char token[SSH_FOLDERS_TOKEN_SIZE];
	struct ssh_runs runs;
};

enum {
	KEY_RUNTIME_ROOT,
	KEY_LINK_GRACE,
	KEY_CHANNEL_TIMEOUT,
	KEY_LOGIN_TIMEOUT,
	KEY_LOGIN_ENV,
	KEY_CONNECTIONS,
	KEY_RUNNER,
	KEY_OUTLIVES,
	KEY_ORPHAN_GRACE,
	KEY_TURN_GRACE,
	KEY_LINK_BUFFER,
	KEY_FORWARD
};

static const char *const runner_choices[] = {"auto", "never", NULL};

static const struct setting_key own_keys[] = {
	[KEY_RUNTIME_ROOT] = {.name = "runtime-root",
		.type = SETTING_TEXT,
		.fallback = "~/.local/share/acp-broker",
		.help = "the folder on the host that contains the workspaces"},
	[KEY_LINK_GRACE] = {.name = "link-grace",
		.type = SETTING_DURATION,
		.fallback = "1h",
		.min = SECOND,
		.max = DAY,
		.help = "without contact to this broker, after which all its processes on the host "
			"end"},
	[KEY_CHANNEL_TIMEOUT] = {.name = "channel-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = 1,
		.max = HOUR,
		.help = "for a process to find a free channel"},
	[KEY_LOGIN_TIMEOUT] = {.name = "login-timeout",
		.type = SETTING_DURATION,
		.fallback = "10s",
		.min = 1,
		.max = HOUR,
		.help = "for the login shell on the host to report its PATH"},
	[KEY_LOGIN_ENV] = {.name = "login-env",
		.type = SETTING_NAME_LIST,
		.help = "a variable of the login shell on the host that the agent gets, or all"},
	[KEY_CONNECTIONS] = {.name = "max-connections",
		.type = SETTING_COUNT,
		.fallback = "4",
		.min = 1,
		.max = 64,
		.help = "connections to use when one has no free channel"},
	[KEY_RUNNER] = {.name = "runner",
		.type = SETTING_CHOICE,
		.choices = runner_choices,
		.fallback = "auto",
		.help = "whether the broker's own program does all work on the host, instead of "
			"shell scripts"},
	[KEY_OUTLIVES] = {.name = "outlives",
		.type = SETTING_CHOICE,
		.choices = runner_choices,
		.fallback = "auto",
		.help = "whether the processes on the host go on when the connection is lost"},
	[KEY_ORPHAN_GRACE] = {.name = "orphan-grace",
		.type = SETTING_DURATION,
		.fallback = "10m",
		.min = SECOND,
		.max = DAY,
		.help = "how long the processes there go on if the broker was probably killed"},
	[KEY_TURN_GRACE] = {.name = "turn-grace",
		.type = SETTING_DURATION,
		.fallback = "8h",
		.min = SECOND,
		.max = DAY,
		.help = "instead of link-grace, while a turn is open and outlives = auto"},
	[KEY_LINK_BUFFER] = {.name = "link-buffer",
		.type = SETTING_BYTES,
		.fallback = "4m",
		.min = LINK_BUFFER_MIN,
		.max = LINK_BUFFER_MAX,
		.help = "how much of an agent's input, and of its output, may be under way"},
	[KEY_FORWARD] = {.name = "forward",
		.type = SETTING_LIST,
		.help = "a port of this machine that leads to one on the host: 3000, or 8080:3000"},
};

static bool is_transient(const struct settings *settings)
{
	const char *persistence = settings_get(settings, "persistence");
	return persistence && strcmp(persistence, "transient") == 0;
}

static bool is_auto(const struct settings *settings, size_t key)
{
	const char *value = settings_get(settings, own_keys[key].name);
	return strcmp(value ? value : own_keys[key].fallback, runner_choices[0]) == 0;
}

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct ssh_provider *self = CONTAINER_OF(provider, struct ssh_provider, provider);
	const struct settings *settings = request->settings;
	const char *runtime_root = settings_get(settings, "runtime-root");
	if (!forward_ports_check(settings, is_auto(settings, KEY_RUNNER), err)) {
		return NULL;
	}
	char **login_env = words_of_settings(settings, own_keys[KEY_LOGIN_ENV].name);
	struct ssh_sandbox_settings ours = {
		.runtime_root = runtime_root ? runtime_root : own_keys[KEY_RUNTIME_ROOT].fallback,
		.token = is_transient(settings) ? self->token : NULL,
		.runs = &self->runs,
		.grace_ms = settings_number(settings, &own_keys[KEY_LINK_GRACE]),
		.channel_timeout_ms = settings_number(settings, &own_keys[KEY_CHANNEL_TIMEOUT]),
		.login_timeout_ms = settings_number(settings, &own_keys[KEY_LOGIN_TIMEOUT]),
		.login_env = (const char *const *)login_env,
		.connect = ssh_connect,
		.wants_runner = is_auto(settings, KEY_RUNNER),
		.outlives = is_auto(settings, KEY_OUTLIVES) && !request->only_ends_left,
		.names_outlives = settings_get(settings, own_keys[KEY_OUTLIVES].name) != NULL,
		.orphan_ms = settings_number(settings, &own_keys[KEY_ORPHAN_GRACE]),
		.turn_grace_ms = settings_number(settings, &own_keys[KEY_TURN_GRACE]),
		.link_buffer =
			(unsigned long long)settings_number(settings, &own_keys[KEY_LINK_BUFFER]),
		.max_connections = (size_t)settings_number(settings, &own_keys[KEY_CONNECTIONS]),
	};
	struct sandbox *sandbox =
		ssh_sandbox_open(self->context, request, &ours, NULL, listener, data, err);
	words_free(login_env);
	return sandbox;
}

static bool check(const struct settings *settings, char ***warnings, struct error *err)
{
	bool names_outlives = settings_get(settings, own_keys[KEY_OUTLIVES].name) != NULL;
	if (names_outlives && is_auto(settings, KEY_OUTLIVES) && !is_auto(settings, KEY_RUNNER)) {
		words_append(warnings,
			"outlives: no, because only the runner can go on without the connection, "
			"and runner = never");
	}
	return forward_ports_check(settings, is_auto(settings, KEY_RUNNER), err);
}

static bool describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	const struct ssh_provider *self = CONTAINER_OF(provider, struct ssh_provider, provider);
	return ssh_describe(self->context, settings, listener, data, err);
}

static void destroy(struct provider *provider)
{
	struct ssh_provider *self = CONTAINER_OF(provider, struct ssh_provider, provider);
	ssh_runs_finish(&self->runs);
	free(self->keys);
	free(self);
}

static const struct error_reason reasons[] = {
	{"HOST_NOT_FOUND", false, "correct the host of the profile, or its name in ~/.ssh/config"},
	{"HOST_UNREACHABLE", true,
		"try again once the host answers; the message has each address and why it failed"},
	{"HOST_KEY_UNKNOWN", false,
		"compare the fingerprint with the host's own, then add the line in the message"},
	{"HOST_KEY_MISMATCH", false,
		"find out why the key has changed; the message has the line with the other key"},
	{"AUTH_FAILED", false,
		"give the host one of the keys, or change the profile's keys; the message lists "
		"what was tried"},
	{"SSH_UNSUPPORTED", false, "set ssh-client as the message says; it names what was missing"},
	{"HOST_COMMAND_FORCED", false,
		"use an account or key whose commands the host does not replace"},
};

static const struct provider_place places[] = {
	{.name = "host",
		.text = "on a host that ssh reaches, in a copy of your project",
		.asked = "host"},
};

static bool look_at_place(struct provider *provider, const struct provider_place *place,
	char ***choices, struct error *err)
{
	const struct ssh_provider *self = CONTAINER_OF(provider, struct ssh_provider, provider);
	return ssh_hosts_find(self->context->environment, choices, err);
}

struct provider *ssh_provider_create(const struct provider_context *context)
{
	struct ssh_provider *self = mem_alloc_zero(sizeof(*self));
	size_t count = ssh_target_key_count + ARRAY_LENGTH(own_keys);
	self->keys = mem_alloc(count * sizeof(*self->keys));
	memcpy(self->keys, ssh_target_keys, ssh_target_key_count * sizeof(*self->keys));
	memcpy(self->keys + ssh_target_key_count, own_keys, sizeof(own_keys));
	self->impl = (struct provider_impl){.name = "ssh",
		.keeps_runs = true,
		.keys = self->keys,
		.key_count = count,
		.reasons = reasons,
		.reason_count = ARRAY_LENGTH(reasons),
		.destroy = destroy,
		.prepare = prepare,
		.check = check,
		.places = places,
		.place_count = ARRAY_LENGTH(places),
		.look_at_place = look_at_place,
		.describe = describe};
	self->provider.impl = &self->impl;
	self->context = context;
	ssh_runs_init(&self->runs, context->state_folder);
	return &self->provider;
}
