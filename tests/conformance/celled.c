/* SPDX-License-Identifier: MIT */
#include "tests/conformance/celled.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "providers/impl.h"
#include "providers/local/cell/cell.h"
#include "providers/local/local.h"
#include "tests/conformance/world.h"

enum { ORDINARY_USER = 12345 };

struct celled_provider {
	struct provider provider;
	struct provider_impl impl; // the inner one's, with another destroy
	struct provider_context context;
	struct provider *inner; // owned
	struct cell *cell;      // owned
	bool is_ready;
};

bool celled_enter(void)
{
	const gid_t group = ORDINARY_USER;
	if (chdir("/") != 0) { // a checkout below /tmp is in no cell, because a cell has its own
		return false;
	}
	if (geteuid() != 0) {
		return true;
	}
	return setgroups(1, &group) == 0 && setresgid(group, group, group) == 0 &&
	       setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1) == 0;
}

static void on_ready(void *data)
{
	((struct celled_provider *)data)->is_ready = true;
}

static void on_ended(void *data, const struct error *err)
{
	fail_msg("the cell: %s", err->text);
}

static const struct cell_listener cell_listener = {.on_ready = on_ready, .on_ended = on_ended};

static void destroy(struct provider *provider)
{
	struct celled_provider *self = CONTAINER_OF(provider, struct celled_provider, provider);
	provider_destroy(self->inner);
	cell_destroy(self->cell);
	free(self);
}

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct celled_provider *self = CONTAINER_OF(provider, struct celled_provider, provider);
	return sandbox_prepare(self->inner, request, listener, data, err);
}

struct provider *celled_provider_create(const struct provider_context *context, const char *folder)
{
	struct celled_provider *self = mem_alloc_zero(sizeof(*self));
	struct error err;
	const struct cell_entry entries[] = {{.rule = CELL_WRITE, .path = folder}};
	const struct cell_plan plan = {.user = "tester",
		.home = "/home/tester",
		.uid = geteuid(),
		.gid = getegid(),
		.has_network = true,
		.entries = entries,
		.entry_count = ARRAY_LENGTH(entries)};
	self->cell =
		cell_create(context->loop, context->spawner, &plan, &cell_listener, self, &err);
	assert_non_null(self->cell);
	while (!self->is_ready) {
		ev_run(context->loop, EVRUN_ONCE); // the cell's own deadline ends this
	}
	self->context = *context;
	self->context.spawner = cell_spawner(self->cell);
	self->inner = local_provider_create(&self->context);
	self->impl = *self->inner->impl;
	self->impl.destroy = destroy;
	self->impl.prepare = prepare;
	self->provider.impl = &self->impl;
	return &self->provider;
}
