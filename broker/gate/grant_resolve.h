/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_RESOLVE_H
#define BROKER_GATE_GRANT_RESOLVE_H

#include "broker/policy/subject.h"
#include "broker/session/hop.h"

/* STAGE_LINKS: calls that wait for their paths to be resolved. */

/* The call goes on; call->resolved holds its paths without links. */
typedef void grant_resume(struct peer *peer, const struct call *call);

/*
 * True if the call was set aside until the links in the subject's paths are resolved; an agent's
 * calls are resolved one after the other. Then `resume` is called, maybe before this returns. The
 * call fails instead if the links cannot be resolved or the agent ends first. False if policy does
 * not need the paths, or if the broker cannot see the files.
 */
bool grant_resolve(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct session *session, grant_resume *resume);

/*
 * The same for a call that the user has just allowed, if the editor will serve it to an agent with
 * other files: a sync may have brought a link here while the question was open. Fails with
 * SECURITY_VIOLATION if the path no longer equals call->resolved.
 */
bool grant_resolve_again(struct peer *peer, const struct call *call, const struct session *session,
	grant_resume *resume);

/* Fails the waiting calls; call it before the sandbox is closed. */
void grant_resolve_fail(struct peer *peer, const struct error *failure);

/* Adds the number and bytes of the editor's calls that wait here to *count and *bytes. */
void grant_resolve_count(const struct relay *relay, int *count, size_t *bytes);

/* Gives the subject the resolved paths of a resumed call, if it has any. */
void grant_take_paths(struct subject *subject, const struct call *call);

/* The session was cancelled: fails those calls of its agent that wait here. */
void grant_resolve_cancel(struct relay *relay, const char *session_id, const struct error *failure);

/* Callbacks of STAGE_LINKS. */
void grant_resolve_on_left(struct waiting *waiting, const struct error *failure);
void grant_resolve_next(struct peer *peer);

#endif
