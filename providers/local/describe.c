/* SPDX-License-Identifier: MIT */
#include "providers/local/describe.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/soon.h"
#include "base/text.h"
#include "providers/local/cell_keys.h"
#include "providers/local/cell_network.h"
#include "providers/local/copy_cell.h"
#include "providers/local/keys/profile_keys.h"
#include "providers/local/net/forward_ports.h"

struct describing {
	struct soon soon;
	struct profile_key keys[KEYS_MAX];
	size_t count;
	struct forward_port forwards[FORWARDS_MAX];
	size_t forward_count;
	const char *proxy; // a variable that names one, which the cell does not use; NULL: none
	const struct provider_describe_listener *listener;
	void *data;
};

static void describe_forwards(const struct describing *self)
{
	char text[64];
	for (size_t i = 0; i < self->forward_count; i++) {
		text_format(text, sizeof(text), "localhost:%u leads to port %u in the cell",
			self->forwards[i].here, self->forwards[i].inside);
		self->listener->on_fact(self->data, "forward", text);
	}
}

/* A variable of the environment that names a proxy, where the profile connects without one. */
static const char *find_proxy(const char *const *environment, const struct settings *settings)
{
	static const char *const names[] = {
		"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"};
	bool connects =
		copy_confinement(settings) != CONFINEMENT_NO && cell_network_is_wanted(settings);
	for (size_t i = 0; connects && i < ARRAY_LENGTH(names); i++) {
		const char *value = environment_get(environment, names[i]);
		if (value && value[0]) {
			return names[i];
		}
	}
	return NULL;
}

static void describe_proxy(const struct describing *self)
{
	char text[256];
	if (self->proxy) {
		text_format(text, sizeof(text),
			"%s names one, but the broker connects a confined agent directly: on a "
			"machine that needs the proxy, the agent reaches no host",
			self->proxy);
		self->listener->on_fact(self->data, "proxy", text);
	}
}

static void on_due(struct soon *soon)
{
	struct describing *self = CONTAINER_OF(soon, struct describing, soon);
	char text[KEY_NAME_SIZE + KEY_URL_SIZE + KEY_NAME_SIZE + 64];
	for (size_t i = 0; i < self->count; i++) {
		const struct profile_key *key = &self->keys[i];
		text_format(text, sizeof(text), "%s for %s, in %s; %s leads there", key->name,
			key->url, key->header ? key->header : "Authorization", key->url_name);
		self->listener->on_fact(self->data, "key", text);
	}
	describe_forwards(self);
	describe_proxy(self);
	struct describing done = *self;
	free(self);
	done.listener->on_done(done.data, NULL);
}

bool local_describe(const struct provider_context *context, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	struct cell_keys *keys;
	if (!cell_keys_create(context, settings, &keys, err)) {
		return false;
	}
	cell_keys_destroy(keys);
	struct describing *self = mem_alloc_zero(sizeof(*self));
	self->listener = listener;
	self->data = data;
	self->proxy = find_proxy(context->environment, settings);
	soon_init(&self->soon, context->loop, on_due);
	if (profile_keys_read(settings, context->environment, self->keys, &self->count, err) &&
		forward_ports_read(settings, self->forwards, &self->forward_count, err)) {
		soon_start(&self->soon);
		return true;
	}
	free(self);
	return false;
}
