/* SPDX-License-Identifier: MIT */
#include "tests/conformance/contained.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "providers/container/container.h"
#include "providers/impl.h"

#define IMAGE "localhost/box:1"

/* The provider itself, with the keys that the cases do not know. */
struct contained_provider {
	struct provider provider;
	struct provider_impl impl;
	struct provider_context context; // with another state folder
	struct provider *container;      // owned
	struct settings settings;
	char state[PATH_MAX], workspace[PATH_MAX];
	bool is_mounted;
};

static char storage[PATH_MAX]; // "": not started

static int run(const char *line)
{
	int status = system(line); // NOLINT(cert-env33-c): a test's own words
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *contained_start(void)
{
	char line[2 * PATH_MAX], path[PATH_MAX];
	static char name[] = "/tmp/contained-XXXXXX";
	if (geteuid() != 0) {
		return "a container with the programs of this machine needs root";
	}
	if (run("command -v podman >/dev/null && command -v runc >/dev/null") != 0) {
		return "there is no podman or runc";
	}
	if (!mkdtemp(name)) {
		return "no folder can be made in /tmp";
	}
	snprintf(storage, sizeof(storage), "%s", name);
	snprintf(line, sizeof(line), "sh '%s' '%s' '%s' /usr", ENGINE_SCRIPT, storage, IMAGE);
	if (run(line) != 0) {
		return "podman cannot import an image";
	}
	const struct {
		const char *variable, *file;
	} rows[] = {{"HOME", "home"}, {"CONTAINERS_CONF", "engine.conf"},
		{"CONTAINERS_STORAGE_CONF", "storage.conf"}};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		snprintf(path, sizeof(path), "%.4000s/%s", storage, rows[i].file);
		setenv(rows[i].variable, path, 1);
	}
	return NULL;
}

static void remove_containers(void)
{
	run("podman rm --force --all --time 0 >/dev/null 2>&1");
}

void contained_finish(void)
{
	char line[2 * PATH_MAX];
	if (storage[0]) {
		remove_containers();
		snprintf(line, sizeof(line), "umount '%s/storage/overlay' 2>/dev/null; rm -rf '%s'",
			storage, storage);
		run(line);
		storage[0] = '\0';
	}
}

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	const struct contained_provider *self =
		CONTAINER_OF(provider, struct contained_provider, provider);
	struct sandbox_request ours = *request;
	ours.settings = &self->settings;
	ours.directory = self->is_mounted ? self->workspace : request->directory;
	return sandbox_prepare(self->container, &ours, listener, data, err);
}

static void destroy(struct provider *provider)
{
	struct contained_provider *self =
		CONTAINER_OF(provider, struct contained_provider, provider);
	provider_destroy(self->container);
	settings_finish(&self->settings);
	remove_containers();
	free(self);
}

static bool is_isolated(const struct settings *settings)
{
	return false;
}

static struct provider *create(
	const struct provider_context *context, const char *folder, bool is_mounted)
{
	struct contained_provider *self = mem_alloc_zero(sizeof(*self));
	/* No container may have a workspace in the state folder, which is the case's own folder. */
	snprintf(self->state, sizeof(self->state), "%.4000s/state", storage);
	self->context = *context;
	self->context.state_folder = self->state;
	self->container = container_provider_create(&self->context);
	self->impl = (struct provider_impl){.name = "container",
		.destroy = destroy,
		.prepare = prepare,
		.is_isolated = is_mounted ? is_isolated : NULL};
	self->provider.impl = &self->impl;
	self->is_mounted = is_mounted;
	snprintf(self->workspace, sizeof(self->workspace), "%.4000s/workspace", folder);
	settings_init(&self->settings);
	settings_add(&self->settings, "image", IMAGE, "test");
	settings_add(&self->settings, "engine", "podman", "test");
	settings_add(&self->settings, "answer-timeout", "10m", "test");
	settings_add(&self->settings, "command-timeout", "10m", "test");
	settings_add(&self->settings, "mount", is_mounted ? "same-path" : "none", "test");
	/* A container for each sandbox: one is destroyed while another is used. */
	settings_add(&self->settings, "persistence", "transient", "test");
	return &self->provider;
}

struct provider *contained_provider_create(
	const struct provider_context *context, const char *folder)
{
	return create(context, folder, false);
}

struct provider *contained_provider_create_mounted(
	const struct provider_context *context, const char *folder)
{
	return create(context, folder, true);
}
