/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RESTORE_H
#define BROKER_RELAY_RESTORE_H

#include "broker/session/hop.h"

/*
 * A session whose agent has ended and is asked for something: an agent is started in the same
 * sandbox - or, where that is lost, in one that is prepared anew - and has to restore the session
 * (ACP: session/resume where it offers that, else session/load, whose replay is not shown to the
 * editor, which has it). What was asked waits until then. Never is another session put in
 * the place of one that cannot be restored: who asks is told why.
 */
enum {
	RESTORE_OPENING_MAX = 256 * 1024, // bytes of a session's parameters that are kept
	RESTORE_WINDOW_S = 60,            // of restart-limit
	RESTORE_QUIET_MS = 200,           // without a replayed update: a replay has ended
	RESTORE_REPLAY_MS = 5000,         // that what waits waits for that at most
};

/*
 * The request that opens a session is passed on: keeps its parameters; they go to the session
 * once it is there.
 */
void restore_keep(struct request *request, const struct call *call);
void restore_remember(struct session *session, struct request *request);

/*
 * A request of a session: true where it waits for that to be restored, or was answered.
 * `is_needed`: it needs the session's agent, so that the restoring begins with it.
 */
bool restore_holds(
	struct relay *relay, struct session *session, bool is_needed, const struct call *call);

/* session/cancel: prompts that wait are answered. False: the session is not being restored. */
bool restore_cancel(struct relay *relay, const struct session *session);

/* Those that no agent has in hand any more end. */
void restore_finish(struct relay *relay);

/* ---- the broker's own session/resume and session/load, on the way of any other ---- */

#define RESTORE_ID_PREFIX "\"acp-broker:restore:" // of their ids; raw

static inline bool restore_is_own(struct span id) // raw, of a request
{
	return span_starts_with(id, SPAN_LITERAL(RESTORE_ID_PREFIX));
}

/* A request is passed on: where it is ours its answer comes here. */
void restore_claim(struct relay *relay, struct request *request, const struct call *call);

/* A request is answered with a failure: true where it was ours. */
bool restore_takes_failure(struct relay *relay, struct span id, const struct error *failure);

/*
 * Whether an update is a part of a replay that the broker has asked for. What says how the session
 * is now is none. Some agents go on with it after they have answered session/load: what they tell
 * before the next prompt begins is hidden, too, and that prompt waits for a moment of quiet.
 */
bool restore_hides(struct peer *peer, const struct call *call);

#endif
