/* SPDX-License-Identifier: MIT */
#include "providers/local/local.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "providers/local/agent_files.h"
#include "providers/local/copy.h"
#include "providers/local/copy_cell.h"
#include "providers/local/files.h"
#include "providers/local/host.h"

struct local_provider {
	struct provider provider;
	struct provider_impl impl; // local_impl, with its reasons
	struct error_reason reasons[2];
	const struct provider_context *context; // borrowed
};

struct local_sandbox {
	struct host_sandbox host;
	const struct sandbox_listener *listener;
	void *data;
	char home[PATH_MAX]; // where the broker was started, or its --workspace
};

static const char *const isolation_choices[] = {"none", "copy", NULL};

static const struct setting_key local_keys[] = {
	{.name = "isolation",
		.type = SETTING_CHOICE,
		.choices = isolation_choices,
		.fallback = "none",
		.help = "none: the agent works in the workspace itself; copy: in a copy of it"},
	{.name = "git-write",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "whether a confined agent without a copy may change repositories"},
	{.name = "confine",
		.type = SETTING_CHOICE,
		.choices = confinement_choices,
		.fallback = "no",
		.help = "whether the agent is confined; required: or not started"},
	{.name = "allow-read",
		.type = SETTING_LIST,
		.help = "a path that a confined agent can read, also in the home directory"},
	{.name = "allow-write",
		.type = SETTING_LIST,
		.help = "a path that a confined agent can change"},
	{.name = "allow-socket",
		.type = SETTING_LIST,
		.help = "a socket of this machine that a confined agent can use"},
	{.name = "agent-state",
		.type = SETTING_CHOICE,
		.choices = agent_files_choices,
		.help = "whose sessions and login a confined agent has in its home"},
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

/* Nothing here is worth keeping apart from the workspace, which is the user's. */
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

static struct sandbox *local_prepare(struct provider *provider,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	const struct local_provider *local =
		CONTAINER_OF(provider, struct local_provider, provider);
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
		snprintf(self->home, sizeof(self->home), "/"); // it was deleted, or is out of reach
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
	.network_of = copy_cell_network,
	.places = local_places,
	.place_count = ARRAY_LENGTH(local_places),
	.check = local_limits_check,
};

struct provider *local_provider_create(const struct provider_context *context)
{
	struct local_provider *self = mem_alloc_zero(sizeof(*self));
	self->reasons[0] = local_limit_reason;
	self->reasons[1] = copy_cell_reason;
	self->impl = local_impl;
	self->impl.reasons = self->reasons;
	self->impl.reason_count = ARRAY_LENGTH(self->reasons);
	self->provider.impl = &self->impl;
	self->context = context;
	return &self->provider;
}
