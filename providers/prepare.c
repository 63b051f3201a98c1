/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/impl.h"

static bool check_network(const struct provider_impl *impl, const struct settings *settings,
	char ***out_warnings, struct error *err)
{
	const struct network_abilities abilities =
		impl->network_of ? impl->network_of(settings) : impl->network;
	return network_policy_check(settings, &abilities, impl->name, out_warnings, err);
}

struct sandbox *sandbox_prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	assert(listener->on_ready && listener->on_failed);
	const struct provider_impl *impl = provider->impl;
	char **warnings;
	assert(!request->only_ends_left || impl->keeps_runs);
	if (!check_network(impl, request->settings, &warnings, err)) {
		return NULL;
	}
	struct sandbox *sandbox = impl->prepare(provider, request, listener, data, err);
	for (char **warning = warnings; sandbox && *warning; warning++) {
		sandbox_warn(sandbox, *warning);
	}
	words_free(warnings);
	return sandbox;
}

char **provider_warnings(
	const struct provider *provider, const struct settings *settings, struct error *err)
{
	char **warnings;
	const struct provider_impl *impl = provider->impl;
	if (!check_network(impl, settings, &warnings, err)) {
		return NULL;
	}
	if (impl->check && !impl->check(settings, &warnings, err)) {
		words_free(warnings);
		return NULL;
	}
	return warnings;
}

const char *const *sandbox_keys(const struct sandbox *sandbox)
{
	return sandbox->keys;
}

const char *const *sandbox_warnings(const struct sandbox *sandbox)
{
	static const char *const none[] = {NULL};
	assert(sandbox->was_ready);
	return sandbox->warnings ? (const char *const *)sandbox->warnings : none;
}

void sandbox_remark(struct sandbox *sandbox, const char *sentence)
{
	mem_set_text(&sandbox->remark, sentence);
}

void sandbox_quote(struct sandbox *sandbox, struct span words)
{
	free(sandbox->said);
	sandbox->said = words.len > 0 ? mem_strndup(words) : NULL;
}

struct span sandbox_said(const struct sandbox *sandbox)
{
	return span_of(sandbox->said ? sandbox->said : "");
}

char *sandbox_take_remark(struct sandbox *sandbox)
{
	char *remark = sandbox->remark;
	sandbox->remark = NULL;
	return remark;
}

void sandbox_warn(struct sandbox *sandbox, const char *sentence)
{
	words_append(&sandbox->warnings, sentence);
}
