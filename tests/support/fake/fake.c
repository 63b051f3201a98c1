/* SPDX-License-Identifier: MIT */
#include "tests/support/fake/fake.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/fake/internal.h"

struct fake_provider {
	struct provider provider;
	const struct provider_context *context;
	struct fake_behaviour behaviour;
	struct list sandboxes; // of struct fake_sandbox
};

static const char *const operation_names[FAKE_OPERATION_COUNT + 1] = {
	[FAKE_PREPARE] = "prepare",
	[FAKE_ADD_ROOT] = "add-root",
	[FAKE_EXEC] = "exec",
	[FAKE_START] = "start",
	[FAKE_READ] = "read",
	[FAKE_WRITE] = "write",
	[FAKE_STAT] = "stat",
	[FAKE_RESOLVE] = "resolve",
	[FAKE_DESTROY] = "destroy",
};

enum { KEY_RUNTIME_ROOT, KEY_ROOTS_MAX, KEY_DELAY, KEY_READ_CHUNK, KEY_ISOLATED, KEY_FAIL };

static const struct setting_key fake_keys[] = {
	[KEY_RUNTIME_ROOT] = {.name = "runtime-root", .type = SETTING_TEXT, .help = "a folder"},
	[KEY_ROOTS_MAX] = {.name = "roots-max", .type = SETTING_COUNT, .max = 1000},
	[KEY_DELAY] = {.name = "delay", .type = SETTING_DURATION, .max = 3600000},
	[KEY_READ_CHUNK] = {.name = "read-chunk", .type = SETTING_BYTES, .max = 4096},
	[KEY_ISOLATED] = {.name = "isolated", .type = SETTING_BOOL},
	[KEY_FAIL] = {.name = "fail", .type = SETTING_LIST, .help = "an operation's name"},
	{.name = "inventory", .type = SETTING_TEXT, .help = "a folder, whose files are sandboxes"},
};

static struct fake_provider *from_provider(struct provider *provider)
{
	return CONTAINER_OF(provider, struct fake_provider, provider);
}

struct fake_behaviour *fake_behaviour(struct provider *provider)
{
	return &from_provider(provider)->behaviour;
}

bool fake_fails(struct fake_sandbox *sandbox, enum fake_operation operation, struct error *err)
{
	struct fake_behaviour *behaviour = sandbox->behaviour;
	if (behaviour->failures[operation] == 0) {
		return false;
	}
	behaviour->failures[operation]--;
	*err = behaviour->failure[operation];
	if (err->code == ERROR_NONE) {
		error_set(err, ERROR_UNAVAILABLE, "fake: %s fails", operation_names[operation]);
	}
	return true;
}

struct ev_loop *fake_loop(struct provider *provider)
{
	return from_provider(provider)->context->loop;
}

/* ---- keys ---- */

static bool read_keys(const struct settings *settings, struct fake_behaviour *out)
{
	bool has_any = false;
	for (size_t i = 0; i < ARRAY_LENGTH(fake_keys); i++) {
		has_any = has_any || settings_get(settings, fake_keys[i].name);
	}
	if (!has_any) {
		return false;
	}
	const char *root = settings_get(settings, fake_keys[KEY_RUNTIME_ROOT].name);
	snprintf(out->runtime_root, sizeof(out->runtime_root), "%s", root ? root : "");
	out->isolated = root != NULL;
	if (settings_get(settings, fake_keys[KEY_ROOTS_MAX].name)) {
		out->roots_max = (size_t)settings_number(settings, &fake_keys[KEY_ROOTS_MAX]);
	}
	if (settings_get(settings, fake_keys[KEY_DELAY].name)) {
		out->delay_ms = (int)settings_number(settings, &fake_keys[KEY_DELAY]);
	}
	if (settings_get(settings, fake_keys[KEY_READ_CHUNK].name)) {
		out->read_chunk = (size_t)settings_number(settings, &fake_keys[KEY_READ_CHUNK]);
	}
	if (settings_get(settings, fake_keys[KEY_ISOLATED].name)) {
		out->isolated = settings_bool(settings, &fake_keys[KEY_ISOLATED]);
	}
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		for (int i = 0; i < FAKE_OPERATION_COUNT; i++) {
			if (strcmp(setting->key, "fail") == 0 &&
				strcmp(setting->value, operation_names[i]) == 0) {
				out->failures[i] = INT_MAX;
			}
		}
	}
	return true;
}

/* ---- a sandbox ---- */

static void on_prepared(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct fake_sandbox *self = CONTAINER_OF(timer, struct fake_sandbox, loss);
	struct error err;
	if (self->loss_err.code != ERROR_NONE) {
		self->listener->on_failed(self->data, &self->loss_err);
	} else if (fake_fails(self, FAKE_PREPARE, &err)) {
		self->listener->on_failed(self->data, &err);
	} else {
		self->host.sandbox.was_ready = true;
		self->listener->on_ready(self->data);
	}
}

static bool make_folder(const char *path, struct error *err)
{
	if (mkdir(path, 0755) != 0 && errno != EEXIST) {
		int errnum = errno;
		return error_set_errno(err, errnum, "fake: making %s", path);
	}
	return true;
}

static bool has_root(const struct sandbox *sandbox, const char *local_root)
{
	for (size_t i = 0; i < sandbox->root_count; i++) {
		if (strcmp(sandbox->roots[i].local, local_root) == 0) {
			return true;
		}
	}
	return false;
}

/* Adds roots one after the other, so that they are numbered in the order of the calls. */
static void fake_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct fake_sandbox *self = fake_from_sandbox(sandbox);
	struct error err;
	if (has_root(sandbox, local_root)) {
		sandbox_raise_later(sandbox, done, data, NULL);
		return;
	}
	size_t max = self->behaviour->roots_max;
	if (max > 0 && self->roots_asked >= max) {
		error_set(&err, ERROR_UNAVAILABLE,
			"workspace %s: this sandbox takes no more than %zu", local_root, max);
		sandbox_raise_later(sandbox, done, data, &err);
		return;
	}
	char runtime[FILE_PATH_MAX + 32];
	snprintf(runtime, sizeof(runtime), "%s/%zu", self->behaviour->runtime_root,
		self->roots_asked);
	bool is_mapped = self->behaviour->runtime_root[0] != '\0';
	if (fake_fails(self, FAKE_ADD_ROOT, &err) || (is_mapped && !make_folder(runtime, &err))) {
		sandbox_raise_later(sandbox, done, data, &err);
		return;
	}
	self->roots_asked++;
	struct sandbox_root root = {
		.local = local_root, .runtime = is_mapped ? runtime : local_root};
	host_add_mapped_root(sandbox, &root, done, data);
}

static void fake_destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct error err;
	bool fails = fake_fails(fake_from_sandbox(sandbox), FAKE_DESTROY, &err);
	sandbox_raise_later(sandbox, done, data, fails ? &err : NULL);
}

static void fake_close(struct sandbox *sandbox)
{
	struct fake_sandbox *self = fake_from_sandbox(sandbox);
	ev_timer_stop(sandbox->loop, &self->loss);
	fake_ops_abandon(self);
	fake_execs_abandon(self);
	fake_pumps_stop(self);
	host_sandbox_finish(&self->host);
	list_remove(&self->link);
	free(self);
}

static const struct sandbox_impl fake_sandbox_impl = {
	.add_root = fake_add_root,
	.exec = fake_exec,
	.read_file = fake_read_file,
	.write_file = fake_write_file,
	.stat_file = fake_stat_file,
	.resolve_path = fake_resolve_path,
	.file_op_cancel = fake_op_cancel,
	.close = fake_close,
	.destroy = fake_destroy,
};

static bool find_home(struct fake_sandbox *self, struct error *err)
{
	const char *runtime = self->behaviour->runtime_root;
	if (runtime[0]) {
		snprintf(self->home, sizeof(self->home), "%s", runtime);
		return make_folder(runtime, err);
	}
	if (!getcwd(self->home, sizeof(self->home))) {
		snprintf(self->home, sizeof(self->home), "/");
	}
	return true;
}

static struct sandbox *fake_prepare(struct provider *provider,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	struct fake_provider *fake = from_provider(provider);
	struct fake_sandbox *self = mem_alloc_zero(sizeof(*self));
	self->provider = fake;
	self->listener = listener;
	self->data = data;
	self->behaviour = read_keys(request->settings, &self->own) ? &self->own : &fake->behaviour;
	if (!find_home(self, err)) {
		free(self);
		return NULL;
	}
	host_sandbox_init(&self->host, &fake_sandbox_impl, fake->context);
	self->host.sandbox.home = self->home;
	self->host.sandbox.capabilities = (struct sandbox_capabilities){
		.isolated = self->behaviour->isolated,
		.many_roots = self->behaviour->roots_max != 1,
		.maps_paths = self->behaviour->runtime_root[0] != '\0',
		.shares_loopback = !self->behaviour->isolated,
		.is_near = !self->behaviour->isolated,
	};
	list_init(&self->execs);
	list_init(&self->pumps);
	list_init(&self->ops);
	list_append(&fake->sandboxes, &self->link);
	ev_timer_init(&self->loss, on_prepared, self->behaviour->delay_ms / 1000., 0.);
	ev_timer_start(fake->context->loop, &self->loss);
	return &self->host.sandbox;
}

/* ---- the provider ---- */

void fake_lose(struct provider *provider, const char *text)
{
	LIST_FOR_EACH(self, &from_provider(provider)->sandboxes, struct fake_sandbox, link) {
		error_set(&self->loss_err, ERROR_UNAVAILABLE, "%s", text);
		fake_execs_lose(self, &self->loss_err);
		ev_timer_stop(self->host.sandbox.loop, &self->loss);
		ev_timer_set(&self->loss, 0., 0.);
		ev_timer_start(self->host.sandbox.loop, &self->loss);
	}
}

size_t fake_sandbox_count(const struct provider *provider)
{
	const struct fake_provider *fake =
		CONTAINER_OF((struct provider *)provider, struct fake_provider, provider);
	size_t count = 0;
	for (const struct list *at = fake->sandboxes.next; at != &fake->sandboxes; at = at->next) {
		count++;
	}
	return count;
}

static void fake_provider_destroy(struct provider *provider)
{
	free(from_provider(provider));
}

static const struct provider_impl fake_impl = {
	.name = "fake",
	.keys = fake_keys,
	.key_count = ARRAY_LENGTH(fake_keys),
	.destroy = fake_provider_destroy,
	.prepare = fake_prepare,
	.inventory = fake_inventory,
};

struct provider *fake_provider_create(const struct provider_context *context)
{
	struct fake_provider *fake = mem_alloc_zero(sizeof(*fake));
	fake->provider.impl = &fake_impl;
	fake->context = context;
	list_init(&fake->sandboxes);
	return &fake->provider;
}
