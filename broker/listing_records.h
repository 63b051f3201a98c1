/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LISTING_RECORDS_H
#define BROKER_LISTING_RECORDS_H

#include "broker/relay_internal.h"

/*
 * What the broker knows and the agents that run cannot: an agent whose home is inside its sandbox
 * (a record with a reference, broker/record.h) keeps its sessions there, and one in
 * another sandbox lists none of them. They are added to the last page of session/list, with
 * _meta.broker {record, state}, where they can be loaded: the agent takes session/load or
 * session/resume, workspace and sandbox are there, and no other broker has the session. All other
 * sessions of this profile are in the home that the agents share: what they do not list they have
 * forgotten.
 */
struct listing_records;

enum { LISTING_LOOKS_MAX = 16 }; // requests that wait at once, within RELAY_HELD_MAX bytes of all

/*
 * True where the request waits until the records were read; or was refused, with
 * RESOURCE_LIMIT_EXCEEDED, for too many wait already.
 */
bool listing_records_hold(struct relay *relay, const struct call *call);

/* An agent's page goes to the editor: notes its sessions; to the last one adds what is missing. */
bool listing_records_add(
	struct relay *relay, const struct call *page, bool is_last, struct error *err);

/* The broker ends: what waits is answered. */
void listing_records_end(struct relay *relay);
void listing_records_finish(struct relay *relay); // frees all

#endif
