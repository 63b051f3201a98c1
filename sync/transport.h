/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TRANSPORT_H
#define SYNC_TRANSPORT_H

#include <ev.h>

#include "base/pool.h"
#include "providers/provider.h"
#include "sync/store.h"

/*
 * How a tree gets from the store into the runtime and back. All of it works
 * through the sandbox's exec and file operations alone. Loop thread; an operation
 * never raises its end before it returns and raises exactly one, unless the
 * transport is destroyed before. One operation at a time.
 */
struct transport;

struct transport_request {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	struct store *store;    // borrowed; the transport's for the time of an operation
	const char *local_root; // the workspace; its repository, if any, is read
	const char *runtime_root;
	const char *const *include, *const *exclude;
	long long timeout_ms; // without any progress
	uint64_t bytes_max;   // received in one operation
};

/*
 * A snapshot of the runtime root in the store. `base` is what the runtime was
 * last known to be, and is in the store and there.
 */
struct transport_collected {
	git_oid tree;
	size_t files;
	uint64_t received_bytes;
	char note[256];
};
typedef void transport_collect_done(
	void *data, const struct transport_collected *collected, const struct error *err);

/*
 * Makes the runtime root, which is as the tree `from` says, what `to` says. Where it
 * is no longer so, ERROR_UNAVAILABLE with reason
 * "RUNTIME_CHANGED", and nothing was changed: collect again.
 */
struct transport_delivered {
	uint64_t sent_bytes;
};
typedef void transport_deliver_done(
	void *data, const struct transport_delivered *delivered, const struct error *err);

struct transport_impl {
	const char *name;
	/* Whether the runtime has what it needs; and makes the runtime root a repository. */
	void (*prepare)(struct transport *transport, sandbox_done *done, void *data);
	void (*collect)(struct transport *transport, const git_oid *base,
		transport_collect_done *done, void *data);
	void (*deliver)(struct transport *transport, const git_oid *from, const git_oid *to,
		transport_deliver_done *done, void *data);
	void (*destroy)(struct transport *transport);
};

struct transport {
	const struct transport_impl *impl;
};

struct transport *transport_git_create(const struct transport_request *request);

#endif
