/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_WATCH_H
#define BROKER_RELAY_RELAY_WATCH_H

#include "acp/frames.h"

struct peer;
struct relay;

/* How long the broker waits for agents and the editor, and when it gives memory back. */

/* A prompt was sent to the agent: starts idle-timeout, which counts from the agent's last line. */
void relay_watch_prompt(struct peer *peer);

/*
 * Whether the agent itself waits for an answer, from the editor or from us; its silence does not
 * count then.
 */
bool relay_watch_excuses(const struct peer *peer);

/*
 * The broker does not read from the editor, because somebody reads too slowly. This notices
 * nevertheless that the editor leaves, and then waits for stop-eof-timeout.
 */
void relay_watch_editor(struct relay *relay);

/* No more messages will come from the editor: reports that, once. */
void relay_editor_gone(struct relay *relay);

/* A message has arrived. Frees the memory of large messages once none has come for a while. */
void relay_watch_memory(struct relay *relay, const struct frame *frame);

void relay_watch_init(struct relay *relay);
void relay_watch_finish(struct relay *relay);

#endif
