/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_H
#define BROKER_RELAY_RELAY_H

/*
 * This folder routes every message: it knows what ACP's methods mean, which agent a message is for,
 * what it has to wait for first, and how sessions, agents and the broker end. It knows all folders
 * of the broker but broker/cli, which creates the relay; what the others need of it is the table of
 * callbacks in relay.c (struct relay_ops). Its files call each other in circles, as messages wait
 * in many of them.
 */

#include "broker/session/relay_config.h"

/*
 * The relay stands between one editor and its agents for the whole session:
 * routes every message, keeps each hop's ids apart, makes the edits that
 * docs/architecture.md lists and no other, and answers every request exactly
 * once, whatever dies. Loop thread only.
 */
struct relay;

struct relay *relay_create(const struct relay_config *config);

/* Takes over the descriptors to the editor (non-blocking) and begins. */
void relay_start(struct relay *relay, int editor_in, int editor_out);

/*
 * Begins the end: no further prompts, prompts in flight are cancelled, the
 * agents are stopped, what they still say is passed on. A second call does nothing.
 */
void relay_end(struct relay *relay);

/* Takes the next step of an end that has begun at once: each call takes one. */
void relay_hurry(struct relay *relay);

void relay_destroy(struct relay *relay);

#endif
