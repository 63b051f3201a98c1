/* SPDX-License-Identifier: MIT */
#include "providers/exec/platform.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/path_quote.h"
#include "base/soon.h"
#include "base/text.h"
#include "providers/exec/inventory.h"
#include "providers/exec/sandbox.h"
#include "providers/exec/sweep.h"
#include "providers/forward_ports.h"

enum { FACT_MAX = 64 * 1024 };

struct exec_provider {
	struct provider provider;
	struct exec_shared shared;
};

static struct exec_provider *from_provider(struct provider *provider)
{
	return CONTAINER_OF(provider, struct exec_provider, provider);
}

struct sandbox *exec_provider_prepare(struct provider *provider,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	return exec_sandbox_open(&from_provider(provider)->shared, request, listener, data, err);
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters */
bool exec_provider_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	return exec_inventory(
		&from_provider(provider)->shared, request, act, name, listener, data, err);
}

struct provider_sweep *exec_provider_sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	return exec_sweep(
		provider, &from_provider(provider)->shared, request, kept, done, data, err);
}

void exec_provider_sweep_cancel(struct provider_sweep *sweep)
{
	exec_sweep_cancel(sweep);
}

bool exec_platform_check(
	const struct exec_platform *platform, const struct settings *settings, struct error *err)
{
	const struct provider_context nobody = {0};
	struct exec_profile profile;
	struct forward_port ports[FORWARDS_MAX];
	size_t count = 0;
	if (!forward_ports_read(settings, ports, &count, err) ||
		!exec_profile_read(&profile, platform, "", settings, &nobody, err)) {
		return false;
	}
	exec_profile_finish(&profile);
	return true;
}

/* ---- what the commands are, word by word ---- */

struct describing {
	struct exec_profile profile;
	const struct settings *settings; // borrowed until done
	const struct provider_describe_listener *listener;
	void *data;
	struct soon soon;
};

static void tell_words(const struct describing *self, enum exec_verb verb)
{
	struct buf text;
	buf_init(&text, FACT_MAX);
	char **words = self->profile.words[verb];
	for (size_t i = 0; words && words[i]; i++) {
		char *shown = path_quote(span_of(words[i]));
		(void)!buf_append_format(&text, NULL, "%s[%s]", i > 0 ? " " : "", shown);
		free(shown);
	}
	if (words) {
		char *whole = mem_strndup(buf_span(&text));
		self->listener->on_fact(self->data, exec_verb_name(verb), whole);
		free(whole);
	}
	buf_finish(&text);
}

static void tell_input(const struct describing *self, enum exec_verb verb)
{
	char name[64];
	if (self->profile.input[verb]) {
		text_format(name, sizeof(name), "stdin of %s", exec_verb_name(verb));
		self->listener->on_fact(self->data, name, self->profile.input[verb]);
	}
}

static void on_soon(struct soon *soon)
{
	struct describing *self = CONTAINER_OF(soon, struct describing, soon);
	const struct provider_describe_listener *listener = self->listener;
	void *data = self->data;
	for (int verb = 0; verb < EXEC_VERBS; verb++) {
		tell_words(self, (enum exec_verb)verb);
		tell_input(self, (enum exec_verb)verb);
	}
	if (self->profile.shows_workspace) {
		listener->on_fact(data, "mount",
			self->profile.writes_git
				? "start also mounts the workspace; guarded files are read-only"
				: "start also mounts the workspace; repositories and guarded files "
				  "are read-only");
	}
	forward_ports_describe(self->settings, "in the sandbox", listener, data);
	exec_profile_finish(&self->profile);
	free(self);
	listener->on_done(data, NULL);
}

bool exec_provider_describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	const struct exec_shared *shared = &from_provider(provider)->shared;
	struct describing *self = mem_alloc_zero(sizeof(*self));
	if (!exec_profile_read(
		    &self->profile, shared->platform, "", settings, shared->context, err)) {
		free(self);
		return false;
	}
	self->listener = listener;
	self->data = data;
	self->settings = settings;
	soon_init(&self->soon, shared->context->loop, on_soon);
	soon_start(&self->soon);
	return true;
}

/* ---- the provider ---- */

void exec_provider_destroy(struct provider *provider)
{
	struct exec_provider *self = from_provider(provider);
	ssh_runs_finish(&self->shared.runs);
	free(self);
}

struct provider *exec_platform_provider_create(const struct provider_context *context,
	const struct provider_impl *impl, const struct exec_platform *platform)
{
	struct exec_provider *self = mem_alloc_zero(sizeof(*self));
	self->provider.impl = impl;
	self->shared.context = context;
	self->shared.platform = platform;
	ssh_runs_init(&self->shared.runs, context->state_folder);
	return &self->provider;
}
