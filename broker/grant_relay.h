/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GRANT_RELAY_H
#define BROKER_GRANT_RELAY_H

#include "broker/grant.h"
#include "broker/old_text.h"
#include "broker/question.h"
#include "broker/relay_internal.h"

/* What the grant_*.c files share. */

static inline bool grant_decision_allows(enum policy_decision decision)
{
	return decision == POLICY_ALLOW_ONCE || decision == POLICY_ALLOW_ALWAYS;
}

/*
 * grant_ask.c: asks the person about a file or a command by a
 * session/request_permission of the broker's own. The call is set aside until
 * the answer; a yes sends it on its way, anything else refuses it. Nobody is asked about a write
 * that was allowed in the agent's own question, if the file holds the old text that it showed;
 * NULL: it was not, or it showed none.
 */
void grant_ask(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct grant_decision *decision, const char *old_text);

/* ---- grant_question.c ---- */

/* What a question offers, JSON: with "always" where that can be remembered. */
extern const char grant_options_once[];
extern const char grant_options_always[];

/* Why a decision asks; borrows from it. */
struct question_reason grant_question_reason(const struct grant_decision *decision);

/* A command as a person is shown it: words as a shell would have to be told them. Owned. */
char *grant_command_shown(const struct subject *subject);

/* Writes the question into relay->scratch; its request has an id and a subject. */
bool grant_question_write(struct request *request, const struct call *call,
	const struct question_reason *reason, struct error *err) ATTR_NODISCARD;

/* The question kept in request->message, with what the file holds; appended. */
bool grant_question_complete(struct buf *out, const struct request *request,
	const struct old_text_answer *answer) ATTR_NODISCARD;

/* ---- grant_once.c ---- */

/*
 * What a yes to a session/request_permission allows once more: the writes and the command that it
 * shows. NULL-terminated; NULL: nothing, or it is not known what.
 */
struct subject **grant_once_read(
	const struct message *message, const struct subject *tool, const struct session *session);
void grant_once_free(struct subject **list); // NULL is fine

/* The yes has come; takes what the subjects hold. */
void grant_once_add(struct session *session, struct subject *const *list);

extern const char grant_once_rule[]; // what stands for the rule then

/*
 * Where the mode would ask about what was just allowed so, it is allowed; this uses it up. Where
 * the diff has shown what the file holds, it stays to be asked about, unless the file does hold
 * that (grant_ask): the old text is the caller's then, NULL else.
 */
void grant_once_decide(struct session *session, const struct message *message,
	const struct subject *subject, struct grant_decision *decision, char **out_old_text);

/* ---- grant_guard.c ---- */

/* Whether guard-paths concerns an operation: it changes the user's own files, and no sync asks. */
bool grant_guards_write(const struct peer *peer, enum policy_operation operation);

/* What is allowed is asked about, where it writes such a file; an "always" of the person holds. */
void grant_guard_decide(const struct peer *peer, const struct session *session,
	const struct subject *subject, struct grant_decision *decision);

/* Who takes a call that was set aside. */
struct grant_resumer {
	/*
	 * Its paths without links are in call->resolved; where they cannot be known there is a
	 * failure.
	 */
	void (*resume)(struct peer *peer, const struct call *call, const struct failure *failure);
	bool is_of_turn; // a session/cancel ends it
};

/*
 * grant_resolve.c: true where the call was set aside until the links in the
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
void grant_resolve_cancel(
	struct relay *relay, const char *session_id, const struct failure *failure);

/* The same for one call, by the agent's id of it; false where it does not wait for that. */
bool grant_resolve_take_back(struct peer *peer, struct span id, const struct failure *failure);

/* ---- grant_audit.c ---- */

/* Policy, or what it remembers, has decided: one line. */
void grant_audit(struct relay *relay, const struct session *session, const struct subject *subject,
	const struct grant_decision *decision);

/* A question of the broker's own is about to be asked: what its line will need. */
void grant_note_asked(struct request *request, const struct subject *subject, const char *rule);

/* Nobody needs to be asked any more: the person has said yes to the agent's own question. */
void grant_note_allowed(struct relay *relay, struct request *request);

/*
 * What the answer to such a question says, or a no where there is a failure instead. It is
 * noted, in one line.
 */
struct grant_answer grant_settle(struct relay *relay, struct request *request,
	const struct call *answer, const struct failure *failure);

#endif
