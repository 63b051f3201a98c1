/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_END_H
#define BROKER_RELAY_RELAY_END_H

#include <stdint.h>

#include "broker/session/hop.h"

/* How the relay ends, and its agents. */

void relay_end_init(struct relay *relay);
void relay_end_finish(struct relay *relay);

/*
 * An agent has answered initialize, or opened a session without one (NULL); or came down before
 * it answered, for a reason (static). If none ever answers, the session has failed.
 */
void relay_note_start(struct relay *relay, const char *failed_reason);

/* The last answers have left, or nobody takes them: says so, once. */
void relay_finish(struct relay *relay);

/* While ending: once no agent is left, what was lost is reached for; then come the last words. */
void relay_finish_if_empty(struct relay *relay);

/* Nothing of an agent runs any more: frees the peer (void * for the listener). */
void relay_peer_gone(void *data);

/* agent_listener.count_taken: of the peer's editor. */
uint64_t relay_count_taken(void *peer);

#endif
