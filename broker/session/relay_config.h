/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_RELAY_CONFIG_H
#define BROKER_SESSION_RELAY_CONFIG_H

#include <ev.h>

#include "base/error.h"
#include "broker/config/config.h"
#include "broker/policy/audit.h"
#include "broker/session/trace.h"
#include "providers/provider.h"

/* What a relay is made of (relay.h), and its limits. */

struct pool;

enum {
	RELAY_EDITOR_RESERVE =
		4 * 1024 * 1024,               // bytes of the broker's own answers beyond max-queue
	RELAY_AGENT_RESERVE = 4 * 1024 * 1024, // the same, to an agent
	RELAY_UNREAD_MAX = 2 * 1024 * 1024,    // the same, of the editor's, less its requests
	RELAY_PEERS_MAX = 64,                  // agents at once
	RELAY_WAITING_MAX = 64 * 1024 * 1024,  // bytes of messages that wait at one stage
};

struct relay_listener {
	/* The editor has closed its side, or cannot be written to. Once. */
	void (*on_editor_gone)(void *data);
	/*
	 * After relay_end: every agent is gone and the last answers were written. Once. err is
	 * NULL unless the editor could not be heard or told all, or what an agent left could not
	 * be collected, or its sandbox not be ended: the first of these.
	 */
	void (*on_finished)(void *data, const struct error *err);
};

struct relay_config {
	struct ev_loop *loop;
	struct provider *provider;
	const struct profile *profile;
	const struct profile *others; // of the configuration, for what brokers left that are gone
	size_t other_count;
	const struct registry *registry; // their providers; may be NULL where there are none
	const char *directory; // the workspace, as far as is known at the start; may be NULL
	struct pool *pool; // NULL: rules take paths as they are, nothing is synced, and the editor
	                   // serves files to nobody elsewhere
	struct trace *trace;     // may be NULL
	struct audit *audit;     // may be NULL
	struct secrets *secrets; // that the log of agents shall not have; may be NULL
	const char
		*state_folder; // of records and stores (broker/ledger/state_folder.h); may be NULL
	const char *home;      // the user's; may be NULL
	bool client_tells;     // why an agent has not started, to the user: it is not logged
	bool is_trial;         // leaves alone what brokers left that are gone
	const struct transport_tools *tools; // of syncs; may be NULL
	const struct relay_listener *listener;
	void *data;
};

#endif
