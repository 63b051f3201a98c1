/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_WATCH_H
#define BROKER_RELAY_RELAY_WATCH_H

#include "acp/frames.h"

struct peer;
struct relay;

/* Who is waited for, and how long; and what is given back once nothing comes. */

/* A prompt went to the agent: idle-timeout counts, from its last line on. */
void relay_watch_prompt(struct peer *peer);

/* The agent waits for an answer itself, the editor's or ours: then its silence is not its own. */
bool relay_watch_excuses(const struct peer *peer);

/*
 * The editor is not read, because of a reader who is slow: that it leaves is
 * noticed all the same, and waited with for stop-eof-timeout.
 */
void relay_watch_editor(struct relay *relay);

/* Nothing comes from the editor any more: says so, once. */
void relay_editor_gone(struct relay *relay);

/* A message came: what large ones needed is given back once there was none for a while. */
void relay_watch_memory(struct relay *relay, const struct frame *frame);

void relay_watch_init(struct relay *relay);
void relay_watch_finish(struct relay *relay);

#endif
