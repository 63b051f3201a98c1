/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LISTING_RECORDS_H
#define BROKER_RELAY_LISTING_RECORDS_H

#include "broker/session/hop.h"

/*
 * What the broker knows and the agents that run cannot: an agent whose home is inside its sandbox
 * (a record with a reference, broker/ledger/record.h) keeps its sessions there, and one in
 * another sandbox lists none of them. They are added to the last page of session/list, with
 * _meta.broker {record, state}, where they can be loaded: the agent takes session/load or
 * session/resume, workspace and sandbox are there, and no other broker has the session. (One of a
 * transient folder on a host, whose home they share, it may have forgotten.) All other
 * sessions of this profile are in the home that the agents share: what they do not list they have
 * forgotten.
 */
struct listing_records;

enum {
	LISTING_SCANS_MAX = 16, // requests that wait at once, within RELAY_WAITING_MAX bytes of all
	LISTING_OPEN_MAX =
		16, // lists whose next page may be asked for; to older ones nothing is added
	LISTING_CURSOR_MAX = 64 * 1024, // bytes; to a list with a longer one nothing is added
};

/*
 * True where the request waits until the records were read; or was refused, with
 * RESOURCE_LIMIT_EXCEEDED, for too many wait already.
 */
bool listing_records_hold(struct relay *relay, const struct call *call);

/* The request goes to an agent: what is known for its list; the caller's, or NULL. */
struct listing_records *listing_records_take(struct relay *relay, struct span id);

/* The agent's sessions are asked for, and told, by the name of the list's filter. NULL is fine. */
void listing_records_name(const struct listing_records *listed, struct peer *peer);

/* An agent's page goes to the editor: notes its sessions; to the last one adds what is missing. */
bool listing_records_add(struct relay *relay, struct listing_records *listed,
	const struct call *page, bool is_last, struct error *err);

/* The page with this cursor (raw), which was told to the editor, is of the same list. Takes it. */
void listing_records_await(struct relay *relay, struct listing_records *listed, struct span cursor);

void listing_records_destroy(struct listing_records *listed); // NULL is fine

/* A request was answered with a failure. */
void listing_records_drop(struct relay *relay, struct span id);

/* Of STAGE_LIST. */
void listing_records_on_left(struct waiting *waiting, const struct error *failure);
void listing_records_on_gone(struct waiting *waiting);

void listing_records_finish(struct relay *relay); // frees all

#endif
