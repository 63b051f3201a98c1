/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_H
#define BROKER_RELAY_RELAY_H

/*
 * This folder routes every message. It knows what ACP's methods mean, which agent a message is for,
 * what the message must wait for first, and how sessions, agents and the broker end. It knows all
 * folders of the broker except broker/cli, which creates the relay. Lower folders call it through
 * the table of callbacks in relay.c (struct relay_ops). Its files call each other in circles,
 * because messages wait in many of them.
 */

#include "broker/session/relay_config.h"

/*
 * The relay stands between one editor and its agents. It routes every message, keeps the request
 * ids of each hop apart, makes only the edits that docs/architecture.md lists, and answers every
 * request exactly once, whatever dies. Loop thread only.
 */
struct relay;

struct relay *relay_create(const struct relay_config *config);

/* Takes the descriptors to the editor (non-blocking) and starts. */
void relay_start(struct relay *relay, int editor_in, int editor_out);

/*
 * Begins the end: takes no further prompts, cancels the prompts in flight and stops the agents.
 * Their last messages are still passed on. A second call does nothing.
 */
void relay_end(struct relay *relay);

/* Skips to the next step of an end that has begun; each call skips one step. */
void relay_hurry(struct relay *relay);

void relay_destroy(struct relay *relay);

#endif
