/* SPDX-License-Identifier: MIT */
#include "providers/local/describe.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/soon.h"
#include "base/text.h"
#include "providers/local/cell_keys.h"
#include "providers/local/cell_network.h"
#include "providers/local/copy_cell.h"
#include "providers/local/keys/profile_keys.h"
#include "providers/forward_ports.h"
#include "providers/local/net/upstream.h"

struct describing {
	struct soon soon;
	struct profile_key keys[KEYS_MAX];
	size_t count;
	const struct settings *settings; // borrowed until done
	char proxy[NAME_SIZE + 256];     // a sentence about this machine's proxy; "": none
	const struct provider_describe_listener *listener;
	void *data;
};

/* Whether the broker connects the agent or sends a key, so that this machine's proxy matters. */
static bool needs_proxy(const struct describing *self, const struct settings *settings)
{
	return copy_confinement(settings) != CONFINEMENT_NO &&
	       (cell_network_is_wanted(settings) || self->count > 0);
}

/* curl(1) uses these for http:// URLs alone. */
static bool has_plain_proxy(const char *const *environment)
{
	static const char *const names[] = {"http_proxy", "HTTP_PROXY"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = environment_get(environment, names[i]);
		if (value && value[0]) {
			return true;
		}
	}
	return false;
}

/* The text contains no user and no password. */
static bool read_proxy(struct describing *self, const char *const *environment, struct error *err)
{
	struct upstream upstream;
	char host[NAME_SIZE];
	if (!upstream_read(&upstream, environment, err)) {
		return false;
	}
	if (upstream_is_set(&upstream)) {
		proxy_print_host(&upstream.place, host);
		text_format(self->proxy, sizeof(self->proxy),
			"connections of a confined agent and its keys go through %s, port %u (%s), "
			"except to the hosts of no_proxy",
			host, (unsigned)upstream.place.port, upstream.variable);
	} else if (has_plain_proxy(environment)) {
		text_format(self->proxy, sizeof(self->proxy),
			"http_proxy is not used: the broker connects a confined agent directly. "
			"Set https_proxy if this machine needs a proxy");
	}
	explicit_bzero(&upstream, sizeof(upstream));
	return true;
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
	forward_ports_describe(self->settings, "in the cell", self->listener, self->data);
	if (self->proxy[0]) {
		self->listener->on_fact(self->data, "proxy", self->proxy);
	}
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
	self->settings = settings;
	soon_init(&self->soon, context->loop, on_due);
	if (profile_keys_read(settings, context->environment, self->keys, &self->count, err) &&
		(!needs_proxy(self, settings) || read_proxy(self, context->environment, err))) {
		soon_start(&self->soon);
		return true;
	}
	free(self);
	return false;
}
