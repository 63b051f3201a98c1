/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LISTING_RECORDS_H
#define BROKER_RELAY_LISTING_RECORDS_H

#include "broker/session/hop.h"

/*
 * Adds sessions that the running agents cannot know. An agent whose home is inside its sandbox (a
 * record with a reference, broker/ledger/record.h) keeps its sessions there, and an agent in
 * another sandbox does not list them. They are added to the last page of session/list, with
 * _meta.broker {record, state}, if they can be loaded: the agent takes session/load or
 * session/resume, workspace and sandbox exist, and no other broker has the session. If each session
 * has its own copy (copy-per), the copy need not exist: the agent's memory is in the user's home,
 * but an agent lists only the sessions of the path that it is asked for. Transient folders on a
 * host share one home, so an agent may have forgotten such a session. All other sessions of this
 * profile are in the home that the agents share: those missing from their list are forgotten.
 */
struct listing_records;

enum {
	LISTING_SCANS_MAX = 16,         // requests waiting at once, RELAY_WAITING_MAX bytes in all
	LISTING_OPEN_MAX = 16,          // lists with a further page; older ones get no additions
	LISTING_CURSOR_MAX = 64 * 1024, // bytes; a list with a longer cursor gets no additions
};

/*
 * True if the request waits until the records are read, or was refused with RESOURCE_LIMIT_EXCEEDED
 * because too many wait.
 */
bool listing_records_hold(struct relay *relay, const struct call *call);

/* The request goes to an agent: returns what is known for its list, or NULL. The caller owns it. */
struct listing_records *listing_records_take(struct relay *relay, struct span id);

/* Notes the paths by which the agent and the editor know the list's filter. NULL is fine. */
void listing_records_name(const struct listing_records *listed, struct peer *peer);

/*
 * An agent's page goes to the editor: notes its sessions. If it is the last page, adds the missing
 * ones.
 */
bool listing_records_add(struct relay *relay, struct listing_records *listed,
	const struct call *page, bool is_last, struct error *err);

/*
 * The editor was given this cursor (raw): the page that it names continues the same list. Takes
 * `listed`.
 */
void listing_records_await(struct relay *relay, struct listing_records *listed, struct span cursor);

void listing_records_destroy(struct listing_records *listed); // NULL is fine

/* A request was answered with a failure. */
void listing_records_drop(struct relay *relay, struct span id);

/* Callbacks of STAGE_LIST. */
void listing_records_on_left(struct waiting *waiting, const struct error *failure);
void listing_records_on_gone(struct waiting *waiting);

void listing_records_finish(struct relay *relay); // frees all

#endif
