/* SPDX-License-Identifier: MIT */
#include "tests/conformance/piped.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "providers/ssh/sandbox.h"
#include "tests/support/ssh/pipe_client.h"

struct piped_provider {
	struct provider provider;
	const struct provider_context *context;
	char folder[PATH_MAX];
	bool is_apart; // stderr has separate channels
	bool has_runner;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	const struct piped_provider *self = CONTAINER_OF(provider, struct piped_provider, provider);
	struct ssh_target target = {.alias = mem_strdup("box"),
		.host = mem_strdup("127.0.0.1"),
		.user = mem_strdup("somebody")};
	struct ssh_sandbox_settings settings = {
		.runtime_root = "run time",
		.grace_ms = 60000,
		.channel_timeout_ms = 20000,
		.login_timeout_ms = 20000,
		/* With ten channels each: the cases run a hundred processes. */
		.max_connections = self->is_apart ? 24 : 12,
		.stderr_apart = self->is_apart,
		.wants_runner = self->has_runner,
		.connect = pipe_client_connect,
	};
	pipe_client_options.shell = "/bin/sh";
	pipe_client_options.home = self->folder;
	pipe_client_options.max_sessions = 10;
	return ssh_sandbox_open(self->context, request, &settings, &target, listener, data, err);
}

static void destroy(struct provider *provider)
{
	free(CONTAINER_OF(provider, struct piped_provider, provider));
}

static const struct provider_impl impl = {.name = "ssh", .destroy = destroy, .prepare = prepare};

static struct piped_provider *create(const struct provider_context *context, const char *folder)
{
	struct piped_provider *self = mem_alloc_zero(sizeof(*self));
	self->provider.impl = &impl;
	self->context = context;
	snprintf(self->folder, sizeof(self->folder), "%s", folder);
	return self;
}

struct provider *piped_provider_create(const struct provider_context *context, const char *folder)
{
	return &create(context, folder)->provider;
}

struct provider *piped_provider_create_runner(
	const struct provider_context *context, const char *folder)
{
	struct piped_provider *self = create(context, folder);
	self->has_runner = true;
	return &self->provider;
}

struct provider *piped_provider_create_apart(
	const struct provider_context *context, const char *folder)
{
	struct piped_provider *self = create(context, folder);
	self->is_apart = true;
	return &self->provider;
}
