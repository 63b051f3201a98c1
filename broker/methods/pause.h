/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_PAUSE_H
#define BROKER_METHODS_PAUSE_H

#include <stdbool.h>

struct call;
struct peer;
struct relay;

/*
 * _broker/session/pause and _broker/session/resume freeze the agent of a session, with all
 * processes that it and its terminals have started and with all of its sessions, and let them run
 * again. A pause first waits until running tool calls have ended, then writes "paused" into the
 * record, then freezes. A prompt may be in progress; it continues afterwards.
 * docs/schemas/session-pause.json describes the result.
 */
void pause_call(struct relay *relay, const struct call *call);
void pause_resume_call(struct relay *relay, const struct call *call);

/*
 * Takes a request of the editor for an agent that is paused, or for which a pause has begun. True
 * if it was refused with SESSION_PAUSED. A request that ends a session resumes the agent and
 * passes.
 */
bool pause_refuses(struct peer *peer, const struct call *call);

/* Whether the agent's messages wait until it is resumed; then link_resume follows. */
bool pause_holds_agent(const struct peer *peer);

/*
 * The agent (struct peer *; void * for the listener) is about to end, or has ended. Resumes the
 * agent, so that the broker can read its last output and its end, and answers waiting requests.
 * Does nothing if it is not paused.
 */
void pause_release(void *data);

/* No callback follows. */
void pause_destroy(struct peer *peer);

#endif
