/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_RELAY_CONFIG_H
#define BROKER_SESSION_RELAY_CONFIG_H

#include <ev.h>

#include "base/error.h"
#include "broker/config/config.h"
#include "broker/policy/audit.h"
#include "broker/session/trace.h"
#include "providers/provider.h"

/* The configuration of a relay (relay.h), and its limits. */

struct pool;

enum {
	/*
	 * Bytes beyond max-queue, for: the broker's own answers to the editor, its own answers to
	 * an agent, and the editor's notifications and answers to an agent.
	 */
	RELAY_EDITOR_RESERVE = 4 * 1024 * 1024,
	RELAY_AGENT_RESERVE = 4 * 1024 * 1024,
	RELAY_UNREAD_MAX = 2 * 1024 * 1024,
	RELAY_PEERS_MAX = 64,                 // agents at once
	RELAY_WAITING_MAX = 64 * 1024 * 1024, // bytes of messages that wait at one stage
};

struct relay_listener {
	/* The editor has closed its side, or cannot be written to. Called once. */
	void (*on_editor_gone)(void *data);
	/*
	 * Called once after relay_end: every agent has ended and the last answers were written. err
	 * is NULL, or the first of these failures: the editor could not be read from or written to,
	 * an agent's changes could not be collected, its sandbox could not be ended.
	 */
	void (*on_finished)(void *data, const struct error *err);
};

struct relay_config {
	struct ev_loop *loop;
	struct provider *provider;
	const struct profile *profile;
	const struct profile *others; // the configuration's; to collect what dead brokers left
	size_t other_count;
	const struct registry *registry; // their providers; may be NULL if there are none
	const char *directory;           // the workspace, if it is known at the start; may be NULL
	struct pool *pool; // NULL: rules take paths as they are, nothing is synced, and the editor
	                   // serves files to no agent elsewhere
	struct trace *trace;          // may be NULL
	struct audit *audit;          // may be NULL
	struct secrets *secrets;      // secrets that the agents' log must not contain; may be NULL
	const char *state_folder;     // of records and stores (ledger/state_folder.h); may be NULL
	const char *const *own_files; // see provider_context
	const char *home;             // the user's; may be NULL
	const char *mcp_socket;  // for mcp-exec: where to listen; NULL: there is no folder for it
	const char *mcp_program; // the program that connects to it
	bool client_tells;  // the client tells the user why an agent did not start: do not log it
	bool is_trial;      // does not touch what dead brokers left
	int sync_moment_ms; // a turn's sync that takes longer is shown; 0: SYNC_SHOW_MOMENT_MS
	int link_show_ms;   // until the first update for a lost link; 0: LINK_SHOW_MIN_MS
	const struct transport_tools *tools; // for syncs; may be NULL
	const struct relay_listener *listener;
	void *data;
};

#endif
