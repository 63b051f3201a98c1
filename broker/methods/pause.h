/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_PAUSE_H
#define BROKER_METHODS_PAUSE_H

#include <stdbool.h>

struct call;
struct peer;
struct relay;

/*
 * _broker/session/pause and _broker/session/resume: the agent of a session stands still, with
 * everything that it and its terminals have started, and with all of its sessions. Tool calls come
 * to their end first; the record says "paused" before anything is frozen. A prompt may be
 * under way: it goes on afterwards. docs/schemas/session-pause.json has the result.
 */
void pause_call(struct relay *relay, const struct call *call);
void pause_resume_call(struct relay *relay, const struct call *call);

/*
 * A request of the editor's for an agent that is paused, or about to be: true where it was refused
 * with SESSION_PAUSED. The end of a session lets its agent go on, and passes.
 */
bool pause_refuses(struct peer *peer, const struct call *call);

/* What the agent still says waits until it goes on; link_resume follows. */
bool pause_holds_agent(const struct peer *peer);

/*
 * The agent (struct peer *; void * for the listener) is to end, or has: it goes on, what it said
 * last is read, behind which its end is seen, and who waits is told why. Nothing where it runs.
 */
void pause_release(void *data);

/* Raises nothing more. */
void pause_destroy(struct peer *peer);

#endif
