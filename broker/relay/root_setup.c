/* SPDX-License-Identifier: MIT */
#include "broker/relay/root_setup.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "broker/agent/provision.h"

struct root_setup {
	struct peer *peer;
	struct provision *provision; // owned
	sandbox_done *done;
	void *data;
};

/* Part of a peer in whose sandbox the lines have run; its presence is the mark. */
static const struct part_type ran_type = {.size = sizeof(bool)};

bool root_setup_is_needed(const struct peer *peer)
{
	return sandbox_setup(agent_sandbox(peer->agent)) && !parts_find(&peer->parts, &ran_type);
}

/* Where the root is in the sandbox; NULL: it is no root. */
static const char *place_of(const struct sandbox *sandbox, const char *directory)
{
	for (size_t i = 0; i < sandbox_root_count(sandbox); i++) {
		const struct sandbox_root *root = sandbox_root_at(sandbox, i);
		if (strcmp(root->local, directory) == 0) {
			return root->runtime;
		}
	}
	return NULL;
}

static void on_done(void *data, const struct error *err)
{
	struct root_setup *self = data;
	sandbox_done *done = self->done;
	void *done_data = self->data;
	struct error copy = err ? *err : (struct error){.code = ERROR_NONE};
	if (!err) {
		(void)parts_get(&self->peer->parts, &ran_type);
	}
	root_setup_destroy(self);
	done(done_data, err ? &copy : NULL);
}

struct root_setup *root_setup_start(
	struct peer *peer, const char *directory, sandbox_done *done, void *data)
{
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	if (!root_setup_is_needed(peer)) {
		return NULL;
	}
	const struct sandbox_setup *setup = sandbox_setup(sandbox);
	const char *place = place_of(sandbox, directory);
	if (!place || strcmp(setup->directory, directory) != 0) {
		log_info("%s: the commands of %s are not run for a session in %s", peer->hop,
			setup->source, directory);
		return NULL;
	}
	struct root_setup *self = mem_alloc_zero(sizeof(*self));
	const struct relay_config *config = &peer->relay->config;
	self->peer = peer;
	self->done = done;
	self->data = data;
	self->provision = provision_start(
		&(struct provision_config){
			.loop = config->loop,
			.pool = config->pool,
			.sandbox = sandbox,
			.profile = config->profile,
			.subject = peer->hop,
			.setup = setup,
			.directory = place,
		},
		on_done, self);
	return self;
}

void root_setup_destroy(struct root_setup *setup)
{
	if (setup) {
		provision_destroy(setup->provision);
		free(setup);
	}
}
