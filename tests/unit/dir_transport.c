/* SPDX-License-Identifier: MIT */
#include "tests/unit/dir_transport.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/soon.h"
#include "sync/apply.h"
#include "sync/snapshot.h"

struct dir_transport_hooks dir_transport_hooks;

struct dir_transport {
	struct transport transport;
	struct transport_request request;
	struct store store; // our own handle
	git_oid base, from, to;
	struct soon later;
	enum { PREPARE, COLLECT, DELIVER } operation;
	sandbox_done *prepared;
	transport_collect_done *collected;
	transport_deliver_done *delivered;
	void *data;
	bool is_held, waits;
};

static void fill_error(struct error *err)
{
	error_set(err, ERROR_UNAVAILABLE, "the link is down");
}

static void do_collect(struct dir_transport *dir)
{
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = dir->request.runtime_root,
		.base = &dir->base,
		.limits = snapshot_default_limits,
		.cache = "runtime"};
	if (dir_transport_hooks.fail_collects > 0) {
		dir_transport_hooks.fail_collects--;
		fill_error(&err);
		dir->collected(dir->data, NULL, &err);
		return;
	}
	if (!snapshot_take(&dir->store, &request, &snapshot, &err)) {
		dir->collected(dir->data, NULL, &err);
		return;
	}
	struct transport_collected collected = {.tree = snapshot.tree,
		.received_bytes = snapshot.bytes,
		.commits_left = dir_transport_hooks.commits_left};
	for (const char *const *path = dir_transport_hooks.left; path && *path; path++) {
		transport_left_add(&collected.left, *path);
	}
	dir->collected(dir->data, &collected, NULL);
}

static void on_left(void *data, const char *path, const char *why)
{
	stuck_add(data, path, why);
}

static void do_deliver(struct dir_transport *dir)
{
	struct stuck stuck = {0};
	struct transport_delivered delivered = {.sent_bytes = 1, .stuck = &stuck};
	struct error err;
	struct apply_result result;
	struct apply_request request = {.root = dir->request.runtime_root,
		.from = dir->from,
		.to = dir->to,
		.on_left = on_left,
		.data = &stuck};
	dir_transport_hooks.delivers++;
	if (dir_transport_hooks.before_deliver) {
		dir_transport_hooks.before_deliver(dir_transport_hooks.data);
	}
	if (dir_transport_hooks.fail_delivers > 0) {
		dir_transport_hooks.fail_delivers--;
		fill_error(&err);
		err.reason = dir_transport_hooks.deliver_reason;
		dir->delivered(dir->data, NULL, &err);
	} else if (!apply_run(&dir->store, &request, &result, &err)) {
		dir->delivered(dir->data, NULL, &err);
	} else if (result.left > 0) {
		delivered.is_lasting = dir_transport_hooks.is_lasting;
		error_set_reason(&err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED", "it has changed");
		dir->delivered(dir->data, &delivered, &err);
	} else {
		dir->delivered(dir->data, &delivered, NULL);
	}
	stuck_finish(&stuck);
}

static void on_later(struct soon *soon)
{
	struct dir_transport *dir = CONTAINER_OF(soon, struct dir_transport, later);
	switch (dir->operation) {
	case PREPARE:
		dir->prepared(dir->data, NULL);
		break;
	case COLLECT:
		dir->waits = dir->is_held;
		if (!dir->waits) {
			do_collect(dir);
		}
		break;
	case DELIVER:
		do_deliver(dir);
		break;
	}
}

static void begin(struct dir_transport *dir, int operation, void *data)
{
	dir->operation = operation;
	dir->data = data;
	if (dir_transport_hooks.holds) {
		dir_transport_hooks.held = &dir->transport;
	} else {
		soon_start(&dir->later);
	}
}

static void prepare(struct transport *transport, sandbox_done *done, void *data)
{
	struct dir_transport *dir = CONTAINER_OF(transport, struct dir_transport, transport);
	dir->prepared = done;
	begin(dir, PREPARE, data);
}

static void collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data)
{
	struct dir_transport *dir = CONTAINER_OF(transport, struct dir_transport, transport);
	dir->base = *base;
	dir->collected = done;
	begin(dir, COLLECT, data);
}

static void deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data)
{
	struct dir_transport *dir = CONTAINER_OF(transport, struct dir_transport, transport);
	dir->from = *from;
	dir->to = *to;
	dir->delivered = done;
	begin(dir, DELIVER, data);
}

static void destroy(struct transport *transport)
{
	struct dir_transport *dir = CONTAINER_OF(transport, struct dir_transport, transport);
	soon_stop(&dir->later);
	if (dir_transport_hooks.held == transport) {
		dir_transport_hooks.held = NULL;
	}
	free((char *)dir->request.runtime_root);
	store_close(&dir->store);
	free(dir);
}

static void hold(struct transport *transport, bool holds)
{
	struct dir_transport *dir = CONTAINER_OF(transport, struct dir_transport, transport);
	dir->is_held = holds;
	if (dir->waits && !holds) {
		dir->waits = false;
		soon_start(&dir->later);
	}
}

static const struct transport_impl impl = {
	.name = "directory",
	.prepare = prepare,
	.collect = collect,
	.deliver = deliver,
	.destroy = destroy,
	.hold = hold,
};

struct transport *dir_transport_create(const struct transport_request *request)
{
	struct error err;
	struct dir_transport *dir = mem_alloc_zero(sizeof(*dir));
	if (!store_open(&dir->store, request->store->path, request->store->big_file_bytes, &err)) {
		abort();
	}
	dir->transport.impl = &impl;
	dir->request = *request;
	dir->request.runtime_root = mem_strdup(request->runtime_root);
	soon_init(&dir->later, dir->request.loop, on_later);
	return &dir->transport;
}

void dir_transport_release(void)
{
	struct transport *transport = dir_transport_hooks.held;
	dir_transport_hooks.held = NULL;
	struct dir_transport *dir = CONTAINER_OF(transport, struct dir_transport, transport);
	soon_start(&dir->later);
}
