/* SPDX-License-Identifier: MIT */
#include "providers/local/local.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "providers/forward_ports.h"
#include "providers/local/agent_files.h"
#include "providers/local/cell_forward.h"
#include "providers/local/copy.h"
#include "providers/local/copy_sweep.h"
#include "providers/local/copy_cell.h"
#include "providers/local/describe.h"
#include "providers/local/files.h"
#include "providers/local/host.h"
#include "providers/local/keys/profile_keys.h"

struct local_provider {
	struct provider provider;
	struct provider_impl impl; // local_impl, with its reasons
	struct error_reason reasons[3];
	const struct provider_context *context; // borrowed
};

struct local_sandbox {
	struct host_sandbox host;
	const struct sandbox_listener *listener;
	void *data;
	char home[PATH_MAX]; // folder in which the broker was started, or --workspace
};

static const char *const isolation_choices[] = {"none", "copy", NULL};
static const char *const copy_per_choices[] = {"workspace", "session", NULL};

static const struct setting_key local_keys[] = {
	{.name = "isolation",
		.type = SETTING_CHOICE,
		.choices = isolation_choices,
		.fallback = "none",
		.help = "none: the agent works in the workspace itself; copy: in a copy of it"},
	{.name = "copy-per",
		.type = SETTING_CHOICE,
		.choices = copy_per_choices,
		.fallback = "workspace",
		.help = "workspace: the sessions of a workspace share one copy; session: each has "
			"its own"},
	{.name = "git-write",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "whether a confined agent without a copy may change repositories"},
	{.name = "confine",
		.type = SETTING_CHOICE,
		.choices = confinement_choices,
		.fallback = "no",
		.help = "whether the agent is confined; required: it does not start unconfined"},
	{.name = "allow-read",
		.type = SETTING_LIST,
		.help = "a path that a confined agent may read, even in the home directory"},
	{.name = "allow-write",
		.type = SETTING_LIST,
		.help = "a path that a confined agent may change"},
	{.name = "allow-socket",
		.type = SETTING_LIST,
		.help = "a socket of this machine that a confined agent may use"},
	{.name = "key",
		.type = SETTING_LIST,
		.help = "a key that a confined agent can use but not read: NAME for https://HOST"},
	{.name = "forward",
		.type = SETTING_LIST,
		.help = "a port of this machine that leads to one in the cell: 3000, or 8080:3000"},
	{.name = "agent-state",
		.type = SETTING_CHOICE,
		.choices = agent_files_choices,
		.help = "the known agent whose sessions and login the confined agent finds in its "
			"home"},
	{.name = "drop-env",
		.type = SETTING_NAME_LIST,
		.help = "a variable of the broker's environment that the agent does not get"},
	LOCAL_LIMIT_KEYS,
};

static void on_prepared(void *data, const struct error *err)
{
	struct local_sandbox *self = data;
	self->host.sandbox.was_ready = true;
	self->listener->on_ready(self->data);
}

/* Nothing is stored outside of the user's workspace, so there is nothing to remove. */
static void local_destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	sandbox_raise_later(sandbox, done, data, NULL);
}

static void local_close(struct sandbox *sandbox)
{
	struct local_sandbox *self = CONTAINER_OF(sandbox, struct local_sandbox, host.sandbox);
	host_sandbox_finish(&self->host);
	free(self);
}

static const struct sandbox_impl local_sandbox_impl = {
	.add_root = host_add_root,
	.exec = host_exec,
	.read_file = host_read_file,
	.write_file = host_write_file,
	.stat_file = host_stat_file,
	.resolve_path = host_resolve_path,
	.file_op_cancel = local_files_cancel,
	.close = local_close,
	.destroy = local_destroy,
	.suspend = host_suspend,
	.resume = host_resume,
	.by_signals = host_by_signals,
	.usage = host_usage,
};

/* Only a cell can keep a key from the agent that uses it. */
static bool check_keys(const struct settings *settings, struct error *err)
{
	struct profile_key keys[KEYS_MAX];
	size_t count = 0;
	if (profile_keys_are_wanted(settings) && copy_confinement(settings) == CONFINEMENT_NO) {
		return error_set(err, ERROR_CONFIG,
			"`key` hides a key from the agent, which needs a cell: set confine = "
			"required in the profile");
	}
	return profile_keys_read(settings, NULL, keys, &count, err);
}

static struct sandbox *local_prepare(struct provider *provider,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	const struct local_provider *local =
		CONTAINER_OF(provider, struct local_provider, provider);
	if (!check_keys(request->settings, err) || !cell_forward_check(request->settings, err)) {
		return NULL;
	}
	if (copy_is_wanted(request->settings) ||
		copy_confinement(request->settings) != CONFINEMENT_NO) {
		return copy_prepare(local->context, request, listener, data, err);
	}
	struct local_sandbox *self = mem_alloc_zero(sizeof(*self));
	host_sandbox_init(&self->host, &local_sandbox_impl, local->context);
	if (!local_limits_read(&self->host.limits, &self->host.sandbox, request->settings, err)) {
		local_close(&self->host.sandbox);
		return NULL;
	}
	if (!getcwd(self->home, sizeof(self->home)) || self->home[0] != '/') {
		snprintf(self->home, sizeof(self->home),
			"/"); // the folder was deleted or cannot be reached
	}
	self->host.sandbox.home = self->home;
	if (settings_get(request->settings, "drop-env")) {
		host_drop_variables(&self->host, request->settings, NULL);
	}
	self->host.sandbox.capabilities = (struct sandbox_capabilities){
		.many_roots = true, .shares_loopback = true, .is_near = true, .can_suspend = true};
	self->listener = listener;
	self->data = data;
	sandbox_raise_later(&self->host.sandbox, on_prepared, self, NULL);
	return &self->host.sandbox;
}

static struct provider_sweep *sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	const struct local_provider *local =
		CONTAINER_OF(provider, struct local_provider, provider);
	return copy_sweep(provider, local->context, request, kept, done, data, err);
}

static bool describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	const struct local_provider *local =
		CONTAINER_OF(provider, struct local_provider, provider);
	return local_describe(local->context, settings, listener, data, err);
}

static bool check(const struct settings *settings, char ***warnings, struct error *err)
{
	return check_keys(settings, err) && cell_forward_check(settings, err) &&
	       local_limits_check(settings, warnings, err);
}

static void local_provider_destroy(struct provider *provider)
{
	free(CONTAINER_OF(provider, struct local_provider, provider));
}

static const struct provider_place local_places[] = {
	{.name = "here", .text = "in your project, with your rights"},
	{.name = "confined",
		.text = "in a copy of your project; it cannot reach your other files",
		.key = "confine",
		.value = "yes",
		.is_confined = true,
		.strict = "required"},
	{.name = "asking",
		.text = "the same, and you are asked before it reaches a host of the network",
		.key = "confine",
		.value = "required",
		.more_key = "network",
		.more_value = "ask",
		.is_confined = true,
		.strict = "required"},
	{.name = "copy",
		.text = "in a copy of your project, with your rights",
		.key = "isolation",
		.value = "copy"},
};

static const struct provider_impl local_impl = {
	.name = "local",
	.runs_here = true,
	.keys = local_keys,
	.key_count = ARRAY_LENGTH(local_keys),
	.destroy = local_provider_destroy,
	.prepare = local_prepare,
	.is_isolated = copy_is_wanted,
	.is_per_session = copy_is_per_session,
	.sweep = sweep,
	.sweep_cancel = copy_sweep_cancel,
	.network_of = copy_cell_network,
	.places = local_places,
	.place_count = ARRAY_LENGTH(local_places),
	.check = check,
	.describe = describe,
};

struct provider *local_provider_create(const struct provider_context *context)
{
	struct local_provider *self = mem_alloc_zero(sizeof(*self));
	self->reasons[0] = local_limit_reason;
	self->reasons[1] = copy_cell_reason;
	self->reasons[2] = forward_taken_reason;
	self->impl = local_impl;
	self->impl.reasons = self->reasons;
	self->impl.reason_count = ARRAY_LENGTH(self->reasons);
	self->provider.impl = &self->impl;
	self->context = context;
	return &self->provider;
}
