/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RESTORE_H
#define BROKER_RELAY_RESTORE_H

#include "broker/session/hop.h"

/*
 * Restores a session whose agent has ended when somebody needs it. An agent is started in the same
 * sandbox or, if that sandbox is lost, in a newly prepared one. It must restore the session (ACP:
 * session/resume if the agent offers it, else session/load; the editor has seen the replay already,
 * so it is hidden). Requests for the session wait until then. If a session cannot be restored, no
 * other session replaces it: the requests fail, and the error says why.
 */
enum {
	RESTORE_OPENING_MAX = 256 * 1024, // bytes of a session's parameters that are kept
	RESTORE_WINDOW_S = 60,            // window of restart-limit
	RESTORE_QUIET_MS = 200,   // a replay counts as ended after this long without an update
	RESTORE_REPLAY_MS = 5000, // messages wait at most this long for that
};

/*
 * restore_keep: a request that opens a session is passed on; keeps its parameters.
 * restore_remember: the session exists and gets them.
 */
void restore_keep(struct request *request, const struct call *call);
void restore_remember(struct session *session, struct request *request);

/*
 * Takes a request of a session. True if it waits for the session to be restored, or was answered.
 * `is_needed`: the request needs the session's agent, so it starts the restoring.
 */
bool restore_holds(
	struct relay *relay, struct session *session, bool is_needed, const struct call *call);

/* session/cancel: answers waiting prompts. False if the session is not being restored. */
bool restore_cancel(struct relay *relay, const struct session *session);

/* Frees the restores that no agent is working on. */
void restore_finish(struct relay *relay);

/* ---- the broker's own session/resume and session/load, routed like any other ---- */

#define RESTORE_ID_PREFIX "\"acp-broker:restore:" // of their ids, raw

static inline bool restore_is_own(struct span id) // raw, of a request
{
	return span_starts_with(id, SPAN_LITERAL(RESTORE_ID_PREFIX));
}

/* A request is passed on. If it is ours, its answer comes here. */
void restore_claim(struct relay *relay, struct request *request, const struct call *call);

/* A request is answered with a failure. True if it was ours. */
bool restore_takes_failure(struct relay *relay, struct span id, const struct error *failure);

/*
 * Whether an update is part of a replay that the broker has asked for. Updates about the session's
 * present state are not. Some agents continue the replay after they have answered session/load. So
 * updates before the next prompt are hidden too, and that prompt waits until none has come for a
 * moment.
 */
bool restore_hides(struct peer *peer, const struct call *call);

#endif
