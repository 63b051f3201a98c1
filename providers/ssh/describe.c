/* SPDX-License-Identifier: MIT */
#include "providers/ssh/describe.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/forward_ports.h"
#include "providers/ssh/target.h"

struct describing {
	const struct provider_describe_listener *listener;
	void *data;
	const struct settings *settings; // borrowed until done
};

static void tell(const struct describing *self, const char *name, const char *value)
{
	if (value) {
		self->listener->on_fact(self->data, name, value);
	}
}

static void tell_all(const struct describing *self, const char *name, char *const *values)
{
	for (; values && *values; values++) {
		tell(self, name, *values);
	}
}

static const char *client_name(const struct ssh_target *target)
{
	static const char *const names[] = {[SSH_CLIENT_LIBSSH2] = "libssh2",
		[SSH_CLIENT_OPENSSH] = "openssh",
		[SSH_CLIENT_AUTO] = "auto"};
	return names[target->client];
}

static const char *checking_name(const struct ssh_target *target)
{
	static const char *const names[] = {[SSH_HOST_CHECKING_STRICT] = "refused",
		[SSH_HOST_CHECKING_ACCEPT_NEW] = "written down",
		[SSH_HOST_CHECKING_OFF] = "written down"};
	return target->host_key_pin ? "refused" : names[target->host_checking];
}

/* The jump hosts, beginning with the one nearest to the host. */
static void tell_hops(const struct describing *self, const struct ssh_target *target)
{
	for (const struct ssh_target *via = target->via; via; via = via->via) {
		char text[600];
		text_format(text, sizeof(text), "%s%s%s port %d",
			via->user ? ssh_target_user_shown(via) : "", via->user ? "@" : "",
			via->host, via->port);
		tell(self, "via", text);
	}
}

static void tell_target(const struct describing *self, const struct ssh_target *target)
{
	char port[16];
	snprintf(port, sizeof(port), "%d", target->port);
	tell(self, "host", target->host);
	tell(self, "port", port);
	tell(self, "user", ssh_target_user_shown(target));
	tell_hops(self, target);
	tell(self, "proxy-command", target->proxy_command);
	tell(self, "ssh-client", client_name(target));
	tell(self, "ssh-program", target->ssh_program ? target->ssh_program : "none on PATH");
	tell_all(self, "ssh-forward", target->forwards);
	tell_all(self, "identity-file", target->identity_files);
	tell(self, "identity-agent", target->identity_agent ? target->identity_agent : "none");
	tell(self, "host-key", target->host_key_pin);
	tell(self, "host-key-alias", target->host_key_alias);
	tell_all(self, "known-hosts", target->user_known_hosts_files);
	tell_all(self, "known-hosts", target->global_known_hosts_files);
	tell(self, "unknown-key", checking_name(target));
}

static void on_resolved(void *data, struct ssh_target *target, const struct error *err)
{
	struct describing *self = data;
	if (!err) {
		tell_target(self, target);
		forward_ports_describe(self->settings, "on the host", self->listener, self->data);
		ssh_target_finish(target);
	}
	self->listener->on_done(self->data, err);
	free(self);
}

bool ssh_describe(const struct provider_context *context, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	struct describing *self = mem_alloc_zero(sizeof(*self));
	self->listener = listener;
	self->data = data;
	self->settings = settings;
	if (!ssh_target_resolve(context, settings, on_resolved, self, err)) {
		free(self);
		return false;
	}
	return true;
}
