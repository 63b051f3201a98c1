/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_END_H
#define BROKER_RELAY_RELAY_END_H

#include <stdint.h>

#include "broker/session/hop.h"

/* How the relay and its agents end. */

void relay_end_init(struct relay *relay);
void relay_end_finish(struct relay *relay);

/*
 * Call it with NULL when an agent has answered initialize, or has opened a session without that; or
 * with a static reason when an agent ends before. If no agent ever answers, the session has failed.
 */
void relay_note_start(struct relay *relay, const char *failed_reason);

/* The last answers have left, or nobody reads them: reports the end, once. */
void relay_finish(struct relay *relay);

/*
 * While ending, once no agent is left: tries to reach lost sandboxes, then sends the last messages.
 */
void relay_finish_if_empty(struct relay *relay);

/* Nothing of an agent runs any more: frees the peer (void * for the listener). */
void relay_peer_gone(void *data);

/* agent_listener.count_taken, for the peer's editor. */
uint64_t relay_count_taken(void *peer);

#endif
