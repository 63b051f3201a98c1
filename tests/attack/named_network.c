/* SPDX-License-Identifier: MIT */
#include "tests/attack/named_network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "providers/local/cell_network.h"

static void on_ready(void *data)
{
	((struct named_network *)data)->is_ready = true;
}

static void on_failed(void *data, const struct error *err)
{
	fail_msg("%s", err->text);
}

static void on_notice(void *data, const char *text)
{
	print_message("%s\n", text);
}

static const struct sandbox_listener listener = {.on_failed = on_failed, .on_notice = on_notice};

void named_network_open(struct named_network *self, struct ev_loop *loop, struct spawner *machine,
	struct cell *cell)
{
	static const char *const environment[] = {NULL};
	const struct provider_context context = {
		.loop = loop, .spawner = machine, .environment = environment};
	struct error err;
	settings_init(&self->settings);
	settings_add(&self->settings, "network", "allow", "test");
	settings_add(&self->settings, "allow-host", "allowed.example", "test");
	struct cell_network_config config = {.context = &context,
		.settings = &self->settings,
		.on_ready = on_ready,
		.data = self,
		.listener = &listener,
		.listener_data = self};
	cell_user(cell, &config.uid, &config.gid);
	self->network = cell_network_create(&config, &err);
	if (!self->network || !cell_network_serve(self->network, cell, &err)) {
		fail_msg("%s", err.text);
	}
}

void named_network_close(struct named_network *self)
{
	if (self->network) {
		cell_network_stop(self->network);
		settings_finish(&self->settings);
	}
}
