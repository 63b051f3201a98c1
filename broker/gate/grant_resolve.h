/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_RESOLVE_H
#define BROKER_GATE_GRANT_RESOLVE_H

#include "broker/policy/subject.h"
#include "broker/session/hop.h"

/* STAGE_LINKS: calls whose paths are being resolved. */

/* It goes on; its paths without links are in call->resolved. */
typedef void grant_resume(struct peer *peer, const struct call *call);

/*
 * True where the call was set aside until the links in the subject's paths are resolved, as the
 * agent's own calls have theirs resolved, one after the other. Then it is resumed, also from
 * inside; or it fails, where they cannot be known or the agent is gone before. False where policy
 * needs them not, or nobody here can see them.
 */
bool grant_resolve(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct session *session, grant_resume *resume);

/*
 * The same of a call that somebody has just said yes to, where the editor will serve it to an agent
 * that has other files: a sync may have brought a link here while the question was open. It fails
 * with SECURITY_VIOLATION where its path is not call->resolved any more.
 */
bool grant_resolve_again(struct peer *peer, const struct call *call, const struct session *session,
	grant_resume *resume);

/* Fails those that wait; before the sandbox is closed. */
void grant_resolve_fail(struct peer *peer, const struct error *failure);

/* How many calls of the editor's wait for that, and their bytes; added to both. */
void grant_resolve_count(const struct relay *relay, int *count, size_t *bytes);

/* The paths of a call that was resumed, where it was, become the subject's. */
void grant_take_paths(struct subject *subject, const struct call *call);

/* The session was cancelled: calls of its agent that wait for that end with the failure. */
void grant_resolve_cancel(struct relay *relay, const char *session_id, const struct error *failure);

/* Of STAGE_LINKS. */
void grant_resolve_on_left(struct waiting *waiting, const struct error *failure);
void grant_resolve_next(struct peer *peer);

#endif
