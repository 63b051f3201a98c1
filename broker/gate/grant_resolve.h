/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_RESOLVE_H
#define BROKER_GATE_GRANT_RESOLVE_H

#include "broker/policy/subject.h"
#include "broker/session/hop.h"

/* Calls whose paths are being resolved; fail them before the sandbox is closed. */
void grant_resolve_init(struct peer *peer);
void grant_resolve_fail(struct peer *peer, const struct error *failure);

/* Who takes a call that was set aside. */
struct grant_resumer {
	/*
	 * Its paths without links are in call->resolved; where they cannot be known there is a
	 * failure.
	 */
	void (*resume)(struct peer *peer, const struct call *call, const struct error *failure);
	bool is_of_turn; // a session/cancel ends it
};

/*
 * True where the call was set aside until the links in the
 * subject's paths are resolved, as the agent's own calls have theirs resolved,
 * one after the other. Resumed exactly once, also from inside, and with a failure
 * where the agent is gone before. False where policy needs them not, or nobody
 * here can see them. `resumer` has static storage.
 */
bool grant_resolve(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct session *session, const struct grant_resumer *resumer);

/*
 * The same of a call that somebody has just said yes to, where the editor will serve it to an agent
 * that has other files: a sync may have brought a link here while the question was open. It is
 * resumed with SECURITY_VIOLATION where its path is not call->resolved any more.
 */
bool grant_resolve_again(struct peer *peer, const struct call *call, const struct session *session,
	const struct grant_resumer *resumer);

/* How many calls that are of no turn wait for that, and their bytes; added to both. */
void grant_resolve_count(const struct relay *relay, int *count, size_t *bytes);

/* The paths of a call that was resumed, where it was, become the subject's. */
void grant_take_paths(struct subject *subject, const struct call *call);

/* The session was cancelled: calls of its turn that wait for that end with the failure. */
void grant_resolve_cancel(struct relay *relay, const char *session_id, const struct error *failure);

/* The same for one call, by the agent's id of it; false where it does not wait for that. */
bool grant_resolve_take_back(struct peer *peer, struct span id, const struct error *failure);

#endif
