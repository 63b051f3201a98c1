/* SPDX-License-Identifier: MIT */
#include "tests/conformance/connected.h"

#include <stdlib.h>

#include "base/buf.h"
#include "providers/impl.h"
#include "providers/ssh/ssh.h"
#include "tests/support/ssh/sshd.h"

static struct sshd sshd;

/* The provider itself, and the keys that the cases do not know. */
struct connected_provider {
	struct provider provider;
	struct provider *ssh; // owned
	struct settings settings;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	const struct connected_provider *self =
		CONTAINER_OF(provider, struct connected_provider, provider);
	struct sandbox_request ours = {.profile = request->profile, .settings = &self->settings};
	return sandbox_prepare(self->ssh, &ours, listener, data, err);
}

static void destroy(struct provider *provider)
{
	struct connected_provider *self =
		CONTAINER_OF(provider, struct connected_provider, provider);
	provider_destroy(self->ssh);
	settings_finish(&self->settings);
	free(self);
}

static const struct provider_impl impl = {.name = "ssh", .destroy = destroy, .prepare = prepare};

static struct provider *create(
	const struct provider_context *context, const char *client, const char *runner)
{
	if (sshd.pid == 0) {
		sshd_start(&sshd, NULL);
	}
	struct connected_provider *self = mem_alloc_zero(sizeof(*self));
	self->provider.impl = &impl;
	self->ssh = ssh_provider_create(context);
	const char *const keys[][2] = {{"host", SSHD_ALIAS}, {"ssh-config", sshd.config},
		{"ssh-client", client}, {"runtime-root", "run time"}, {"runner", runner},
		{"max-connections", "12"}}; // with ten processes each: the cases run a hundred
	settings_init(&self->settings);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		settings_add(&self->settings, keys[i][0], keys[i][1], "test");
	}
	return &self->provider;
}

struct provider *connected_libssh2_create(
	const struct provider_context *context, const char *folder)
{
	return create(context, "libssh2", "never");
}

struct provider *connected_libssh2_runner_create(
	const struct provider_context *context, const char *folder)
{
	return create(context, "libssh2", "auto");
}

struct provider *connected_openssh_runner_create(
	const struct provider_context *context, const char *folder)
{
	return create(context, "openssh", "auto");
}

struct provider *connected_openssh_create(
	const struct provider_context *context, const char *folder)
{
	return create(context, "openssh", "never");
}

void connected_finish(void)
{
	sshd_stop(&sshd);
}
