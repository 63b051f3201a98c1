/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/ssh/host.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/life.h"

/*
 * The client for a target that may need several tries. With SSH_CLIENT_AUTO it uses libssh2, and
 * the ssh program if libssh2 lacks what is needed. With a pin it tries the server's key types until
 * the server shows the pinned key (host_key_types). It wraps the current client; channels belong to
 * that inner client, and calls on them do not come through here.
 */
struct auto_client {
	struct ssh_client client;
	const struct provider_context *context; // borrowed
	struct ssh_target target;               // borrowed, except for the turn
	bool uses_program;
	struct error mismatch; // about the first key that was not the pinned one
	const struct ssh_client_listener *listener;
	void *data;
	struct life *life;
	struct ssh_client *inner;
	char note[ERROR_TEXT_MAX + 64]; // why it changed the client; "" once it was reported
};

static const struct ssh_client_listener inner_listener;

static void set_note(struct auto_client *self, const struct error *err)
{
	text_format(self->note, sizeof(self->note), "%s: using the ssh program", err->text);
}

/* False if a handler has closed the client. */
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

static bool start_inner(struct auto_client *self, struct error *err)
{
	ssh_connect_fn *connect = self->uses_program ? ssh_openssh_connect : ssh_libssh2_connect;
	self->inner = connect(self->context, &self->target, &inner_listener, self, err);
	return self->inner != NULL;
}

static bool may_use_program(const struct auto_client *self)
{
	return !self->uses_program && ssh_target_may_use_program(&self->target);
}

/* If libssh2 lacks what is needed, tries the ssh program. */
static bool switch_client(struct auto_client *self, const struct error *err)
{
	if (!may_use_program(self) || !error_has_reason(err, "SSH_UNSUPPORTED")) {
		return false;
	}
	set_note(self, err);
	self->uses_program = true;
	return true;
}

/*
 * If the server's key is not the pinned one, tries its next key type. After the last type, reports
 * the first failure.
 */
static bool turn_to_next_type(struct auto_client *self, struct error *err)
{
	if (!self->target.host_key_pin || !error_has_reason(err, "HOST_KEY_MISMATCH")) {
		return false;
	}
	if (!self->mismatch.reason) {
		self->mismatch = *err;
	}
	*err = self->mismatch;
	self->target.host_key_turn++;
	if (!host_key_types(self->target.host_key_turn) && may_use_program(self)) {
		/*
		 * Some versions of libssh2 lack the signatures of RSA keys; the program checks the
		 * same pin.
		 */
		self->uses_program = true;
		self->target.host_key_turn = HOST_KEY_TURN_RSA;
	}
	return host_key_types(self->target.host_key_turn) != NULL;
}

static void on_lost(void *data, const struct error *err)
{
	struct auto_client *self = data;
	struct error copy = *err;
	if (switch_client(self, &copy) || turn_to_next_type(self, &copy)) {
		ssh_client_close(self->inner);
		self->inner = NULL;
		if (!tell_note(self) || start_inner(self, &copy)) {
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

static struct ssh_client *connect_auto(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	struct auto_client *self = mem_alloc_zero(sizeof(*self));
	self->client.impl = &auto_impl;
	self->context = context;
	self->target = *target;
	self->uses_program = target->client == SSH_CLIENT_OPENSSH;
	self->listener = listener;
	self->data = data;
	self->life = life_begin();
	if (!start_inner(self, err) && !(switch_client(self, err) && start_inner(self, err))) {
		auto_close(&self->client);
		return NULL;
	}
	return &self->client;
}

struct ssh_client *ssh_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err)
{
	if (target->client == SSH_CLIENT_AUTO || target->host_key_pin) {
		return connect_auto(context, target, listener, data, err);
	}
	return target->client == SSH_CLIENT_LIBSSH2
	               ? ssh_libssh2_connect(context, target, listener, data, err)
	               : ssh_openssh_connect(context, target, listener, data, err);
}
