/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/ssh/client.h"
#include "providers/ssh/life.h"

/*
 * The client of a target whose `client` is SSH_CLIENT_AUTO: libssh2, and the ssh program where
 * libssh2 says that it cannot do what is needed. A shell round the one in hand; channels are
 * the inner client's own, and calls on them do not come through here.
 */
struct auto_client {
	struct ssh_client client;
	const struct provider_context *context; // borrowed
	const struct ssh_target *target;        // borrowed
	const struct ssh_client_listener *listener;
	void *data;
	struct life *life;
	struct ssh_client *inner;
	bool has_switched;
	char note[ERROR_TEXT_MAX + 64]; // why it has; "" once it was told
};

static const struct ssh_client_listener inner_listener;

static void set_note(struct auto_client *self, const struct error *err)
{
	snprintf(self->note, sizeof(self->note), "%s: using the ssh program", err->text);
}

/* False where a handler has closed the client. */
static bool tell(struct auto_client *self, const char *text)
{
	struct life *life = life_hold(self->life);
	if (self->listener->on_progress) {
		self->listener->on_progress(self->data, text);
	}
	return !life_let_go(life);
}

static bool tell_note(struct auto_client *self)
{
	char note[sizeof(self->note)];
	if (!self->note[0]) {
		return true;
	}
	memcpy(note, self->note, sizeof(note));
	self->note[0] = '\0';
	return tell(self, note);
}

static void on_progress(void *data, const char *text)
{
	struct auto_client *self = data;
	if (tell_note(self)) {
		(void)!tell(self, text);
	}
}

static void on_ready(void *data)
{
	struct auto_client *self = data;
	if (tell_note(self)) {
		self->listener->on_ready(self->data);
	}
}

static bool is_cannot(const struct error *err)
{
	return err->reason && strcmp(err->reason, "SSH_UNSUPPORTED") == 0;
}

static bool may_switch(const struct auto_client *self, const struct error *err)
{
	return !self->has_switched && is_cannot(err) && self->target->ssh_program;
}

static bool start_program(struct auto_client *self, struct error *err)
{
	self->has_switched = true;
	self->inner = ssh_openssh_connect(self->context, self->target, &inner_listener, self, err);
	return self->inner != NULL;
}

static void on_lost(void *data, const struct error *err)
{
	struct auto_client *self = data;
	struct error copy = *err;
	if (may_switch(self, &copy)) {
		set_note(self, &copy);
		ssh_client_close(self->inner);
		self->inner = NULL;
		if (!tell_note(self) || start_program(self, &copy)) {
			return;
		}
	}
	if (tell_note(self)) {
		self->listener->on_lost(self->data, &copy);
	}
}

static const struct ssh_client_listener inner_listener = {
	.on_progress = on_progress, .on_ready = on_ready, .on_lost = on_lost};

static struct auto_client *from_client(struct ssh_client *client)
{
	return CONTAINER_OF(client, struct auto_client, client);
}

static void auto_close(struct ssh_client *client)
{
	struct auto_client *self = from_client(client);
	ssh_client_close(self->inner);
	life_end(self->life);
	free(self);
}

static struct ssh_channel *auto_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err)
{
	return ssh_channel_open(from_client(client)->inner, command, listener, data, err);
}

static const struct ssh_client_impl auto_impl = {
	.name = "auto",
	.close = auto_close,
	.open = auto_open,
};

static bool start(struct auto_client *self, struct error *err)
{
	self->inner = ssh_libssh2_connect(self->context, self->target, &inner_listener, self, err);
	if (self->inner) {
		return true;
	}
	if (!may_switch(self, err)) {
		return false;
	}
	set_note(self, err);
	return start_program(self, err);
}

static struct ssh_client *connect_auto(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	struct auto_client *self = mem_alloc_zero(sizeof(*self));
	self->client.impl = &auto_impl;
	self->context = context;
	self->target = target;
	self->listener = listener;
	self->data = data;
	self->life = life_begin();
	if (!start(self, err)) {
		auto_close(&self->client);
		return NULL;
	}
	return &self->client;
}

struct ssh_client *ssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	switch (target->client) {
	case SSH_CLIENT_LIBSSH2:
		return ssh_libssh2_connect(context, target, listener, data, err);
	case SSH_CLIENT_OPENSSH:
		return ssh_openssh_connect(context, target, listener, data, err);
	default:
		return connect_auto(context, target, listener, data, err);
	}
}
