/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_WATCH_H
#define BROKER_RELAY_RELAY_WATCH_H

#include "acp/frames.h"

struct peer;
struct relay;

/*
 * Limits how long the broker waits for agents and the editor, and decides when it gives memory
 * back.
 */

/* A prompt was sent to the agent: starts idle-timeout, which counts from the agent's last line. */
void relay_watch_prompt(struct peer *peer);

/*
 * Whether the agent itself waits for an answer, from the editor or from us, or cannot be heard,
 * because the connection to its sandbox is lost. Its silence does not count then.
 */
bool relay_watch_excuses(const struct peer *peer);

/*
 * For times when the broker does not read from the editor, because a receiver is too slow: notices
 * even then that the editor leaves, and waits for stop-eof-timeout after that.
 */
void relay_watch_editor(struct relay *relay);

/* No more messages will come from the editor: reports that, once. */
void relay_editor_gone(struct relay *relay);

/*
 * A message of this length has arrived or is being sent. Keeps the freed memory of large messages
 * for the next one, and returns it when none has come for a while.
 */
void relay_watch_memory(struct relay *relay, size_t length);

void relay_watch_init(struct relay *relay);
void relay_watch_finish(struct relay *relay);

#endif
